import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { FollowerStates } from './follower-states.ts';

describe('the state of a follower', () => {
  let directory: string;
  let storage: LmdbStorage;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'follower-states-'));
    storage = await LmdbStorage.open({ directory });
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  it('is stored under the names that processes of every release read', async () => {
    const readModels = new LmdbReadModels(storage);
    const states = new FollowerStates(readModels, new SystemClock());
    const halted = { halt: { reason: 'ahead', position: '0007' }, carriedOut: 'earlier' } as const;
    await states.tell('view.one', halted, 1);
    await states.forget('view.gone', { halt: null, carriedOut: '' }, 1);
    const table = readModels.table<never>({ name: 'follower-states', indexes: [], rebuildable: false, isMadeAnew: true });
    const texts = (await table.getMany(SYSTEM_ENVIRONMENT, ['view.one', 'view.gone'])).map((row) => JSON.parse(row!.text) as unknown);
    expect(texts).toEqual([
      { standing: { reason: 'ahead', position: '0007' }, mended: 'earlier' },
      { standing: null, mended: '', isForgotten: true },
    ]);
    expect(await states.read(['view.one', 'view.none'])).toEqual([
      { ...halted, requested: '' },
      { halt: null, carriedOut: '', requested: '' },
    ]);
    expect(await states.names('view.')).toEqual(['view.one']);
  });
});
