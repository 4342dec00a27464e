import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { EngineProcess } from '#libs/testing/src/engines/engine-process';
import { eventstore, SMALL_SERVER } from '#libs/testing/src/engines/eventstore';
import { startByCommand } from '#libs/testing/src/engines/eventstore-command';
import { freePort } from '#libs/testing/src/engines/free-port';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { interrupted } from './interrupted/interrupted.ts';
import { leaderBy, Members } from './interrupted/members.ts';
import { verdictOn, type Written } from './interrupted/verdict.ts';

const log = new PinoLog({ level: 'silent', readable: false });
const STANDBY = join(dirname(SMALL_SERVER), 'standby.js');
const SMALL = { writers: 8, followers: 4, calm: 700, frozen: 2_000 };
const NOTHING = { lost: [], doubled: [], unknown: [], misplaced: [], apart: [] };

/** The program that `npm run proofs -- interrupted` runs on a cluster of the real server, here on one server alone. */
describe('a server that is killed and frozen under writers and followers', () => {
  let directory: WatchedDirectory;
  let members: Members;
  let opened: EventstoredbEventStore[];

  beforeEach(async () => {
    directory = WatchedDirectory.create('interrupted');
    members = await Members.start(directory, 1);
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map((store) => store.close()));
    await members.close();
    directory.remove();
  });

  const connect = async (): Promise<EventstoredbEventStore> => {
    const store = await EventstoredbEventStore.connect({ url: members.url, installation: 'gatehouse', log });
    opened.push(store);
    return store;
  };

  it('loses nothing, doubles nothing, and shows every follower the same order', async () => {
    const { events, verdict, refused, pauses } = await interrupted({ ...SMALL, members, connect, interruptions: ['kill', 'freeze', 'kill'] });
    expect([verdict, refused, pauses.length]).toEqual([NOTHING, [], 3]);
    expect(events).toBeGreaterThan(100);
  }, 90_000);

  it('is found out when it forgets what it acknowledged', async () => {
    const onKilled = async ({ folder }: { readonly folder: string }, kills: number): Promise<void> => {
      const [data, kept] = [join(folder, 'data'), join(folder, 'kept')];
      if (kills === 1) return cpSync(data, kept, { recursive: true });
      rmSync(data, { recursive: true });
      cpSync(kept, data, { recursive: true });
    };
    const { verdict, refused } = await interrupted({ ...SMALL, members, connect, interruptions: ['kill', 'kill'], onKilled });
    expect(verdict.lost.length).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(0);
    expect(verdict.apart).toHaveLength(SMALL.followers);
  }, 180_000);
});

/** Standbys take over from a leader that is killed, on the same log: enough for what the program does with more than one member. */
describe('three members whose leader is killed', () => {
  const directory = WatchedDirectory.create('interrupted-standbys');
  const shared = join(directory.path, 'shared');
  const opened: EventstoredbEventStore[] = [];
  let processes: readonly EngineProcess[] = [];
  afterAll(async () => {
    await Promise.all(opened.map((store) => store.close()));
    await Promise.all(processes.map((each) => each.close()));
    directory.remove();
  });

  it('go on under the next, and lose nothing', async () => {
    mkdirSync(shared);
    const ports = [await freePort(), await freePort(), await freePort()];
    processes = await Promise.all(
      ports.map((port, index) => {
        const [name, host] = [`standby-${index}`, `127.0.0.1:${port}`];
        const isReady = async (): Promise<boolean> => (await leaderBy(host)) !== null;
        return startByCommand(`${process.execPath} ${STANDBY} {data} {port} ${shared}`, directory, {
          name,
          port,
          address: eventstore.addressAt(port),
          isReady,
        });
      }),
    );
    const members = new Members(processes);
    const connect = async (): Promise<EventstoredbEventStore> => {
      const store = await EventstoredbEventStore.connect({ url: members.url, installation: 'gatehouse', log });
      opened.push(store);
      return store;
    };
    const killed: string[] = [];
    const onKilled = async ({ name }: EngineProcess): Promise<void> => void killed.push(name);
    const { verdict, refused, events } = await interrupted({ ...SMALL, members, connect, interruptions: ['kill', 'kill'], onKilled });
    expect([verdict, refused]).toEqual([NOTHING, []]);
    expect(events).toBeGreaterThan(100);
    // Another led by then.
    expect(new Set(killed).size).toBe(2);
  }, 120_000);
});

describe('the verdict on a log', () => {
  const written = (...ids: readonly string[]): readonly Written[] => ids.map((id, index) => ({ id, stream: 'thing-1', version: index + 1 }));
  const [log_, ids] = [written('a', 'b', 'c'), ['a', 'b', 'c']];

  it('is good where everybody was told and shown what is there', () => {
    expect(verdictOn(log_, log_, [ids, ids])).toEqual(NOTHING);
  });

  it.each([
    ['what was acknowledged and is not there', written('a', 'b'), log_, ['a', 'b'], { lost: ['c'] }],
    ['what is there twice', written('a', 'b', 'c', 'b'), log_, ['a', 'b', 'c', 'b'], { doubled: ['b'], misplaced: ['b'] }],
    ['what nobody was told', written('a', 'b', 'c', 'd'), log_, ['a', 'b', 'c', 'd'], { unknown: ['d'] }],
    ['what is not where it was said to be', written('a', 'c', 'b'), log_, ['a', 'c', 'b'], { misplaced: ['b', 'c'] }],
    ['a version that is missing', [log_[0]!, log_[2]!], [log_[0]!, log_[2]!], ['a', 'c'], { misplaced: ['c'] }],
    ['another order than that of the log', log_, log_, ['a', 'c', 'b'], { apart: ['follower 1 at 1'] }],
    ['a follower that missed something', log_, log_, ['a', 'b'], { apart: ['follower 1 at 2'] }],
    ['a follower that was shown something twice', log_, log_, ['a', 'a', 'b', 'c'], { apart: ['follower 1 at 1'] }],
  ])('names %s', (_what, log, acknowledged, seen, found) => {
    const verdict = verdictOn(log, acknowledged, [log.map(({ id }) => id), seen]);
    expect({ ...verdict, misplaced: [...verdict.misplaced].sort() }).toEqual({ ...NOTHING, ...found });
  });
});
