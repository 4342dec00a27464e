import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loseKey } from '#libs/testing/src/given-keys';
import { failedStart, gatehouse, SuiteProcess } from '#libs/testing/src/process';

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

/** What a wrong restore brings: keys that are older than the log. */
describe('keys that are older than the log', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-restored-keys-'));
  const variables = { DATA_DIR: join(root, 'data'), DATA_MIN_FREE: '0' };
  const keys = join(variables.DATA_DIR, 'keys');
  let suite: SuiteProcess;
  let key: string;
  let known: Answer;
  let lost: Answer;
  let environment: string;
  let organization: string;

  const ask = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await fetch(suite.url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  const USERS = '/user_management/users';

  beforeAll(async () => {
    suite = await SuiteProcess.start(variables);
    key = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
    known = await ask('POST', USERS, { email: 'ada@acme.test', password: 'correct horse battery' });
    cpSync(keys, join(root, 'older'), { recursive: true });
    lost = await ask('POST', USERS, { email: 'grace@acme.test', first_name: 'Grace' });
    organization = (await ask('POST', '/organizations', { name: 'Acme' })).body.id;
    const party = { id: 'a', type: 'user' };
    const event = { action: 'a', occurred_at: new Date().toISOString(), actor: party, targets: [], context: { location: '' } };
    const recorded = await ask('POST', '/audit_logs/events', { organization_id: organization, event });
    expect([known.status, lost.status, recorded.status]).toEqual([201, 201, 200]);
    await suite.stop();
    renameSync(keys, join(root, 'right'));
    cpSync(join(root, 'older'), keys, { recursive: true });
    rmSync(join(variables.DATA_DIR, 'views'), { recursive: true });
    suite = await SuiteProcess.start(variables);
  });
  afterAll(async () => {
    await suite.stop();
    rmSync(root, { recursive: true });
  });

  it('are told of, where an empty value would pass for an erased one', async () => {
    const { status, body } = await ask('GET', `${USERS}/${lost.body.id}`);
    expect([status, body.email]).toEqual([503, undefined]);
    expect((await gatehouse(variables, 'views', 'list')).stdout).toMatch(/^users .*halted/m);
    expect((await ask('POST', '/organizations', { name: 'Goes on' })).status).toBe(201);
  });

  it('give an address to nobody else', async () => {
    const { status } = await ask('POST', USERS, { email: 'grace@acme.test' });
    expect(status).toBe(503);
  });

  it('are found by verify, which names the first that is missing', async () => {
    const { code, stderr } = await gatehouse(variables, 'verify');
    expect(code).toBe(2);
    const named = new RegExp(`data key person\\.user-(environment_\\w+)-${lost.body.id} is missing`).exec(stderr);
    expect(named).not.toBeNull();
    environment = named![1]!;
  });

  it('become right when those of the log are put back', async () => {
    await suite.stop();
    rmSync(keys, { recursive: true });
    cpSync(join(root, 'right'), keys, { recursive: true });
    suite = await SuiteProcess.start(variables);
    expect(await ask('GET', `${USERS}/${lost.body.id}`)).toMatchObject({ status: 200, body: { email: 'grace@acme.test', first_name: 'Grace' } });
    expect(await ask('GET', `${USERS}/${known.body.id}`)).toMatchObject({ status: 200, body: { email: 'ada@acme.test' } });
    expect(await gatehouse(variables, 'verify')).toMatchObject({ code: 0 });
    expect(await gatehouse(variables, 'rebuild', '--check')).toMatchObject({ code: 0, stderr: '' });
  });

  it('can be given up where they are lost for good, and only those: what they sealed reads as erased', async () => {
    await suite.stop();
    const copy = { ...variables, DATA_DIR: join(root, 'given-up') };
    cpSync(variables.DATA_DIR, copy.DATA_DIR, { recursive: true });
    const purposeOf = (id: string) => `person.user-${environment}-${id}`;
    const trail = `trail.${environment}-${organization}`;
    for (const purpose of [purposeOf(lost.body.id), trail]) await loseKey(join(copy.DATA_DIR, 'keys'), purpose);
    rmSync(join(copy.DATA_DIR, 'views'), { recursive: true });
    const refused = await gatehouse(copy, 'data-keys', 'give-up', purposeOf(known.body.id));
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('is not missing')]);
    expect((await gatehouse(copy, 'data-keys', 'give-up', 'naming')).stderr).toContain('is no key that can be given up');
    expect(await gatehouse(copy, 'data-keys', 'give-up', purposeOf(lost.body.id))).toMatchObject({ code: 0 });
    // Nothing that facts declare is sealed under the key of a trail.
    expect(await gatehouse(copy, 'verify')).toMatchObject({ code: 2, stderr: expect.stringContaining(`data key ${trail} is missing`) });
    expect(await gatehouse(copy, 'data-keys', 'give-up', trail)).toMatchObject({ code: 0 });
    expect(await gatehouse(copy, 'verify')).toMatchObject({ code: 0 });
    expect(await gatehouse(copy, 'rebuild')).toMatchObject({ code: 0 });
    suite = await SuiteProcess.start(copy);
    expect((await ask('GET', `${USERS}/${known.body.id}`)).body.email).toBe('ada@acme.test');
    expect((await ask('GET', `${USERS}/${lost.body.id}`)).body.email).toBe('');
    await suite.stop();
    suite = await SuiteProcess.start(variables);
    // Nine programs, one after the other.
  }, 120_000);

  it.each([
    ['naming', 'There is data, but its keys are missing'],
    ['passwords', 'There are passwords, but the key that they were hashed with is missing'],
  ])('do not let it start where the key %s is missing', async (purpose, sentence) => {
    await suite.stop();
    const copy = { ...variables, DATA_DIR: join(root, `without-${purpose}`) };
    cpSync(variables.DATA_DIR, copy.DATA_DIR, { recursive: true });
    await loseKey(join(copy.DATA_DIR, 'keys'), purpose);
    const { code, stderr } = await failedStart(copy);
    expect(code).not.toBe(0);
    expect(stderr).toContain(sentence);
    suite = await SuiteProcess.start(variables);
  });
});
