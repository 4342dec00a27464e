import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reopenWhatWasLeftClosed, undoWhatMayNotHang } from '#libs/event-sourcing/src/deciding/guards/hanging';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { metaOf } from '#libs/event-sourcing/src/deciding/records';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type NewEvent, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf, type View } from '#libs/event-sourcing/src/views/view';
import { ViewFold } from '#libs/event-sourcing/src/views/view-fold';
import { SystemClock } from '#libs/platform/src/clock';
import type { AuthorizationSettings } from '#libs/platform/src/config/settings';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { recordsAfter } from '#libs/testing/src/records-after';
import { AccessIndex } from '../access/access-index.ts';
import { authorization } from '../authorization.module.ts';
import { groupRoleAssignments } from '../domain/group-role-assignment.decider.ts';
import { organizationResourceId } from '../domain/resource-tree.ts';
import { roleAssignments } from '../domain/role-assignment.decider.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { ParentRows } from '../repositories/parent-rows.ts';
import { ResourceRows } from '../repositories/resource-rows.ts';
import { ResourceTrees } from '../repositories/resource-trees.ts';
import { CLOSED, hangings } from './hangings.ts';
import { Reopening } from './reopening.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const ORGANIZATION = 'org_01J00000000000000000000000';
const ROOT = organizationResourceId(ORGANIZATION);
const TOP = { id: null, slug: 'organization' };
const [ABOVE, BELOW] = ['resource_type_01J00000000000000000000001', 'resource_type_01J00000000000000000000002'] as const;
const [MEMBERSHIP, GROUP] = ['om_01J00000000000000000000000', 'group_01J00000000000000000000000'] as const;
const ROLE = 'role_01J00000000000000000000000';

