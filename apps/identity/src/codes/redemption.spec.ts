import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateMagicAuth } from '#libs/contracts/src/magic-auth/operations';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import type { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { readSettings } from '#libs/platform/src/config/setting';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { givenKeys } from '#libs/testing/src/given-keys';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { deleteUser, updateUser, userDecider } from '../domain/user.decider.ts';
import { AttemptCounts } from '../risk/attempt-counts.ts';
import { RadarAttempts } from '../risk/radar-attempts.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { KnownStates } from '../readers/known-states.ts';
import { magicAuthsView } from '../views/one-time-codes.view.ts';
import { usersView } from '../views/users.view.ts';
import { AbsentCodes } from './absent-codes.ts';
import { CodePolicies } from './code-policies.ts';
import { CodeRequests } from './code-requests.ts';
import { DeliverableAddresses } from './deliverable-addresses.ts';
import { DnsMailDomains } from './dns.mail-domains.ts';
import { InvitationTokens } from './invitation-tokens.ts';
import { MagicAuths } from './magic-auths.ts';
import { Mailboxes } from './mailboxes.ts';
import { OneTimeCodes } from './one-time-codes.ts';
import { PersonalLimits } from './personal-limits.ts';
import { SentCodes } from './sent-codes.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const email = 'ada@codes.test';
/** Counters have windows that begin with minutes and days. */
const START_OF_DAY = Date.parse('2026-01-15T00:00:00.000Z');

describe('magic codes, redeemed in several processes', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let rows: LmdbReadModels;
  let store: LmdbShortLived;
  let keys: KeyStore;
  let clock: SettableClock;
  let repository: LogRepository;
  let replicas: readonly MagicAuths[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'redemption-'));
    storage = await LmdbStorage.open({ directory });
    keys = await givenKeys(join(directory, 'given'));
    clock = new SettableClock(START_OF_DAY);
    [events, rows, store] = [new LmdbEventStore(storage), new LmdbReadModels(storage), new LmdbShortLived(storage, clock)];
    repository = repositoryOf();
    replicas = [0, 1, 2].map(() => magicAuths());
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const log = new PinoLog({ level: 'silent', readable: false });

  function repositoryOf(): LogRepository {
    const made = new LogRepository(events, rows, naming, clock, log);
    for (const view of [usersView, magicAuthsView]) made.registerPrimaryView(view as never);
    return made;
  }
  const naming = new Naming(createSecretKey(Buffer.alloc(32)));

  function magicAuths(): MagicAuths {
    const own = repositoryOf();
    const states = new KnownStates(new LogFollowing(events, clock, log), own, clock);
    const reader = new EnvironmentSettingsReader(states);
    const policies = new CodePolicies(reader);
    // Nothing is assessed where nobody says where the person is.
    const attempts = new RadarAttempts(undefined as never, new AttemptCounts(store, naming, clock), reader, clock, store);
    const codes = new OneTimeCodes(keys, store, clock);
    const absent = new AbsentCodes(store, naming, clock);
    const sent = new SentCodes(own, codes, absent, clock, policies, rows);
    const requests = new CodeRequests(new PersonalLimits(store, naming, clock));
    const settings = readSettings(IdentitySettings, {});
    const addresses = new DeliverableAddresses(new DnsMailDomains(settings, clock), settings);
    return new MagicAuths(new Mailboxes(own, rows), policies, requests, addresses, new InvitationTokens(codes, own, clock), absent, attempts, sent);
  }

  const context = (): RequestContext => ({ ...systemContext(ENVIRONMENT, clock.now()), actor: { id: 'key_1', source: 'api', name: null } });
  const create = (replica = 0, fields: object = {}) =>
    replicas[replica]!.create(Object.assign(new CreateMagicAuth(), { context: context(), email, ...fields }));
  const redeem = (code: string, sessionId: string, replica = 0, as = context()) => replicas[replica]!.redeem(as, { email, code, sessionId });
  const other = (code: string): string => String((Number(code) + 1) % 1_000_000).padStart(6, '0');
  const settled = async (asked: readonly Promise<unknown>[]): Promise<readonly string[]> =>
    (await Promise.allSettled(asked)).map((one) => (one.status === 'fulfilled' ? 'redeemed' : (one.reason as { code: string }).code));

  it('let one session in, of all that ask at once, and verify the address', async () => {
    const { code, user_id, id } = await create();
    const outcomes = await settled(replicas.map((_, replica) => redeem(code, `session_${replica}`, replica)));
    expect([...outcomes].sort()).toEqual(['one_time_code_previously_used', 'one_time_code_previously_used', 'redeemed']);
    expect(await repository.load(magicAuthsView.decider, ENVIRONMENT, user_id)).toMatchObject({
      id,
      redemption: { by: `session_${outcomes.indexOf('redeemed')}` },
    });
    expect(await repository.load(userDecider, ENVIRONMENT, user_id)).toMatchObject({ email_verified: true });
  });

  it('let the same session ask again for 30 s, and nobody after that', async () => {
    const { code, user_id, id } = await create();
    expect(await redeem(code, 'session_1')).toMatchObject({ user: { id: user_id, email_verified: true }, magicAuthId: id });
    clock.forward(30_000);
    expect(await redeem(code, 'session_1', 1)).toMatchObject({ user: { id: user_id, email_verified: true }, magicAuthId: id });
    await expect(redeem(code, 'session_2', 1)).rejects.toMatchObject({ code: 'one_time_code_previously_used' });
    clock.forward(1);
    await expect(redeem(code, 'session_1', 1)).rejects.toMatchObject({ code: 'one_time_code_previously_used' });
  });

  it('are tried five times together, whichever comes first of all that ask at once', async () => {
    const { code } = await create();
    const tried = await settled(Array.from({ length: 12 }, (_, place) => redeem(place < 9 ? other(code) : code, 'session_1', place % 3)));
    expect(tried.filter((outcome) => outcome === 'invalid_one_time_code')).toHaveLength(5);
    expect(new Set(tried.slice(9)).size).toBe(1);
    await expect(redeem(code, 'session_1')).rejects.toMatchObject({ code: 'one_time_code_too_many_attempts' });
    const { code: next } = await create();
    await redeem(next, 'session_1');
  });

  it('may be shown rightly as often as anybody likes, at once as well, as long as nobody has guessed five times', async () => {
    const { code } = await create();
    for (let times = 0; times < 4; times++) await expect(redeem(other(code), 'session_1', times % 3)).rejects.toMatchObject({ code: 'invalid_one_time_code' });
    const shown = await settled(Array.from({ length: 12 }, (_, place) => redeem(code, 'session_1', place % 3)));
    expect(shown).toEqual(shown.map(() => 'redeemed'));
    for (let times = 0; times < 6; times++) await expect(redeem(code, 'session_2')).rejects.toMatchObject({ code: 'one_time_code_previously_used' });
    await expect(redeem(other(code), 'session_1')).rejects.toMatchObject({ code: 'invalid_one_time_code' });
    await expect(redeem(code, 'session_1')).rejects.toMatchObject({ code: 'one_time_code_too_many_attempts' });
  });

  it('expire after 10 minutes, which only who knows the code is told', async () => {
    const { code } = await create();
    clock.forward(600_000);
    await expect(redeem(other(code), 'session_1')).rejects.toMatchObject({ code: 'invalid_one_time_code' });
    await expect(redeem(code, 'session_1')).rejects.toMatchObject({ code: 'one_time_code_expired' });
  });

  it('are nobody else, of another address, or of a deleted user', async () => {
    await expect(redeem('123456', 'session_1')).rejects.toMatchObject({ code: 'invalid_one_time_code' });
    const { code, user_id } = await create();
    await repository.transact(userDecider, context(), user_id, updateUser(user_id, { email: 'grace@codes.test' }, null));
    await expect(replicas[1]!.redeem(context(), { email: 'grace@codes.test', code, sessionId: 'session_1' })).rejects.toMatchObject({
      code: 'invalid_one_time_code',
    });
    await repository.transact(userDecider, context(), user_id, updateUser(user_id, { email }, null));
    await repository.transact(userDecider, context(), user_id, deleteUser(user_id));
    await expect(redeem(code, 'session_1')).rejects.toMatchObject({ code: 'invalid_one_time_code' });
  });

  it('are sent three times a minute and 50 times a day to a mailbox, however it is written and whoever is asked', async () => {
    for (const [replica, spelling] of [email, email.toUpperCase(), ` ${email}`].entries()) await create(replica, { email: spelling });
    await expect(create()).rejects.toMatchObject({ code: 'rate_limit_exceeded', details: { retryAfter: 60 } });
    await create(1, { email: 'grace@codes.test' });
    for (let sent = 3; sent < 50; sent++) {
      clock.forward(60_000);
      await create(sent % 3);
    }
    clock.forward(60_000);
    await expect(create()).rejects.toMatchObject({ code: 'daily_quota_exceeded' });
    clock.forward(24 * 60 * 60_000);
    await create();
  });

  it('are asked for 30 times a minute from one network, of which an IPv6 address names 64 bits', async () => {
    const from = (ip_address: string, place: number) => create(place % 3, { email: `${place}@codes.test`, ip_address });
    await Promise.all(Array.from({ length: 30 }, (_, place) => from(`2001:db8:1:2::${place.toString(16)}`, place)));
    await expect(from('2001:db8:1:2:3::', 30)).rejects.toMatchObject({ code: 'rate_limit_exceeded' });
    await from('2001:db8:1:3::1', 31);
  });

  it('have ids of their own in whichever order a command that is repeated finds its user', async () => {
    const first = context();
    const operation = (as: RequestContext) => Object.assign(new CreateMagicAuth(), { context: as, email });
    const made = await replicas[0]!.create(operation(first));
    const again = { ...first, attempt: 2, receipt: {} };
    expect(await replicas[1]!.create(operation(again))).toEqual(made);
    const ids = (await events.read(`magic_auth-${ENVIRONMENT}-${made.user_id}`)).map(({ id }) => id);
    const ofUser = (await events.read(`user-${ENVIRONMENT}-${made.user_id}`)).map(({ id }) => id);
    expect(ids).toHaveLength(1);
    expect(ofUser).not.toContain(ids[0]);
    // Whether the user was there before makes no difference to the ids of what follows.
    await create(1);
    const [, second] = (await events.read(`magic_auth-${ENVIRONMENT}-${made.user_id}`)).map(({ id }) => id);
    expect(second!.slice(-4)).toBe(ids[0]!.slice(-4));
  });
});
