import type { DirectoryLinkEvent } from '#apps/identity/src/domain/directory-link.decider';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { SystemClock } from '#libs/platform/src/clock';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { FaultyLog } from '#libs/testing/src/faulty-log';
import { FollowedPeople } from './followed-people.ts';

describe('whoever waits for what follows from a change of a person', () => {
  let log: FaultyLog;
  let people: FollowedPeople;
  beforeEach(async () => {
    log = new FaultyLog();
    people = new FollowedPeople(new LogFollowing(log, new SystemClock(), new PinoLog({ level: 'silent', readable: false })));
    await people.start();
  });
  afterEach(() => people.stop());

  const PERSON = 'directory_user_01HZZZZZZZZZZZZZZZZZZZZZZZ';
  const records = (version: number, type: DirectoryLinkEvent['type'] = 'directory_link.changed'): void =>
    void log.record(type, 1, `directory_link-${SYSTEM_ENVIRONMENT}-${PERSON}`, { id: PERSON, version });
  const first = (...waits: readonly Promise<string>[]): Promise<string> => Promise.race(waits);

  it('goes on once that is recorded of this version, or a later one, and of nothing less', async () => {
    const earlier = people.reached(SYSTEM_ENVIRONMENT, PERSON, 1).then(() => 'earlier');
    const later = people.reached(SYSTEM_ENVIRONMENT, PERSON, 3).then(() => 'later');
    records(2);
    expect(await first(later, earlier)).toBe('earlier');
    const end = people.reached(SYSTEM_ENVIRONMENT, 'another', 1).then(() => 'a second');
    records(3, 'directory_link.ended');
    expect(await first(end, later)).toBe('later');
    // It was heard of before it was asked for.
    expect(
      await first(
        end,
        people.reached(SYSTEM_ENVIRONMENT, PERSON, 3).then(() => 'at once'),
      ),
    ).toBe('at once');
    // Nobody waits for longer than a second.
    expect(await end).toBe('a second');
  });
});
