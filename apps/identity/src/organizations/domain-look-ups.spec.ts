import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { readSettings } from '#libs/platform/src/config/setting';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { derivedId } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { startDnsServer, type DnsServer } from '#libs/testing/src/dns-server';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { until } from '#libs/testing/src/until';
import { createEnvironment, environmentDecider } from '../domain/environment.decider.ts';
import { createOrganization, restartVerification, organizationDecider } from '../domain/organization.decider.ts';
import { environmentsView } from '../views/environments.view.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { DnsDomainVerifier } from './dns.domain-verifier.ts';
import { DomainLookUps } from './domain-look-ups.ts';
import { DomainVerification, type DomainAddress } from './domain-verification.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const token = 'abcdefghijklmnopqrstuvwxy';

describe('the look-ups of a pending domain', () => {
  let dns: DnsServer;
  let directory: string;
  let storage: LmdbStorage;
  let clock: SettableClock;
  let events: LmdbEventStore;
  let repository: LogRepository;
  let environment: string;
  let verification: DomainVerification;
  let newLookUps: () => DomainLookUps;
  let stopping: AbortController;
  let working: Promise<void>;

  beforeEach(async () => {
    dns = await startDnsServer();
    directory = await mkdtemp(join(tmpdir(), 'look-ups-'));
    storage = await LmdbStorage.open({ directory });
    clock = new SettableClock();
    events = new LmdbEventStore(storage);
    const readModels = new LmdbReadModels(storage);
    const log = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });
    repository = new LogRepository(events, readModels, new Naming(createSecretKey(Buffer.alloc(32))), clock, log);
    repository.registerPrimaryView(environmentsView);
    repository.registerPrimaryView(organizationsView);
    const verifier = new DnsDomainVerifier(readSettings(IdentitySettings, { DNS_SERVERS: dns.address }));
    verification = new DomainVerification(repository, verifier);
    newLookUps = () => new DomainLookUps(verification, new LogFollowing(events, clock, log), clock, log, readModels, new Metrics());

    const context = systemContext(SYSTEM_ENVIRONMENT, clock.now());
    environment = `environment_${derivedId(context.commandId, 0)}`;
    await repository.transact(environmentDecider, context, environment, createEnvironment({ name: 'test', client_id: 'client_1' }));
    stopping = new AbortController();
    working = Promise.resolve();
  });
  afterEach(async () => {
    stopping.abort();
    await working;
    await storage.close();
    await dns.close();
    await rm(directory, { recursive: true });
  });

  async function pendingDomain(domain: string): Promise<DomainAddress> {
    const context = systemContext(environment, clock.now());
    const organization = `org_${derivedId(context.commandId, 0)}`;
    const domains = [{ domain, state: 'pending', verification_prefix: 'prefix', verification_token: token } as const];
    const { state } = await repository.transact(organizationDecider, context, organization, createOrganization({ name: 'Acme', domains }, 100));
    return { environment, organization, domain: state!.domains[0]!.id };
  }

  const restart = ({ organization, domain }: DomainAddress) =>
    repository.transact(organizationDecider, systemContext(environment, clock.now()), organization, restartVerification(domain));

  const watch = (age: 'watchYoung' | 'watchOld') => (working = newLookUps()[age](stopping.signal));

  async function stop(): Promise<void> {
    stopping.abort();
    await working;
    stopping = new AbortController();
  }

  const timesAsked = (domain: string) => dns.asked.filter((name) => name === domain).length;

  const stateIs = (address: DomainAddress, state: string) => until(async () => (await verification.find(address))?.state === state);

  /** Long enough for a look-up that was due, since the young are looked through ten times a second. */
  const settle = () => pause(400);

  it('come at once, then after 5 s, 30 s, 2 min and 10 min, and then no more from here', async () => {
    void watch('watchYoung');
    await pendingDomain('young.test');
    await until(() => timesAsked('young.test') === 1);
    let at = 0;
    for (const [index, due] of [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE].entries()) {
      clock.forward(due - at - 1);
      await settle();
      expect(timesAsked('young.test')).toBe(index + 1);
      clock.forward(1);
      at = due;
      await until(() => timesAsked('young.test') === index + 2);
    }
    clock.forward(10 * MINUTE);
    await settle();
    expect(timesAsked('young.test')).toBe(5);
  });

  it('begin again when they are asked for', async () => {
    void watch('watchYoung');
    const address = await pendingDomain('again.test');
    await until(() => timesAsked('again.test') === 1);
    clock.forward(HOUR);
    await restart(address);
    await until(() => timesAsked('again.test') === 2);
    clock.forward(5 * SECOND);
    await until(() => timesAsked('again.test') === 3);
  });

  it('go on in a new process where the old one was', async () => {
    const address = await pendingDomain('taken-over.test');
    clock.forward(20 * SECOND);
    void watch('watchYoung');
    await until(() => timesAsked('taken-over.test') === 1);
    await stop();
    dns.answers('taken-over.test', `verification_token=${token}`);
    clock.forward(10 * SECOND);
    void watch('watchYoung');
    await stateIs(address, 'verified');
  });

  it('come every hour, in the minute in which its window began', async () => {
    const address = await pendingDomain('old.test');
    clock.forward(7 * HOUR + 5 * MINUTE);
    void watch('watchOld');
    await settle();
    expect(timesAsked('old.test')).toBe(0);
    clock.forward(55 * MINUTE);
    await until(() => timesAsked('old.test') === 1);
    // However long nobody looked.
    clock.forward(20 * DAY + 30 * MINUTE);
    await until(() => timesAsked('old.test') === 2);
    await settle();
    expect(timesAsked('old.test')).toBe(2);
    dns.answers('old.test', `verification_token=${token}`);
    clock.forward(HOUR);
    await stateIs(address, 'verified');
  });

  it('go on in the minute that another process left unfinished', async () => {
    await pendingDomain('unfinished.test');
    clock.forward(HOUR + MINUTE);
    void watch('watchOld');
    await until(() => timesAsked('unfinished.test') === 1);
  });

  it('verify a domain once, also where two processes look for a moment', async () => {
    const address = await pendingDomain('twice.test');
    dns.answers('twice.test', `verification_token=${token}`);
    working = Promise.all([newLookUps().watchYoung(stopping.signal), newLookUps().watchYoung(stopping.signal)]).then(() => {});
    await stateIs(address, 'verified');
    await settle();
    const records = await events.read(streamName('organization', environment, address.organization));
    expect(records.filter(({ type }) => type === 'organization_domain.verified')).toHaveLength(1);
  });

  it('end after 30 days', async () => {
    const address = await pendingDomain('expired.test');
    clock.forward(30 * DAY);
    void watch('watchOld');
    await stateIs(address, 'failed');
  });

  it('do not end 30 days after the beginning where they were asked for since', async () => {
    const address = await pendingDomain('kept.test');
    clock.forward(20 * DAY);
    await restart(address);
    clock.forward(10 * DAY);
    void watch('watchOld');
    await until(() => timesAsked('kept.test') === 1);
    await stop();
    expect((await verification.find(address))?.state).toBe('pending');
  });
});
