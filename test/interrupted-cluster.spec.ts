import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { interrupted } from './interrupted/interrupted.ts';
import { Members } from './interrupted/members.ts';

const KILLS = 8;
const FREEZES = 6;
/** Longer than a cluster takes to notice that its leader is frozen. */
const GOES_ON_MS = 60_000;
const log = new PinoLog({ level: 'silent', readable: false });

describe("three members of EventStoreDB's own server, whose leader is killed and frozen under 32 writers and four followers", () => {
  const directory = WatchedDirectory.create('interrupted-cluster');
  const opened: EventstoredbEventStore[] = [];
  let members: Members | null = null;
  afterAll(async () => {
    await Promise.all(opened.map((store) => store.close()));
    await members?.close();
    directory.remove();
  });

  it('lose nothing, double nothing, and show every follower the same order', async () => {
    members = await Members.start(directory, 3);
    const { url } = members;
    const connect = async (): Promise<EventstoredbEventStore> => {
      const store = await EventstoredbEventStore.connect({ url, installation: 'gatehouse', log });
      opened.push(store);
      return store;
    };
    const interruptions = Array.from({ length: KILLS + FREEZES }, (_, index) => (index % 2 === 0 || index > 2 * FREEZES ? 'kill' : 'freeze'));
    expect(interruptions.filter((each) => each === 'freeze')).toHaveLength(FREEZES);
    const say = (line: string): void => console.error(line);
    const { events, verdict, refused, pauses } = await interrupted({
      members,
      connect,
      writers: 32,
      followers: 4,
      interruptions,
      calm: 10_000,
      frozen: 0,
      say,
    });
    say(`${events} events; until the next append was acknowledged: ${pauses.join(', ')} ms.`);
    expect([verdict, refused]).toEqual([{ lost: [], doubled: [], unknown: [], misplaced: [], apart: [] }, []]);
    expect(Math.max(...pauses)).toBeLessThan(GOES_ON_MS);
    expect(events).toBeGreaterThan(1_000);
  }, 3_600_000);
});
