import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { metaOf } from '#libs/event-sourcing/src/deciding/records';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { createMembership, membershipDecider, setRoles, type HeldRole } from '../domain/membership.decider.ts';
import type { RoleDirectory } from '../readers/role-directory.ts';
import { GrantedRoles } from './granted-roles.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const ORGANIZATION = 'org_01J00000000000000000000000';
const USER = 'user_01J00000000000000000000000';
const KEY = 'key';
const HAD: HeldRole = { id: 'role_01HZZZZZZZZZZZZZZZZZZZZZZ1', slug: 'org-had' };
const GIVEN: HeldRole = { id: 'role_01HZZZZZZZZZZZZZZZZZZZZZZ2', slug: 'org-given' };

describe('a role that is given behind an intent to delete it', () => {
  const clock = new SystemClock();
  const stream = streamName('organization_roles', ENVIRONMENT, ORGANIZATION);
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let repository: LogRepository;
  let given: GrantedRoles;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'granted-roles-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    const readModels = new LmdbReadModels(storage);
    repository = new LogRepository(
      events,
      readModels,
      new Naming(createSecretKey(Buffer.alloc(32, 1))),
      clock,
      new PinoLog({ level: 'silent', readable: false }),
    );
    const statuses = async (_context: RequestContext, _organization: string, roles: readonly HeldRole[]) => {
      const last = (await events.last(stream))!;
      const closing = last.type === 'organization_role.closing' ? { intent: 'one', at: '' } : null;
      return roles.map(({ id }) => ({ stream, id, allows: true, closing, since: last.position }));
    };
    given = new GrantedRoles(repository, { statuses } as unknown as RoleDirectory, events, clock, readModels);
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const command = (): RequestContext => ({ ...systemContext(ENVIRONMENT, clock.now()), actor: { id: 'key', source: 'api', name: null } });
  const again = (context: RequestContext): RequestContext => ({ ...context, receipt: {}, attempt: 2 });

  async function say(type: 'organization_role.closing' | 'organization_role.reopened'): Promise<void> {
    const meta = metaOf(command(), clock.now(), ORGANIZATION);
    const event: NewEvent = { id: newUlid(clock.now()), type, shape: 1, data: { id: GIVEN.id, intent: 'one' }, subject: null, public: [], meta };
    await events.append(stream, (await events.last(stream))?.version ?? 0, [event]);
  }

  it('is taken back once, also where the command comes again, and what was held before stays', async () => {
    const { state } = await repository.transact(
      membershipDecider,
      command(),
      KEY,
      createMembership({ user_id: USER, organization_id: ORGANIZATION, roles: [HAD] }),
    );
    await say('organization_role.closing');
    const context = command();
    const give = async (own: RequestContext): Promise<void> => {
      await repository.transact(membershipDecider, own, KEY, setRoles(state!.id, [GIVEN]));
      await given.settle(own, { organizationId: ORGANIZATION, key: KEY, roles: [GIVEN] });
    };
    const refused = expect.objectContaining({ code: 'invalid_role' }) as unknown;
    await expect(give(context)).rejects.toEqual(refused);
    await say('organization_role.reopened');
    for (let times = 0; times < 2; times++) await expect(give(again(context))).rejects.toEqual(refused);
    expect(await repository.load(membershipDecider, ENVIRONMENT, KEY)).toMatchObject({ roles: [HAD] });
  });
});
