import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { CurrentStates } from '#libs/event-sourcing/src/following/current-states';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import type { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { FaultyLog } from '#libs/testing/src/faulty-log';
import { membershipDecider, membershipKey } from '../domain/membership.decider.ts';
import { organizationDecider } from '../domain/organization.decider.ts';
import { DirectoryStandings } from '../readers/directory-standings.ts';
import { SignInPeople } from './sign-in-people.ts';

const ORGANIZATION = 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const USER = 'user_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const ACTIVE = { object: 'organization_membership', id: 'om_01HZZZZZZZZZZZZZZZZZZZZZZZ', status: 'active', managed_by: null };

describe('a membership that a sign-in asks for', () => {
  const [organization, membership] = [
    streamName(organizationDecider.category, SYSTEM_ENVIRONMENT, ORGANIZATION),
    streamName(membershipDecider.category, SYSTEM_ENVIRONMENT, membershipKey(ORGANIZATION, USER)),
  ];
  let directory: string;
  let storage: LmdbStorage;
  let log: FaultyLog;
  let current: CurrentStates;
  let people: SignInPeople;
  /** What the log says of each stream, and how often that was read. */
  let states: Map<string, unknown>;
  let loads: number;
  let areReadable: boolean;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sign-in-people-'));
    storage = await LmdbStorage.open({ directory });
    log = new FaultyLog();
    loads = 0;
    areReadable = true;
    states = new Map<string, unknown>([
      [organization, { object: 'organization' }],
      [membership, ACTIVE],
    ]);
    const load: Repository['load'] = async ({ category }, environment, key) => {
      loads++;
      if (!areReadable) throw unavailable('The log is away.');
      return (states.get(streamName(category, environment, key)) ?? null) as never;
    };
    const silent = new PinoLog({ level: 'silent', readable: false });
    current = new CurrentStates({ load }, new LogFollowing(log, new SystemClock(), silent));
    people = new SignInPeople(
      { load } as Repository,
      null as unknown as ReadYourWrites,
      current,
      new DirectoryStandings(log, current, new LmdbReadModels(storage)),
      new LmdbReadModels(storage),
    );
    await current.start();
  });
  afterEach(async () => {
    await current.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const asked = () => people.membership(systemContext(SYSTEM_ENVIRONMENT, Date.now()), USER, ORGANIZATION);
  const recorded = (stream: string, state: unknown): void => {
    states.set(stream, state);
    log.record('changed', 1, stream);
  };

  it('is read once', async () => {
    for (let time = 0; time < 3; time++) expect(await asked()).toMatchObject({ id: ACTIVE.id });
    expect(loads).toBe(2);
  });

  it.each<[string, () => void]>([
    ['it was deleted', () => recorded(membership, { ...ACTIVE, object: 'deleted_organization_membership' })],
    ['it was deactivated', () => recorded(membership, { ...ACTIVE, status: 'inactive' })],
    ['its organization was deleted', () => recorded(organization, { object: 'deleted_organization' })],
  ])('is none from the moment at which %s', async (_, end) => {
    expect(await asked()).toMatchObject({ id: ACTIVE.id });
    end();
    expect(await asked()).toBeNull();
  });

  it('is refused where neither it nor its organization can be read, and no failure goes unheard: that would end the process', async () => {
    areReadable = false;
    await expect(asked()).rejects.toMatchObject({ code: 'service_unavailable' });
    // A failure that nobody hears of is told after the turn.
    await pause(1);
    areReadable = true;
    expect(await asked()).toMatchObject({ id: ACTIVE.id });
  });

  it('is told by nobody who does not know the end of the log', async () => {
    expect(await asked()).toMatchObject({ id: ACTIVE.id });
    log.fail('away');
    await expect(asked()).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});