/** What was recorded by somebody who died before the look. */
describe('what was recorded behind an intent', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let access: AccessIndex;
  let reaction: Reaction;
  let sweeper: Reaction;
  let heard: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hangings-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    const readModels = new LmdbReadModels(storage);
    const clock = new SystemClock();
    const log = new PinoLog({ level: 'silent', readable: false });
    const follow = async (): Promise<void> => {
      const records = await everything();
      for (const view of authorization.views) await new ViewFold(view as View<unknown>, readModels.table(tableOf(view as View<unknown>))).apply(records);
    };
    const views = Object.assign(Object.create(ReadYourWrites.prototype) as ReadYourWrites, { waitForHead: follow, waitForViews: async () => {} });
    const settings = { ACCESS_INDEX_MEMORY: 1e9 } as AuthorizationSettings;
    access = new AccessIndex(events, views, settings, clock, log, new LogFollowing(events, clock, log), readModels, new Metrics());
    const trees = new ResourceTrees(access, events, clock, log, views, new ResourceRows(access, views, readModels));
    const repository = new LogRepository(events, readModels, new Naming(createSecretKey(Buffer.alloc(32, 1))), clock, log);
    const declared = hangings({ parents: new ParentRows(readModels), repository, trees, clock });
    reaction = undoWhatMayNotHang('spec', CLOSED, declared, { events, readModels, positions: { reached: follow }, clock });
    const reopening = new Reopening(repository, new AuthorizationModels(repository, clock, readModels), trees, clock);
    sweeper = reopenWhatWasLeftClosed('spec', reopening.byThing(), { events, clock });
    heard = START;
    await tell('organization', ORGANIZATION, ['organization.created', { id: ORGANIZATION, name: 'Acme' }]);
    await model(['resource_type.created', { id: ABOVE, slug: 'above', name: 'Above', description: null, parents: [TOP] }]);
    await model(['resource_type.created', { id: BELOW, slug: 'below', name: 'Below', description: null, parents: [TOP, { id: ABOVE, slug: 'above' }] }]);
    await tell('organization_membership', 'key', [
      'organization_membership.created',
      { id: MEMBERSHIP, organization_id: ORGANIZATION, user_id: 'user_01J00000000000000000000000', status: 'active', roles: [] },
    ]);
    await tell('group', GROUP, ['group.created', { id: GROUP, organization_id: ORGANIZATION }]);
    await access.start();
  });
  afterEach(async () => {
    await access.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  type Told = readonly [type: string, data: object];

  /** Several by the same command. Answers the last record. */
  async function tell(category: string, key: string, ...told: readonly Told[]): Promise<RecordedEvent> {
    return tellAt(Date.now(), category, key, ...told);
  }

  async function tellAt(at: number, category: string, key: string, ...told: readonly Told[]): Promise<RecordedEvent> {
    const stream = streamName(category, ENVIRONMENT, key);
    const context = { ...systemContext(ENVIRONMENT, at), actor: { id: 'key', source: 'api', name: null } as const };
    const meta = metaOf(context, at, category === 'authorization_model' ? undefined : ORGANIZATION);
    const records = told.map(([type, data]): NewEvent => ({ id: newUlid(at), type, shape: 1, data, subject: null, public: [], meta }));
    await events.append(stream, (await events.last(stream))?.version ?? 0, records);
    return (await events.last(stream))!;
  }

  const model = (...told: readonly Told[]) => tell('authorization_model', ENVIRONMENT, ...told);
  const tree = (...told: readonly Told[]) => tell('resource_tree', ORGANIZATION, ...told);
  const roles = (...told: readonly Told[]) => tell('organization_roles', ORGANIZATION, ...told);
  const closing = (thing: string, id: string, intent = 'one'): Told => [`${thing}.closing`, { id, intent }];
  const reopened = (thing: string, id: string, intent = 'one'): Told => [`${thing}.reopened`, { id, intent }];

  function resource(number: number, type: string, parent = ROOT): Told {
    const id = `authz_resource_01J0000000000000000000000${number}`;
    const texts = { external_id: `thing-${number}`, name: 'Thing', description: null };
    return [
      'resource.created',
      { id, organization_id: ORGANIZATION, resource_type_id: type, resource_type_slug: 'slug', parent_resource_id: parent, ...texts },
    ];
  }
  const idOf = ([, data]: Told): string => (data as { readonly id: string }).id;

  const everything = (): Promise<readonly RecordedEvent[]> => recordsAfter(events, START);

  /** The reaction hears everything, and what follows from that. */
  async function hear(): Promise<void> {
    for (let news: readonly RecordedEvent[]; (news = (await everything()).filter(({ position }) => position > heard)).length > 0;)
      for (const event of news) {
        if (reaction.handles.includes(event.type)) await reaction.react(event);
        heard = event.position;
      }
  }

  const typesOf = async (category: string, key: string) => (await events.read(streamName(category, ENVIRONMENT, key))).map(({ type }) => type);
  const lastOf = async (category: string, key: string) => (await events.last(streamName(category, ENVIRONMENT, key)))!;

  it('is a resource that ends, whatever became of the intent later', async () => {
    await model(closing('resource_type', BELOW));
    await tree(resource(1, BELOW));
    await model(reopened('resource_type', BELOW));
    await hear();
    expect(await typesOf('resource_tree', ORGANIZATION)).toEqual(['resource.created', 'resource.deleted']);
    await hear();
    expect(await typesOf('resource_tree', ORGANIZATION)).toHaveLength(2);
  });

  it('stays where it was recorded before the intent, or after its end', async () => {
    await tree(resource(1, BELOW));
    await model(closing('resource_type', BELOW));
    await model(reopened('resource_type', BELOW));
    await tree(resource(2, BELOW));
    await model(closing('resource_type', ABOVE));
    await tree(resource(3, BELOW));
    await hear();
    expect(await typesOf('resource_tree', ORGANIZATION)).toEqual(['resource.created', 'resource.created', 'resource.created']);
  });

  it('is a resource of a type, or under one, that was taken away', async () => {
    const parent = resource(1, ABOVE);
    await tree(parent);
    await model(closing('resource_type', BELOW), ['resource_type.updated', { id: BELOW, parents: [TOP] }], reopened('resource_type', BELOW));
    await tree(resource(2, BELOW, idOf(parent)));
    await tree(resource(3, BELOW));
    await hear();
    expect((await lastOf('resource_tree', ORGANIZATION)).data).toEqual({ id: idOf(resource(2, BELOW)) });
    await model(closing('resource_type', ABOVE), ['resource_type.deleted', { id: ABOVE }]);
    await tree(resource(4, ABOVE));
    await hear();
    expect((await lastOf('resource_tree', ORGANIZATION)).data).toEqual({ id: idOf(resource(4, ABOVE)) });
    expect(await typesOf('resource_tree', ORGANIZATION)).toEqual([
      'resource.created',
      'resource.created',
      'resource.created',
      'resource.deleted',
      'resource.created',
      'resource.deleted',
    ]);
  });

  it('is a move that goes back, with what came with it', async () => {
    const [first, second, moved] = [resource(1, ABOVE), resource(2, ABOVE), resource(3, BELOW, idOf(resource(1, ABOVE)))];
    for (const each of [first, second, moved]) await tree(each);
    await model(closing('resource_type', BELOW));
    await tree(['resource.updated', { id: idOf(moved), name: 'Other' }], ['resource.moved', { id: idOf(moved), parent_resource_id: idOf(second) }]);
    await model(reopened('resource_type', BELOW));
    await hear();
    const told = (await events.read(streamName('resource_tree', ENVIRONMENT, ORGANIZATION))).slice(5);
    expect(told.map(({ type, data }) => ({ type, data }))).toEqual([
      { type: 'resource.updated', data: { id: idOf(moved), name: 'Thing', description: null } },
      { type: 'resource.moved', data: { id: idOf(moved), parent_resource_id: idOf(first) } },
    ]);
  });

  it('is a move that ends under the organization, where it cannot go back', async () => {
    const [first, second, moved] = [resource(1, ABOVE), resource(2, ABOVE), resource(3, BELOW, idOf(resource(1, ABOVE)))];
    for (const each of [first, second, moved]) await tree(each);
    await model(closing('resource_type', BELOW));
    await tree(['resource.moved', { id: idOf(moved), parent_resource_id: idOf(second) }]);
    await tree(['resource.deleted', { id: idOf(first) }]);
    await hear();
    expect(await lastOf('resource_tree', ORGANIZATION)).toMatchObject({ type: 'resource.moved', data: { id: idOf(moved), parent_resource_id: ROOT } });
    expect(await typesOf('resource_tree', ORGANIZATION)).toHaveLength(6);
  });

  it('leaves alone what was moved again since', async () => {
    const [first, moved] = [resource(1, ABOVE), resource(2, BELOW)];
    for (const each of [first, moved]) await tree(each);
    await model(closing('resource_type', BELOW));
    await tree(['resource.moved', { id: idOf(moved), parent_resource_id: idOf(first) }]);
    await model(reopened('resource_type', BELOW));
    await tree(['resource.moved', { id: idOf(moved), parent_resource_id: ROOT }]);
    await hear();
    expect(await typesOf('resource_tree', ORGANIZATION)).toHaveLength(4);
  });

  const custom = (id: string, type: string | null): Told => [
    'organization_role.created',
    {
      ...{ id, organization_id: ORGANIZATION, slug: `org-${id.slice(-1)}`, name: 'Role', description: null, permissions: [] },
      ...{ resource_type_id: type, resource_type_slug: 'slug' },
    },
  ];

  it('is a role of an organization that ends', async () => {
    await roles(custom('role_01J00000000000000000000001', BELOW));
    await model(closing('resource_type', BELOW));
    await roles(custom('role_01J00000000000000000000002', BELOW));
    await roles(custom('role_01J00000000000000000000003', ABOVE));
    await hear();
    expect(await lastOf('organization_roles', ORGANIZATION)).toMatchObject({
      type: 'organization_role.deleted',
      data: { id: 'role_01J00000000000000000000002' },
    });
    expect(await typesOf('organization_roles', ORGANIZATION)).toHaveLength(4);
  });

  /** Each of both kinds; answers which are left. */
  async function give(number: number): Promise<() => Promise<readonly boolean[]>> {
    const on = { id: idOf(resource(number, BELOW)), external_id: 'x', resource_type_slug: 'below' };
    const shared = { organization_id: ORGANIZATION, role: { id: ROLE, slug: 'org-role' }, resource: on };
    const keys = [
      ['role_assignment', roleAssignments.keyOf(MEMBERSHIP, ROLE, on.id), { organization_membership_id: MEMBERSHIP }],
      ['group_role_assignment', groupRoleAssignments.keyOf(GROUP, ROLE, on.id), { group_id: GROUP }],
    ] as const;
    for (const [category, key, who] of keys) await tell(category, key, [`${category}.created`, { id: `${category}_${number}`, ...shared, ...who }]);
    return async () => Promise.all(keys.map(async ([category, key]) => (await lastOf(category, key)).type.endsWith('.created')));
  }

  it.each<readonly [string, boolean, () => Promise<unknown>]>([
    ['the role is closed', true, () => roles(closing('organization_role', ROLE))],
    // With the role, what was given before is gone too.
    ['the role is gone', false, () => roles(['organization_role.deleted', { id: ROLE }])],
    ['the resource is closed', true, () => tree(closing('resource', idOf(resource(2, BELOW))))],
    ['the resource is gone', true, () => tree(['resource.deleted', { id: idOf(resource(2, BELOW)) }])],
  ])('is an assignment that ends, where %s', async (_, stays, narrow) => {
    await roles(custom(ROLE, BELOW));
    for (const number of [1, 2]) await tree(resource(number, BELOW));
    const before = await give(1);
    await narrow();
    const behind = await give(2);
    await hear();
    expect(await before()).toEqual([stays, stays]);
    expect(await behind()).toEqual([false, false]);
  });

  it.each<readonly [string, number, () => Promise<unknown>]>([
    ['membership', 0, () => tell('organization_membership', 'key', ['organization_membership.deleted', { id: MEMBERSHIP }])],
    ['group', 1, () => tell('group', GROUP, ['group.deleted', { id: GROUP }])],
  ])('is an assignment that ends, where the %s is gone', async (_, place, remove) => {
    await roles(custom(ROLE, BELOW));
    await tree(resource(2, BELOW));
    await remove();
    const behind = await give(2);
    await hear();
    expect(await behind()).toEqual([place !== 0, place !== 1]);
  });

  it('is ended with the intent, once that was left open for ten seconds', async () => {
    await roles(custom(ROLE, BELOW));
    await tree(resource(1, BELOW));
    const things: readonly (readonly [string, string, string, string])[] = [
      ['authorization_model', ENVIRONMENT, 'resource_type', BELOW],
      ['organization_roles', ORGANIZATION, 'organization_role', ROLE],
      ['resource_tree', ORGANIZATION, 'resource', idOf(resource(1, BELOW))],
    ];
    for (const [category, key, thing, id] of things) {
      const left = await tellAt(Date.now() - 10_001, category, key, closing(thing, id));
      await sweeper.react(left);
      expect(await lastOf(category, key)).toMatchObject({ type: `${thing}.reopened`, data: { id, intent: 'one' } });
      await sweeper.react(left);
      const young = await tell(category, key, closing(thing, id, 'two'));
      await expect(sweeper.react(young)).rejects.toMatchObject({ kind: 'unavailable' });
      expect((await lastOf(category, key)).type).toBe(`${thing}.closing`);
    }
  });
});
