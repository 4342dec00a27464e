import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { primariesOf } from '#libs/event-sourcing/src/views/view';
import { LogPositions } from '#libs/event-sourcing/src/views/log.positions';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { groupRoleAssignmentDecider, groupRoleAssignments } from '../domain/group-role-assignment.decider.ts';
import { roleAssignmentDecider, roleAssignments } from '../domain/role-assignment.decider.ts';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { roleAssignmentsView } from '../views/role-assignments.view.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const ORGANIZATION = 'org_01J00000000000000000000001';
const GROUP = 'group_01J00000000000000000000002';

describe('assignments of what is gone', () => {
  const clock = new SystemClock();
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let repository: LogRepository;
  let reaction: Reaction;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'assignments-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    const readModels = new LmdbReadModels(storage);
    const log = new PinoLog({ level: 'silent', readable: false });
    repository = new LogRepository(events, readModels, new Naming(createSecretKey(Buffer.alloc(32, 1))), clock, log);
    repository.registerPrimaryView(roleAssignmentsView);
    repository.registerPrimaryView(groupRoleAssignmentsView);
    const cascade = new Cascade(repository, new LogPositions(new LogFollowing(events, clock, log), { all: [] }), readModels, clock);
    reaction = cascade.reactionOf(
      [roleAssignmentDecider as never, groupRoleAssignmentDecider as never],
      primariesOf([roleAssignmentsView, groupRoleAssignmentsView]),
    );
    // An empty log has no position to be at.
    await give(id('om'));
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const id = (prefix: string) => `${prefix}_${newUlid(clock.now())}`;
  const role = { id: id('role'), slug: 'editor' };
  const resourceOf = (resource: string) => ({ id: resource, external_id: 'seven', resource_type_slug: 'project' });

  /** Its stream. */
  async function give(membership: string, resource = id('authz_resource')): Promise<string> {
    const key = roleAssignments.keyOf(membership, role.id, resource);
    const given = { organization_id: ORGANIZATION, organization_membership_id: membership, role, resource: resourceOf(resource) };
    await repository.transact(roleAssignmentDecider, systemContext(ENVIRONMENT, clock.now()), key, roleAssignments.assign(given));
    return streamName('role_assignment', ENVIRONMENT, key);
  }

  async function giveGroup(resource = id('authz_resource')): Promise<string> {
    const key = groupRoleAssignments.keyOf(GROUP, role.id, resource);
    const given = { organization_id: ORGANIZATION, group_id: GROUP, role, resource: resourceOf(resource) };
    await repository.transact(groupRoleAssignmentDecider, systemContext(ENVIRONMENT, clock.now()), key, groupRoleAssignments.assign(given));
    return streamName('group_role_assignment', ENVIRONMENT, key);
  }

  /** Tells the reaction that something was deleted. */
  async function gone(type: string, deleted: string, at = clock.now()): Promise<void> {
    await reaction.react({ type, data: { id: deleted }, position: await events.head(), meta: { environment: ENVIRONMENT, at } } as RecordedEvent);
  }

  /** Tells the reaction of what was recorded in a stream. */
  async function hear(stream: string): Promise<void> {
    for (const event of await events.read(stream)) await reaction.react(event);
  }

  async function isDeleted(stream: string): Promise<boolean> {
    return (await events.read(stream)).at(-1)!.type.endsWith('.deleted');
  }

  it('are deleted, and no others', async () => {
    const [membership, other] = [id('om'), id('om')];
    const streams = await Promise.all(Array.from({ length: 250 }, () => give(membership)));
    const rest = [await give(other), await giveGroup()];
    await gone('organization_membership.deleted', membership);
    for (const stream of streams) expect(await isDeleted(stream)).toBe(true);
    for (const stream of rest) expect(await isDeleted(stream)).toBe(false);
  });

  it('are deleted whatever it is that is gone', async () => {
    const [membership, resource] = [id('om'), id('authz_resource')];
    const kinds: readonly (readonly [string, string, string, string])[] = [
      ['resource.deleted', resource, await give(membership, resource), await giveGroup(resource)],
      ['role.deleted', role.id, await give(id('om')), await giveGroup()],
      ['organization_role.deleted', role.id, await give(id('om')), await giveGroup()],
      ['organization.deleted', ORGANIZATION, await give(id('om')), await giveGroup()],
    ];
    for (const [type, deleted, direct, ofGroup] of kinds) {
      await gone(type, deleted);
      expect([type, await isDeleted(direct), await isDeleted(ofGroup)]).toEqual([type, true, true]);
    }
    const ofGroup = await giveGroup();
    await gone('group.deleted', GROUP);
    expect(await isDeleted(ofGroup)).toBe(true);
  });

  it('are deleted once, however often it is told', async () => {
    const membership = id('om');
    const stream = await give(membership);
    await gone('organization_membership.deleted', membership);
    await gone('organization_membership.deleted', membership);
    await hear(stream);
    expect(await events.read(stream)).toHaveLength(2);
  });
});
