import { JointWrites } from '../following/joint-writes.ts';
import { LogFollowing } from '../following/memory-follower.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { derivedId, newCommandId } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Readiness } from '#libs/platform/src/readiness';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { FollowerStates } from '../following/follower-states.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { Projector, ProjectorMetrics } from './projector.ts';
import { differences, type Difference } from './rebuild.ts';
import { StoppedViews } from './stopped-views.ts';
import { tableOf, type View } from './view.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';

interface Note {
  readonly text: string;
  readonly count: number;
}

const notes: View<Note> = {
  name: 'notes',
  version: 1,
  handles: ['note.written', 'note.burnt'],
  indexes: [{ name: 'text', keys: ({ text }) => [text] }],
  idsOf: ({ stream }) => [stream.split('-').at(-1)!],
  evolve: (row, { type, data }) => (type === 'note.burnt' ? null : { text: (data as { text: string }).text, count: (row?.count ?? 0) + 1 }),
};

describe('a comparison with a rebuild', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let readModels: LmdbReadModels;
  let projector: Projector;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'rebuild-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    readModels = new LmdbReadModels(storage);
    const log = new PinoLog({ level: 'silent', readable: false });
    const metrics = new Metrics();
    const clock = new SystemClock();
    projector = new Projector('notes', [notes as never], {
      events,
      following: new LogFollowing(events, clock, log),
      writes: new JointWrites(readModels),
      readModels,
      leases: new Leases(new LmdbShortLived(storage, clock), 'spec', log, metrics),
      states: new FollowerStates(readModels, clock),
      stopped: new StoppedViews(),
      readiness: new Readiness(),
      metrics: new ProjectorMetrics(metrics),
    });
    for (const key of ['a', 'b', 'c']) for (let version = 0; version < 3; version++) await write(key, version, `text ${version}`);
    await write('c', 3, null);
    await projector.start();
  });

  afterEach(async () => {
    await projector.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  async function write(key: string, version: number, text: string | null): Promise<void> {
    const commandId = newCommandId(Date.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'system', source: 'system', name: null }, requestId: commandId, commandId, at: Date.now() };
    const type = text === null ? 'note.burnt' : 'note.written';
    await events.append(`note-${ENVIRONMENT}-${key}`, version, [
      { id: derivedId(commandId, 0), type, shape: 1, data: { text }, subject: null, public: [], meta },
    ]);
  }

  async function found(): Promise<readonly Difference[]> {
    const all: Difference[] = [];
    for await (const difference of differences([notes as never], { events, readModels })) all.push(difference);
    return all;
  }

  const spoil = (id: string, text: string | null) =>
    readModels.table(tableOf(notes)).write([{ environment: ENVIRONMENT, id, position: '9999999999999999', revision: 9, text }]);

  it('finds rows as the log says, deleted ones included', async () => {
    expect(await found()).toEqual([]);
  });

  it('names a row that is different, one that is missing and one too many', async () => {
    await spoil('a', JSON.stringify({ text: 'text 2', count: 4 }));
    await spoil('b', null);
    await spoil('d', JSON.stringify({ text: 'text 0', count: 1 }));
    expect(await found()).toMatchObject([
      { id: 'a', stored: '{"text":"text 2","count":4}', rebuilt: '{"text":"text 2","count":3}' },
      { id: 'b', stored: null },
      { id: 'd', rebuilt: null },
    ]);
  });

  it('does not mind in which order the keys of a row stand', async () => {
    await spoil('a', JSON.stringify({ count: 3, text: 'text 2' }));
    expect(await found()).toEqual([]);
  });

  it('is not misled by what is written meanwhile', async () => {
    let isWriting = true;
    const writing = (async () => {
      for (let version = 3; isWriting; version++) await write('b', version, `text ${version}`);
    })();
    for (let times = 0; times < 5; times++) expect(await found()).toEqual([]);
    isWriting = false;
    await writing;
  });

  it('is repaired by a rebuild', async () => {
    await spoil('a', null);
    await projector.refill();
    expect(await found()).toEqual([]);
  });
});
