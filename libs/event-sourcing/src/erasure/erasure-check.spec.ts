import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { givenKeys } from '#libs/testing/src/given-keys';
import type { RecordedEvent } from '../log/event-store.ts';
import { purposeOf } from '../sealing/holders.ts';
import { ErasureCheck } from './erasure-check.ts';
import { ERASED } from './erasing.ts';

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';

describe('erasures of a log', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'erasure-check-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const erased = (position: string, ...holders: readonly string[]): RecordedEvent => ({
    ...{ id: position, type: ERASED, shape: 1, subject: null, public: [], stream: `user-${ENVIRONMENT}-${position}`, version: 1, position, data: { holders } },
    meta: { environment: ENVIRONMENT, actor: { id: 'a', source: 'system', name: null }, requestId: 'r', commandId: 'c', at: 0 },
  });
  const purpose = (holder: string) => purposeOf(holder, ENVIRONMENT);

  it('are told where the keys have not seen them, wherever their checkpoint stands, and wait a moment for who carries them out', async () => {
    const keys = await givenKeys(directory);
    for (const holder of ['user.1', 'user.2', 'user.3']) await keys.obtain(purpose(holder));
    await keys.destroy(purpose('user.1'));
    // As where single keys were put back from a backup, and their checkpoint was not.
    await keys.setErasedUpTo('0000000000000009');
    const check = new ErasureCheck(keys);
    await check.look([erased('0000000000000001', 'user.1'), { ...erased('0000000000000002', 'user.2'), type: 'user.deleted' }]);
    await check.look([erased('0000000000000007', 'user.3', 'address.none'), erased('0000000000000003', 'user.2', 'user.1')]);
    const told = (position: string, count: number) => ({
      position,
      stream: `user-${ENVIRONMENT}-${position}`,
      detail: `asks for an erasure that is not carried out: ${count} of its keys have no tombstone, and erasures are noted as carried out up to 0000000000000009.`,
    });
    expect(await check.unfinished(0)).toEqual([told('0000000000000003', 1), told('0000000000000007', 2)]);
    // By another process: this one has the keys in memory.
    const waited = check.unfinished();
    await (await givenKeys(directory)).destroy(purpose('user.2'), purpose('user.3'), purpose('address.none'));
    expect(await waited).toEqual([]);
  });
});
