import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newCommandId } from '#libs/platform/src/ids';
import { givenKeys } from '#libs/testing/src/given-keys';
import { ShownSecrets } from './shown-secrets.ts';

describe('a secret that is shown once', () => {
  let directory: string;
  let secrets: ShownSecrets;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'secrets-'));
    secrets = new ShownSecrets(await givenKeys(directory));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const command = { environment: 'environment_1', commandId: newCommandId(Date.now()) };
  const textOf = async (context: typeof command, kind = 'key'): Promise<string> => (await secrets.of(context, kind)).toString('hex');

  it('is the same whenever its command is repeated', async () => {
    expect(await textOf(command)).toMatch(/^[0-9a-f]{64}$/);
    expect(await textOf({ ...command })).toBe(await textOf(command));
  });

  it('is another for another command, environment or purpose', async () => {
    const all = [command, { ...command, commandId: newCommandId(Date.now()) }, { ...command, environment: 'environment_2' }].map((context) => textOf(context));
    expect(new Set(await Promise.all([...all, textOf(command, 'other')])).size).toBe(4);
  });
});
