import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { markedFieldsOf } from '#libs/event-sourcing/src/sealing/marked-fields';
import { SealingEventStore } from '#libs/event-sourcing/src/sealing/sealing.event-store';
import { SystemClock } from '#libs/platform/src/clock';
import { newCommandId, newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { endSession, proveFactor, sessionDecider } from '../domain/session.decider.ts';
import { createUser, deleteUser, linkData, userDecider } from '../domain/user.decider.ts';
import { sessionsView } from '../views/sessions.view.ts';
import { usersView } from '../views/users.view.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const clock = new SystemClock();

describe('what lies of a user under other keys', () => {
  let directory: string;
  let storage: LmdbStorage;
  let stored: LmdbEventStore;
  let keys: LmdbKeyStore;
  let repository: LogRepository;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'linked-data-'));
    storage = await LmdbStorage.open({ directory });
    stored = new LmdbEventStore(storage);
    keys = await LmdbKeyStore.open(storage.keys, []);
    const events = new SealingEventStore(stored, keys, markedFieldsOf({}));
    const log = new PinoLog({ level: 'silent', readable: false });
    repository = new LogRepository(events, new LmdbReadModels(storage), new Naming(Buffer.alloc(32, 1)), clock, log);
    for (const view of [usersView, sessionsView] as const) repository.registerPrimaryView(view as never);
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

  it('is known from the log, by row and by stream, and the log says what is sealed for whom', async () => {
    const creation = context();
    const id = `user_${creation.commandId}`;
    const { state: user } = await repository.transact(userDecider, creation, id, createUser({ email: 'ada@acme.test', name: 'Ada' }, null));
    const holder = `invitation.invitation_${newUlid(clock.now())}`;
    await repository.transact(userDecider, context(), id, linkData(id, holder));
    expect(await repository.load(userDecider, ENVIRONMENT, id)).toEqual({ ...user, holders: [holder] });
    expect((await repository.transact(userDecider, context(), id, linkData(id, holder))).facts).toEqual([]);
    await repository.transact(userDecider, context(), id, deleteUser(id));
    const late = `session.session_${newUlid(clock.now())}`;
    await repository.transact(userDecider, context(), id, linkData(id, late));
    expect(await repository.load(userDecider, ENVIRONMENT, id)).toMatchObject({ object: 'deleted_user', holders: [holder, late] });

    const records = await stored.read(`user-${ENVIRONMENT}-${id}`);
    expect(records.map(({ type, public: announced, sealed }) => [type, announced.length, sealed])).toEqual([
      ['user.created', 1, [{ of: `user.${id}`, fields: ['data.email', 'subject.email', 'data.name', 'subject.name', 'data.metadata', 'subject.metadata'] }]],
      ['user.data_linked', 0, []],
      ['user.deleted', 1, [{ of: `user.${id}`, fields: ['subject.email', 'subject.name', 'subject.metadata'] }]],
      ['user.data_linked', 0, []],
    ]);
    expect(JSON.stringify(records)).not.toContain('ada@acme.test');
    expect((await keys.findMany([`person.user-${ENVIRONMENT}-${id}`])).size).toBe(1);
  });

  it('is decided on as the log has it once their key is gone, whatever rows still say', async () => {
    const [id, user_id] = ['session_1', 'user_1'];
    const about = { id, user_id, email: 'ada@acme.test', ip_address: '203.0.113.7', user_agent: 'Browser', has_secret: true, credentials_version: 0 };
    const session = { membership: null, expires_at: '2027-01-01T00:00:00.000Z' };
    await repository.transact(sessionDecider, context(), id, proveFactor('password', about, session));
    await keys.destroy(`person.user-${ENVIRONMENT}-${user_id}`);
    const { state } = await repository.transact(sessionDecider, context(), id, endSession(id, 'parent_deleted'));
    expect(state).toMatchObject({ object: 'ended_session', user_id, ip_address: null, user_agent: null });
    const { type, subject } = (await stored.last(`session-${ENVIRONMENT}-${id}`))!;
    expect([type, subject]).toEqual(['session.revoked', expect.objectContaining({ user_id, ip_address: null, user_agent: null })]);
    // What a command itself brings is recorded nowhere.
    const other = { ...about, id: 'session_2' };
    await expect(repository.transact(sessionDecider, context(), other.id, proveFactor('password', other, session))).rejects.toThrow('was erased');
    expect(await stored.last(`session-${ENVIRONMENT}-${other.id}`)).toBeNull();
  });
});
