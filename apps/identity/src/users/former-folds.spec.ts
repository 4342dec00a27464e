import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateUser, UpdateUser } from '#libs/contracts/src/users/operations';
import { Deletions, deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { SystemClock } from '#libs/platform/src/clock';
import { newCommandId, newUlid } from '#libs/platform/src/ids';
import { readSettings } from '#libs/platform/src/config/setting';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Stamps } from '#libs/read-models/src/stamps';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { createUser, userDecider, type UserEvent } from '../domain/user.decider.ts';
import { EnvironmentPasswordRules } from '../passwords/password-rules.ts';
import { AddressHolders } from '../readers/address-holders.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { KnownStates } from '../readers/known-states.ts';
import { ShownUsers } from '../readers/shown-users.ts';
import { usersView } from '../views/users.view.ts';
import { Passwords } from '../passwords/passwords.ts';
import { PasswordWork } from '../passwords/password-work.ts';
import { InvitedAddresses } from './invited-addresses.ts';
import { Users } from './users.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const clock = new SystemClock();
const naming = new Naming(createSecretKey(Buffer.alloc(32, 1)));

describe('a user whose email was compared in another spelling before', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let readModels: LmdbReadModels;
  let repository: LogRepository;
  let users: Users;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'former-folds-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    readModels = new LmdbReadModels(storage);
    repository = new LogRepository(events, readModels, naming, clock, new PinoLog({ level: 'silent', readable: false }));
    repository.registerPrimaryView(usersView);
    const keys = await LmdbKeyStore.open(storage.keys, []);
    const passwords = new Passwords(keys, new PasswordWork(clock, new Metrics()), readSettings(IdentitySettings, {}));
    const shown = new ShownUsers(new Stamps({ readModels, clock, log: new PinoLog({ level: 'silent', readable: false }), metrics: new Metrics() }));
    const states = new KnownStates(new LogFollowing(events, clock, new PinoLog({ level: 'silent', readable: false })), repository, clock);
    users = new Users(
      repository,
      passwords,
      new EnvironmentPasswordRules(new EnvironmentSettingsReader(states)),
      new Deletions(readModels, deletionsView('identity', [])),
      events,
      new AddressHolders(naming, keys, clock),
      shown,
      new InvitedAddresses(Object.assign(Object.create(ReadYourWrites.prototype) as ReadYourWrites, { waitForHead: async () => {} }), readModels),
      readModels,
    );
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  function context(): RequestContext {
    const now = clock.now();
    const actor = { id: 'key_1', source: 'api', name: null } as const;
    return { environment: ENVIRONMENT, actor, requestId: 'request_1', commandId: newCommandId(now), deadline: now + 10_000, receipt: {} };
  }

  /** As the release before recorded it: one claim, of the address in NFC and lower case, and the user with the address as it was given. */
  async function former(email: string, claimed: string): Promise<string> {
    const id = `user_${newUlid(clock.now())}`;
    const meta = { environment: ENVIRONMENT, actor: context().actor, requestId: 'request_0', commandId: newUlid(clock.now()), at: clock.now() - 60_000 };
    const record = (type: string, data: object) => ({ id: newUlid(clock.now()), type, shape: 1, data, subject: null, public: [], meta });
    await events.append(naming.claimStream(ENVIRONMENT, 'user.email', claimed), 0, [record('claim.taken', { category: 'user', key: id })]);
    const person = { email_verified: true, first_name: null, last_name: null, name: 'Before', external_id: null, metadata: {} };
    const stream = `user-${ENVIRONMENT}-${id}`;
    const { position } = await events.append(stream, 0, [record('user.created', { id, email, ...person })]);
    const [recorded] = await events.read(stream);
    const text = JSON.stringify(usersView.evolve(null, recorded as Recorded<UserEvent>, id));
    await readModels.table(tableOf(usersView)).write([{ environment: ENVIRONMENT, id, position, revision: 1, text }]);
    return id;
  }

  const create = async (email: string) => (await users.create(Object.assign(new CreateUser(), { email, context: context() }))).id;
  const update = (id: string, fields: object) => users.update(Object.assign(new UpdateUser(), { id, ...fields, context: context() }));
  /** Decided without looking: what the claims alone hold. */
  const claim = (email: string) => repository.transact(userDecider, context(), `user_${newUlid(clock.now())}`, createUser({ email }, null));
  const taken = expect.objectContaining({ details: expect.objectContaining({ errors: [expect.objectContaining({ code: 'email_not_available' })] }) });
  const ownerOf = async (email: string) =>
    ((await events.last(naming.claimStream(ENVIRONMENT, 'user.email', email)))?.data as { key: string } | undefined)?.key;

  it('shares it with nobody, however it is spelled', async () => {
    await former('Straße@acme.test', 'straße@acme.test');
    for (const email of ['straße@acme.test', 'Straße@acme.test', 'STRASSE@acme.test', 'strasse@acme.test']) await expect(create(email)).rejects.toEqual(taken);
    const other = await create('other@acme.test');
    await expect(update(other, { email: 'strasse@acme.test' })).rejects.toEqual(taken);
  });

  it('holds the former spelling by its claim, and the one of today from its next change on', async () => {
    const id = await former('Straße@acme.test', 'straße@acme.test');
    await expect(claim('straße@acme.test')).rejects.toEqual(taken);
    expect(await ownerOf('strasse@acme.test')).not.toBe(id);
    await update(id, { name: 'After' });
    expect(await ownerOf('strasse@acme.test')).toBe(id);
    await expect(claim('strasse@acme.test')).rejects.toEqual(taken);
  });

  it('claims the spelling of today as any other where that becomes its own', async () => {
    const id = await former('Straße@acme.test', 'straße@acme.test');
    await update(id, { email: 'strasse@acme.test' });
    await expect(claim('strasse@acme.test')).rejects.toEqual(taken);
    await claim('straße@other.test');
    await expect(claim('strasse@other.test')).rejects.toEqual(taken);
    // A process of the release before claims nothing but this.
    expect(await ownerOf('straße@other.test')).toBeDefined();
  });

  it('changes although a second one has had the same address since then', async () => {
    const [one, two] = [await former('Straße@acme.test', 'straße@acme.test'), await former('strasse@acme.test', 'strasse@acme.test')];
    expect(await update(one, { name: 'One' })).toMatchObject({ name: 'One', email: 'Straße@acme.test' });
    expect(await update(two, { name: 'Two' })).toMatchObject({ name: 'Two' });
    await expect(update(one, { email: 'strasse@acme.test' })).rejects.toEqual(taken);
    await expect(create('STRASSE@acme.test')).rejects.toEqual(taken);
  });

  it('leaves it to others in both spellings', async () => {
    const id = await former('Straße@acme.test', 'straße@acme.test');
    await update(id, { email: 'ada@acme.test' });
    const next = await create('strasse@acme.test');
    await update(next, { email: 'eve@acme.test' });
    await create('straße@acme.test');
  });
});
