import { createSecretKey } from 'node:crypto';
import { DEFAULT_ROLE, seedsOf } from '#libs/contracts/src/roles/seeds';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import type { EventStore, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { tableOf, type View } from '#libs/event-sourcing/src/views/view';
import { SystemClock } from '#libs/platform/src/clock';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { givenEngineSets, type EngineSet } from '#libs/testing/src/engine-sets';
import { recordAndFold } from '#libs/testing/src/recorded-facts';
import type { AuthorizationModel, AuthorizationModelEvent, ModelDecision } from '../domain/authorization-model.decider.ts';
import {
  addOrganizationRolePermission,
  createOrganizationRole,
  organizationRolesDecider,
  updateOrganizationRole,
  type OrganizationRolesEvent,
  type OrganizationRolesState,
} from '../domain/organization-roles.decider.ts';
import { createPermission, deletePermission } from '../domain/permissions.decider.ts';
import { addRolePermission, createRole, setRolePriority, updateRole } from '../domain/roles.decider.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { authorizationModelsView } from '../views/authorization-models.view.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';
import { DropDeletedPermission, TellOfChangedRoles } from './model.reactions.ts';

const clock = new SystemClock();
const log = new PinoLog({ level: 'silent', readable: false });
const naming = new Naming(createSecretKey(Buffer.alloc(32, 1)));

const MOST_BYTES = 4 * 1024 * 1024;
const ROLES = 1_000;
const PAIRS = 20_000;
const ENDED = 10_000;
/** Characters that are longest in JSON. */
const name = '\u0001'.repeat(48);
const description = '\u0001'.repeat(150);

const times = <T>(count: number, make: (number: number) => T): readonly T[] => Array.from({ length: count }, (_, number) => make(number));
const slug = (start: string, number: number): string => `${start}${number}-`.padEnd(48, 'x');
const idOf = (prefix: string): string => `${prefix}_${newUlid(clock.now())}`;
const isAnyone = () => true;

/** A log that is asked again where it did not answer in time, as its followers do: it is filled to its limits beside other work. */
function patient(events: EventStore): EventStore {
  const again = async (ask: () => unknown): Promise<unknown> => {
    try {
      return await ask();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      return again(ask);
    }
  };
  return new Proxy(events, {
    get: (store, property) => {
      const value: unknown = Reflect.get(store, property, store);
      if (typeof value !== 'function') return value;
      const method = value.bind(store) as (...given: readonly unknown[]) => unknown;
      return property === 'read' || property === 'last' || property === 'append' ? (...given: readonly unknown[]) => again(() => method(...given)) : method;
    },
  });
}

/** A log that dies after so many appends. */
function dying(events: EventStore, appends: number): EventStore {
  let left = appends;
  return new Proxy(events, {
    get: (store, property) => {
      if (property === 'append' && left-- <= 0) return () => Promise.reject(new Error('killed'));
      const value: unknown = Reflect.get(store, property, store);
      return typeof value === 'function' ? (value as (...given: unknown[]) => unknown).bind(store) : value;
    },
  });
}

describe.each(await givenEngineSets())('on %s', (_, open) => {
  const test = open === null ? it.skip : it;
  let engines: EngineSet;
  let environment: string;
  let context: () => RequestContext;

  beforeEach(async () => {
    if (open === null) return;
    const opened = await open();
    engines = { ...opened, events: patient(opened.events) };
    environment = idOf('environment');
    // Of a caller, who is refused what the system would have to change.
    context = () => ({ ...systemContext(environment, clock.now()), actor: { id: 'key', source: 'api', name: '\u0001'.repeat(255) } });
  });
  afterEach(() => engines?.close());

  function repositoryOn(events: EventStore): LogRepository {
    const repository = new LogRepository(events, engines.readModels, naming, clock, log);
    repository.registerPrimaryView(authorizationModelsView);
    repository.registerPrimaryView(organizationRolesView);
    return repository;
  }

  const bytesOf = async (view: View<never>, id: string): Promise<number> =>
    Buffer.byteLength((await engines.readModels.table(tableOf(view)).get(environment, id))!.text);

  const eventOf = (type: string, id: string): RecordedEvent =>
    ({
      type,
      data: { id },
      meta: { environment, at: clock.now() },
      position: '',
      stream: '',
      version: 1,
      id: newUlid(clock.now()),
    }) as unknown as RecordedEvent;

  describe('the largest roles of an organization', () => {
    const view = organizationRolesView as unknown as View<never>;
    const organization = 'org_01KF0000000000000000000000';
    const type = { id: 'resource_type_01KF0000000000000000000000', slug: slug('type', 0) };
    const permissions = times(PAIRS / ROLES + 1, (number) => ({ id: idOf('perm'), slug: slug('permission', number) }));
    const [everywhere, ...others] = permissions as [{ readonly id: string; readonly slug: string }, ...{ readonly id: string; readonly slug: string }[]];

    const rolesOf = async (): Promise<OrganizationRolesState> =>
      (await repositoryOn(engines.events).load(organizationRolesDecider, environment, organization))!;
    const streamOf = () => streamName(organizationRolesDecider.category, environment, organization);

    async function given(): Promise<void> {
      const created = (id: string, number: number): OrganizationRolesEvent => ({
        type: 'organization_role.created',
        data: {
          id,
          organization_id: organization,
          slug: slug('org-', number),
          name,
          description,
          resource_type_id: type.id,
          resource_type_slug: type.slug,
          permissions: permissions.slice(0, PAIRS / ROLES),
        },
      });
      const ids = times(ROLES, () => idOf('role'));
      const ended = times(ENDED + 1, (): OrganizationRolesEvent => ({ type: 'organization_role.deleted', data: { id: idOf('role') } }));
      const closing = ids.map((id): OrganizationRolesEvent => ({ type: 'organization_role.closing', data: { id, intent: `${newUlid(clock.now())}.0` } }));
      const [first, ...rest] = ids.map(created);
      await recordAndFold(engines, view, { environment, stream: streamOf(), facts: [first!, ...ended, ...rest, ...closing] });
    }

    test('are a row of at most 4 MiB, and no more can be added to them', async () => {
      await given();
      const bytes = await bytesOf(view, organization);
      expect(bytes).toBeLessThanOrEqual(MOST_BYTES);
      // Nothing that can grow was forgotten.
      expect(bytes).toBeGreaterThan(0.95 * MOST_BYTES);
      const state = await rolesOf();
      expect([state.roles.length, state.ended_ids.length, Object.keys(state.closings!).length]).toEqual([ROLES, ENDED, ROLES]);
      const decide = (decision: ReturnType<typeof createOrganizationRole>) =>
        repositoryOn(engines.events).transact(organizationRolesDecider, context(), organization, decision);
      await expect(decide(createOrganizationRole(organization, { slug: 'org-new', name: 'New', type }))).rejects.toMatchObject({ code: 'bad_request' });
      const add = addOrganizationRolePermission(slug('org-', 0), others.at(-1)!, isAnyone);
      await expect(decide(add)).rejects.toMatchObject({ code: 'role_permission_limit_reached' });
      // What does not grow goes on.
      await decide(updateOrganizationRole(slug('org-', 0), { name: 'Shorter' }, isAnyone));
      expect((await rolesOf()).roles[0]!.name).toBe('Shorter');
    }, 120_000);

    test('lose a permission, and end with their organization, each told of once, also by a process that takes over in the midst', async () => {
      await given();
      const { roles } = await rolesOf();
      const before = (await engines.events.read(streamOf())).length;
      const positions = { reached: async () => {} };
      const cascadeOn = (events: EventStore) => new Cascade(repositoryOn(events), positions, engines.readModels, clock);
      const dropOn = (events: EventStore): Reaction => new DropDeletedPermission(cascadeOn(events));
      const endOn = (events: EventStore): Reaction => cascadeOn(events).reactionOf([organizationRolesDecider as never], new Map());
      for (const [reactionOn, event] of [
        [dropOn, eventOf('permission.deleted', everywhere.id)],
        [endOn, eventOf('organization.deleted', organization)],
      ] as const) {
        await expect(reactionOn(dying(engines.events, 2)).react(event)).rejects.toThrow('killed');
        await reactionOn(engines.events).react(event);
        // Once more, as after a crash before the checkpoint.
        await reactionOn(engines.events).react(event);
      }
      const told = (await engines.events.read(streamOf(), before + 1)).map((record) => `${record.type} ${(record.data as { readonly id: string }).id}`);
      const once = (kind: string): readonly string[] => roles.map(({ id }) => `organization_role.${kind} ${id}`);
      expect(told).toEqual([...once('updated'), ...once('deleted')]);
      const found = await engines.readModels
        .table(tableOf(view))
        .page(environment, { where: { index: 'permission', values: [everywhere.id] }, order: 'asc', limit: 1 });
      expect(found.rows).toEqual([]);
      expect(await rolesOf()).toMatchObject({ roles: [] });
      expect(await bytesOf(view, organization)).toBeLessThan(MOST_BYTES);
    }, 120_000);
  });

  describe('the largest model of an environment', () => {
    const view = authorizationModelsView as unknown as View<never>;
    const everywhere = idOf('perm');
    /** Without those that are seeded. */
    const OWN_ROLES = ROLES - 2;
    const PERMISSIONS_OF_ROLE = 20;
    const roleSlug = (number: number): string => slug('role', number);
    const extra = times(40, (number) => ({ id: idOf('perm'), slug: slug('extra', number) }));

    const modelsOn = (events: EventStore): AuthorizationModels => new AuthorizationModels(repositoryOn(events), clock, engines.readModels);
    const modelOf = (): Promise<AuthorizationModel> => modelsOn(engines.events).seeded(environment);
    const decide = (decision: ModelDecision) => modelsOn(engines.events).decide(context(), decision);
    const streamOf = () => streamName('authorization_model', environment, environment);
    const organization = { resource_type_id: null, resource_type_slug: 'organization' } as const;

    function permission(id: string, permissionSlug: string, texts: object): AuthorizationModelEvent {
      return { type: 'permission.created', data: { id, slug: permissionSlug, name: 'P', description: null, system: false, ...organization, ...texts } };
    }

    /** All but the last of what there may be, which decisions add; without what does not change with roles where it is not asked for. */
    async function given(hasAll: boolean): Promise<void> {
      const types = times(hasAll ? ROLES : 0, (number) => ({ id: idOf('resource_type'), slug: `type-${number}` }));
      const held = [everywhere, ...times(PERMISSIONS_OF_ROLE - 1, () => idOf('perm'))].map((id, number) => ({ id, slug: slug('permission', number) }));
      const facts: readonly AuthorizationModelEvent[] = [
        { type: 'authorization_model.seeded', data: seedsOf(environment) },
        ...times(hasAll ? ENDED + 1 : 0, (): AuthorizationModelEvent => ({ type: 'role.deleted', data: { id: idOf('role') } })),
        ...types.map(({ id, slug: typeSlug }): AuthorizationModelEvent => ({
          type: 'resource_type.created',
          data: { id, slug: typeSlug, name: 'T', description: null, parents: [{ id: null, slug: 'organization' }] },
        })),
        ...types.map(({ id }): AuthorizationModelEvent => ({ type: 'resource_type.closing', data: { id, intent: `${newUlid(clock.now())}.0` } })),
        ...[...held, ...extra].map(({ id, slug: permissionSlug }) => permission(id, permissionSlug, {})),
        ...times(hasAll ? 780 : 0, (number) => permission(idOf('perm'), slug('long', number), { name, description })),
        ...times(OWN_ROLES, (number): AuthorizationModelEvent => ({
          type: 'role.created',
          data: { id: idOf('role'), slug: roleSlug(number), name, description, ...organization, permissions: held },
        })),
      ];
      await recordAndFold(engines, view, { environment, stream: streamOf(), facts });
    }

    const pairsOf = ({ roles }: AuthorizationModel): number => roles.reduce((sum, { permission_ids }) => sum + permission_ids.length, 0);

    test('is a row of at most 4 MiB, and no more can be added to it', async () => {
      await given(true);
      let model = await modelOf();
      for (const { slug: permissionSlug } of extra.slice(0, PAIRS - pairsOf(model)))
        ({ state: model } = (await decide(addRolePermission(roleSlug(0), permissionSlug))) as { readonly state: AuthorizationModel });
      expect(pairsOf(model)).toBe(PAIRS);
      await expect(decide(addRolePermission(roleSlug(1), extra[0]!.slug))).rejects.toMatchObject({ code: 'role_permission_limit_reached' });
      await expect(decide(createRole({ slug: 'new', name: 'New' }, 'org-'))).rejects.toMatchObject({ code: 'bad_request' });
      const add = (number: number) => decide(createPermission({ slug: slug('more', number), name, description }));
      let added = 0;
      const refusal = await (async () => {
        for (; added < 300; added++) await add(added);
      })().catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: 'authorization_model_limit_reached' });
      expect(added).toBeGreaterThan(0);
      const bytes = await bytesOf(view, environment);
      expect(bytes).toBeLessThanOrEqual(MOST_BYTES);
      expect(bytes).toBeGreaterThan(0.95 * MOST_BYTES);
      // What is shorter than before, or goes, is taken.
      await decide(updateRole(roleSlug(0), { description: null }));
      await decide(createPermission({ slug: 'short', name: 'Short' }));
    }, 120_000);

    test.each([
      ['the end of a permission', (): ModelDecision => deletePermission(everywhere), 'permission.deleted', OWN_ROLES],
      [
        'another order',
        (): ModelDecision => setRolePriority([...times(OWN_ROLES, (number) => roleSlug(OWN_ROLES - 1 - number)), DEFAULT_ROLE, 'admin']),
        'roles.reordered',
        ROLES,
      ],
    ] as const)(
      'changes with %s, and tells of each role once, also by a process that takes over in the midst',
      async (_change, decisionOf, type, changed) => {
        await given(false);
        const before = (await engines.events.read(streamOf())).length;
        const { facts, state } = await decide(decisionOf());
        expect(facts.length).toBeLessThan(changed);
        expect(state!.untold).toHaveLength(changed - facts.length + 1);
        const event = eventOf(type, everywhere);
        const tellOn = (events: EventStore): Reaction => new TellOfChangedRoles(modelsOn(events));
        await expect(tellOn(dying(engines.events, 1)).react(event)).rejects.toThrow('killed');
        for (let time = 0; time < 2; time++) await tellOn(engines.events).react(event);
        const [first, ...told] = await engines.events.read(streamOf(), before + 1);
        expect(first!.type).toBe(type);
        expect(told.map((record) => record.type)).toEqual(times(changed, () => 'role.updated'));
        expect(new Set(told.map(({ data }) => (data as { readonly id: string }).id)).size).toBe(changed);
        // As of the event, and complete.
        expect(told.at(-1)!.subject).toMatchObject({ object: 'role', permissions: expect.any(Array) as unknown });
        expect((await modelOf()).untold).toBeUndefined();
      },
      120_000,
    );
  });
});
