import { StillClosing } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import { seedsOf } from '#libs/contracts/src/roles/seeds';
import { specOf } from '#libs/testing/src/decider-spec';
import {
  authorizationModelDecider,
  onModel,
  type AuthorizationModel,
  type AuthorizationModelEvent,
  type ModelDecision,
} from './authorization-model.decider.ts';
import { mayTake } from '#libs/testing/src/until';
import { createPermission, deletePermission, updatePermission } from './permissions.decider.ts';
import { closeForDeletion, closeForUpdate, createResourceType, deleteResourceType, reopenResourceType, updateResourceType } from './resource-types.decider.ts';
import { addRolePermission, createRole, deleteRole, setRolePermissions, setRolePriority, updateRole } from './roles.decider.ts';

const spec = specOf(authorizationModelDecider);
const { id } = spec;
const seeds = seedsOf('environment_01J00000000000000000000000');
const seeded: AuthorizationModelEvent = { type: 'authorization_model.seeded', data: seeds };
const [admin, member] = seeds.roles.map((role) => role.id) as [string, string];

const given = (...events: readonly AuthorizationModelEvent[]) => ({
  when: (decide: ModelDecision) => spec.given(seeded, ...events).when(onModel(seeds, decide)),
});

const organization = { resource_type_id: null, resource_type_slug: 'organization' } as const;
const typeId = (slug: string) => `resource_type_${slug}`;
const permId = (slug: string) => `perm_${slug}`;
const roleId = (slug: string) => `role_${slug}`;
const typed = (slug: string, ...parents: readonly string[]): AuthorizationModelEvent => ({
  type: 'resource_type.created',
  data: {
    id: typeId(slug),
    slug,
    name: slug,
    description: null,
    parents: (parents.length === 0 ? ['organization'] : parents).map((parent) => ({ id: parent === 'organization' ? null : typeId(parent), slug: parent })),
  },
});
const permitted = (slug: string, type = organization as { resource_type_id: string | null; resource_type_slug: string }): AuthorizationModelEvent => ({
  type: 'permission.created',
  data: { id: permId(slug), slug, name: slug, description: null, system: false, ...type },
});
const roled = (slug: string, ...permissions: readonly string[]): AuthorizationModelEvent => ({
  type: 'role.created',
  data: { id: roleId(slug), slug, name: slug, description: null, ...organization, permissions: permissions.map((name) => ({ id: permId(name), slug: name })) },
});
const ref = (slug: string) => ({ id: permId(slug), slug });
const named = (slug: string) => ({ slug, name: 'Name' });
const CUSTOM = 'org-';
const AT = '2026-01-15T12:00:00.000Z';

describe('the model of an environment', () => {
  it('begins with its seeds, once', () => {
    spec
      .given()
      .when(onModel(seeds, () => []))
      .then(seeded);
    given()
      .when(() => [])
      .thenNothing();
  });

  it('is gone through once, however many of its roles are told of', () => {
    const facts = ['read', 'write'].map((slug) => permitted(slug)).concat(['a', 'b', 'c'].map((slug) => roled(slug, 'read')));
    const model = [seeded, ...facts].reduce<AuthorizationModel | null>(
      (state, fact) => authorizationModelDecider.evolve(state, { ...fact, at: AT, version: 1 }),
      null,
    )!;
    let looked = 0;
    const permissions = model.permissions.map(({ slug, ...permission }) => ({
      ...permission,
      get slug() {
        looked++;
        return slug;
      },
    }));
    let state: AuthorizationModel = { ...model, permissions };
    for (const { id: told } of state.roles) {
      const event = { type: 'role.updated', data: { id: told } } as const;
      const after = authorizationModelDecider.evolve(state, { ...event, at: AT, version: 1 })!;
      expect(authorizationModelDecider.toPublicEvent(event, state, after)).toMatchObject({ payload: { id: told } });
      state = after;
    }
    expect(looked).toBe(permissions.length);
  });

  it('begins with its seeds before whatever is asked first', () =>
    spec
      .given()
      .when(onModel(seeds, createRole(named('editor'), CUSTOM)))
      .then(seeded, { type: 'role.created', data: { id: id('role'), slug: 'editor', name: 'Name', description: null, ...organization, permissions: [] } }));

  it('records no seeds with a refusal', () =>
    spec
      .given()
      .when(onModel(seeds, createRole(named('member'), CUSTOM)))
      .thenRefused('role_slug_conflict'));

  it('has the same seeds whenever it is asked', () => {
    expect(seedsOf('environment_01J00000000000000000000000')).toEqual(seeds);
    const other = seedsOf('environment_01J00000000000000000010000');
    expect(other.roles.map((role) => role.id)).not.toEqual([admin, member]);
    expect(seeds.roles.map(({ slug, permissions }) => [slug, permissions.length])).toEqual([
      ['admin', 7],
      ['member', 0],
    ]);
  });
});

describe('a resource type', () => {
  const create = (slug: string, ...parent_type_slugs: readonly string[]) => createResourceType({ ...named(slug), parent_type_slugs });

  it('lies under the organization, or under others', () => {
    given()
      .when(create('workspace', 'organization'))
      .then({
        type: 'resource_type.created',
        data: { id: id('resource_type'), ...named('workspace'), description: null, parents: [{ id: null, slug: 'organization' }] },
      });
    given(typed('workspace'))
      .when(create('project', 'workspace', 'organization', 'workspace'))
      .thenMatching({
        data: {
          parents: [
            { id: typeId('workspace'), slug: 'workspace' },
            { id: null, slug: 'organization' },
          ],
        },
      });
  });

  it('has a slug of its own, and not that of the built-in type', () => {
    given(typed('workspace')).when(create('workspace', 'organization')).thenRefused('resource_type_slug_conflict');
    given().when(create('organization', 'organization')).thenRefused('resource_type_slug_conflict');
  });

  it('lies under nothing that does not exist, itself included', () => {
    given().when(create('project', 'workspace')).thenRefused('entity_not_found');
    given().when(create('workspace', 'workspace')).thenRefused('entity_not_found');
  });

  const five = [typed('a'), typed('b', 'a'), typed('c', 'b'), typed('d', 'c'), typed('e', 'd')];

  it('is at most the fifth under the organization', () => {
    given(...five.slice(0, 4))
      .when(create('e', 'd', 'organization'))
      .thenMatching({ type: 'resource_type.created' });
    given(...five)
      .when(create('f', 'e'))
      .thenRefused('bad_request');
    // The longest way counts.
    given(...five)
      .when(create('f', 'organization', 'e'))
      .thenRefused('bad_request');
  });

  it('does not push those below it deeper than that', () => {
    given(...five, typed('x'))
      .when(updateResourceType('a', { parent_type_slugs: ['x'] }, null))
      .thenRefused('bad_request');
    given(...five, typed('x'))
      .when(updateResourceType('e', { parent_type_slugs: ['d', 'x'] }, null))
      .thenMatching({ type: 'resource_type.updated' });
  });

  it('never lies under itself', () => {
    given(typed('a'))
      .when(updateResourceType('a', { parent_type_slugs: ['a'] }, null))
      .thenRefused('bad_request');
    given(typed('a'), typed('b', 'a'))
      .when(updateResourceType('a', { parent_type_slugs: ['b'] }, null))
      .thenRefused('bad_request');
    given(typed('a'), typed('b', 'a'))
      .when(updateResourceType('a', { parent_type_slugs: ['organization', 'b'] }, null))
      .thenRefused('bad_request');
  });

  it('is judged quickly however many ways lead to it', () => {
    const wide = ['a', 'b', 'c', 'd'].flatMap((level, depth) =>
      Array.from({ length: 40 }, (_, index) =>
        typed(`${level}${index}`, ...(depth === 0 ? [] : Array.from({ length: 40 }, (_parent, above) => `${'abcd'[depth - 1]}${above}`))),
      ),
    );
    const start = performance.now();
    given(...wide)
      .when(create('e', ...Array.from({ length: 40 }, (_, index) => `d${index}`)))
      .thenMatching({ type: 'resource_type.created' });
    expect(performance.now() - start).toBeLessThan(mayTake(2_000));
  });

  it('changes what is given and different', () => {
    given(typed('a'))
      .when(updateResourceType('a', { name: 'Other', description: 'd' }, null))
      .then({ type: 'resource_type.updated', data: { id: typeId('a'), name: 'Other', description: 'd' } });
    given(typed('a'))
      .when(updateResourceType('a', { name: 'a', description: null, parent_type_slugs: ['organization'] }, null))
      .thenNothing();
    given()
      .when(updateResourceType('a', {}, null))
      .thenRefused('entity_not_found');
  });

  const NOW = Date.parse('2026-01-15T12:00:00.000Z');
  const [closing, reopened] = (['resource_type.closing', 'resource_type.reopened'] as const).map(
    (type) =>
      (slug: string, intent = 'mine') =>
        ({ type, data: { id: typeId(slug), intent } }) as const,
  ) as [(slug: string, intent?: string) => AuthorizationModelEvent, (slug: string, intent?: string) => AuthorizationModelEvent];

  it('loses a parent type only while the intent to take it is open, and gets others', () => {
    const two = [typed('a'), typed('b'), typed('c', 'a')];
    const swap = (intent: string | null) => updateResourceType('c', { parent_type_slugs: ['b'] }, intent);
    given(...two)
      .when(swap(null))
      .thenRefused('resource_type_in_use');
    given(...two)
      .when(swap('mine'))
      .thenRefused('resource_type_in_use');
    given(...two, closing('c', 'of another'))
      .when(swap('mine'))
      .thenRefused('resource_type_in_use');
    given(...two, closing('c'), reopened('c'))
      .when(swap('mine'))
      .thenRefused('resource_type_in_use');
    given(...two, closing('c'))
      .when(swap('mine'))
      .thenMatching({ type: 'resource_type.updated', data: { parents: [{ slug: 'b' }] } }, reopened('c'));
    given(...two)
      .when(updateResourceType('c', { parent_type_slugs: ['a', 'b'] }, null))
      .thenMatching({ data: { parents: [{ slug: 'a' }, { slug: 'b' }] } });
  });

  const close = (slug: string, intent = 'mine', now = NOW) => closeForDeletion({ id: typeId(slug), intent, now });

  it('is closed by one intent at a time', () => {
    given(typed('a')).when(close('a')).then(closing('a'));
    given(typed('a'), closing('a')).when(close('a')).thenNothing();
    given(typed('a'), closing('a', 'of another'), reopened('a', 'of another')).when(close('a')).then(closing('a'));
    const model = [typed('a'), closing('a', 'of another')];
    expect(() =>
      given(...model)
        .when(close('a', 'mine', Date.parse('2026-01-15T11:59:10.000Z')))
        .thenNothing(),
    ).toThrow(StillClosing);
    given(typed('b')).when(close('a')).thenRefused('entity_not_found');
    given(typed('a'), typed('b'))
      .when(closeForUpdate({ parent_type_slugs: ['b'] }, { id: typeId('a'), intent: 'mine', now: NOW }))
      .then(closing('a'));
    given(typed('a'))
      .when(closeForUpdate({ parent_type_slugs: ['unknown'] }, { id: typeId('a'), intent: 'mine', now: NOW }))
      .thenRefused('entity_not_found');
  });

  it('is reopened by whoever meets an intent of more than ten seconds', () =>
    given(typed('a'), closing('a', 'abandoned'))
      .when(close('a', 'mine', Date.parse('2026-01-15T11:59:10.001Z')))
      .then(reopened('a', 'abandoned'), closing('a')));

  it('is reopened by its own intent, and by no other', () => {
    given(typed('a'), closing('a'))
      .when(reopenResourceType(typeId('a'), 'mine'))
      .then(reopened('a'));
    given(typed('a'), closing('a'))
      .when(reopenResourceType(typeId('a'), 'of another'))
      .thenNothing();
    given(typed('a'), closing('a'), reopened('a', 'of another'))
      .when(deleteResourceType(typeId('a'), 'mine'))
      .thenMatching({ type: 'resource_type.deleted' });
  });

  it('is deleted while the intent is open, when nothing uses it', () => {
    const remove = () => deleteResourceType(typeId('a'), 'mine');
    const scoped = { resource_type_id: typeId('a'), resource_type_slug: 'a' };
    given(typed('a'), closing('a'))
      .when(remove())
      .then({ type: 'resource_type.deleted', data: { id: typeId('a') } });
    given(typed('a')).when(remove()).thenRefused('resource_type_in_use');
    given(typed('a'), closing('a', 'of another')).when(remove()).thenRefused('resource_type_in_use');
    for (const decision of [remove(), close('a')]) {
      const used: readonly (readonly AuthorizationModelEvent[])[] = [
        [typed('b', 'organization', 'a')],
        [permitted('p', scoped)],
        [{ type: 'role.created', data: { id: roleId('r'), ...named('r'), description: null, ...scoped, permissions: [] } }],
      ];
      for (const uses of used)
        given(typed('a'), ...uses)
          .when(decision)
          .thenRefused('resource_type_in_use');
    }
  });

  it('that is made again under its slug is another', () => {
    const removed: AuthorizationModelEvent = { type: 'resource_type.deleted', data: { id: typeId('a') } };
    given(typed('a'), removed)
      .when(create('a', 'organization'))
      .thenMatching({ data: { id: id('resource_type'), slug: 'a' } });
  });
});

describe('a permission', () => {
  it('is about organizations unless it says otherwise', () => {
    const data = { id: id('perm'), ...named('read'), description: null, system: false };
    given()
      .when(createPermission(named('read')))
      .then({ type: 'permission.created', data: { ...data, ...organization } });
    given(typed('workspace'))
      .when(createPermission({ ...named('read'), resource_type_slug: 'workspace' }))
      .then({ type: 'permission.created', data: { ...data, resource_type_id: typeId('workspace'), resource_type_slug: 'workspace' } });
    given()
      .when(createPermission({ ...named('read'), resource_type_slug: 'workspace' }))
      .thenRefused('entity_not_found');
  });

  it('has a slug of its own', () => {
    given(permitted('read'))
      .when(createPermission(named('read')))
      .thenRefused('permission_slug_conflict');
    given()
      .when(createPermission(named('widgets:sso:manage')))
      .thenRefused('permission_slug_conflict');
  });

  it('stays deleted when its creation is repeated', () => {
    const created: AuthorizationModelEvent = {
      type: 'permission.created',
      data: { id: id('perm'), ...named('read'), description: null, system: false, ...organization },
    };
    given(created, { type: 'permission.deleted', data: { id: id('perm') } })
      .when(createPermission(named('read')))
      .thenRefused('entity_not_found');
  });

  it('changes what is given and different', () => {
    given(permitted('read'))
      .when(updatePermission('read', { name: 'Read', description: null }))
      .then({ type: 'permission.updated', data: { id: permId('read'), name: 'Read' } });
    given(permitted('read'))
      .when(updatePermission('read', { name: 'read' }))
      .thenNothing();
    given().when(updatePermission('read', {})).thenRefused('entity_not_found');
  });

  it('of the system stays as it is', () => {
    given()
      .when(updatePermission('widgets:sso:manage', { name: 'x' }))
      .thenRefused('forbidden');
    given().when(deletePermission(seeds.permissions[0]!.id)).thenRefused('forbidden');
  });

  it('is deleted, and each role that held it is told of', () => {
    const all = [permitted('read'), permitted('write'), roled('a', 'read', 'write'), roled('b', 'write'), roled('c', 'read')];
    given(...all)
      .when(deletePermission(permId('read')))
      .then(
        { type: 'permission.deleted', data: { id: permId('read') } },
        { type: 'role.updated', data: { id: roleId('a') } },
        { type: 'role.updated', data: { id: roleId('c') } },
      );
    // Nobody has it under its slug again.
    const deleted: AuthorizationModelEvent = { type: 'permission.deleted', data: { id: permId('read') } };
    given(...all, deleted, { ...permitted('read'), data: { ...permitted('read').data, id: permId('again') } } as AuthorizationModelEvent)
      .when(addRolePermission('a', 'read'))
      .thenMatching({
        data: {
          permissions: [ref('write'), { id: permId('again') }],
        },
      });
  });
});

describe('a role', () => {
  it('goes to the bottom, without permissions', () => {
    given()
      .when(createRole(named('editor'), CUSTOM))
      .then({
        type: 'role.created',
        data: { id: id('role'), ...named('editor'), description: null, ...organization, permissions: [] },
      });
  });

  it('is of a type that exists', () => {
    given(typed('a'))
      .when(createRole({ ...named('editor'), resource_type_slug: 'a' }, CUSTOM))
      .thenMatching({ data: { resource_type_id: typeId('a'), resource_type_slug: 'a' } });
    given()
      .when(createRole({ ...named('editor'), resource_type_slug: 'a' }, CUSTOM))
      .thenRefused('entity_not_found');
  });

  it('has a slug of its own, and none of an organization', () => {
    given()
      .when(createRole(named('admin'), CUSTOM))
      .thenRefused('role_slug_conflict');
    given()
      .when(createRole(named('org-editor'), CUSTOM))
      .thenRefused('bad_request');
  });

  it('stays deleted when its creation is repeated', () =>
    given(
      { type: 'role.created', data: { id: id('role'), ...named('x'), description: null, ...organization, permissions: [] } },
      { type: 'role.deleted', data: { id: id('role') } },
    )
      .when(createRole(named('x'), CUSTOM))
      .thenRefused('entity_not_found'));

  it('changes what is given and different', () => {
    given(roled('a'))
      .when(updateRole('a', { name: 'A', description: 'd' }))
      .then({ type: 'role.updated', data: { id: roleId('a'), name: 'A', description: 'd' } });
    given(roled('a'))
      .when(updateRole('a', { name: 'a', description: null }))
      .thenNothing();
    given().when(updateRole('a', {})).thenRefused('entity_not_found');
  });

  const two = [permitted('read'), permitted('write'), roled('a', 'read')];

  it('holds the permissions that it is given, each once', () => {
    given(...two)
      .when(setRolePermissions('a', ['write', 'read', 'write']))
      .then({ type: 'role.updated', data: { id: roleId('a'), permissions: [ref('write'), ref('read')] } });
    given(...two)
      .when(setRolePermissions('a', []))
      .then({ type: 'role.updated', data: { id: roleId('a'), permissions: [] } });
    given(...two)
      .when(setRolePermissions('a', ['read']))
      .thenNothing();
    given(...two)
      .when(setRolePermissions('a', ['read', 'unknown']))
      .thenRefused('entity_not_found');
    given(...two)
      .when(setRolePermissions('b', []))
      .thenRefused('entity_not_found');
  });

  it('is given one more, which it may have already', () => {
    given(...two)
      .when(addRolePermission('a', 'write'))
      .then({ type: 'role.updated', data: { id: roleId('a'), permissions: [ref('read'), ref('write')] } });
    given(...two)
      .when(addRolePermission('a', 'read'))
      .thenNothing();
    given(...two)
      .when(addRolePermission('a', 'unknown'))
      .thenRefused('entity_not_found');
  });

  it('holds no more permissions than an event can show', () => {
    const many = Array.from({ length: 1_001 }, (_, index) => permitted(`p${index}`));
    const slugs = many.map((_, index) => `p${index}`);
    given(...many, roled('a', ...slugs.slice(1)))
      .when(addRolePermission('a', 'p0'))
      .thenRefused('bad_request');
    given(...many, roled('a'))
      .when(setRolePermissions('a', slugs.slice(1)))
      .thenMatching({ type: 'role.updated' });
  });

  it('is deleted unless it is the default one', () => {
    given(roled('a'))
      .when(deleteRole(roleId('a'), 'member'))
      .then({ type: 'role.deleted', data: { id: roleId('a') } });
    given().when(deleteRole(member, 'member')).thenRefused('bad_request');
    given()
      .when(deleteRole(admin, 'member'))
      .then({ type: 'role.deleted', data: { id: admin } });
  });
});

describe('how much there can be', () => {
  it.each<[string, number, (slug: string) => AuthorizationModelEvent, ModelDecision]>([
    ['resource types', 1_000, (slug) => typed(slug), createResourceType({ ...named('last'), parent_type_slugs: ['organization'] })],
    // The seeds are among them.
    ['permissions', 10_000 - seeds.permissions.length, (slug) => permitted(slug), createPermission(named('last'))],
    ['roles', 1_000 - seeds.roles.length, (slug) => roled(slug), createRole(named('last'), CUSTOM)],
  ])('is limited for %s', (_, most, created, create) => {
    const events = Array.from({ length: most }, (_, index) => created(`number-${index}`));
    given(...events.slice(1))
      .when(create)
      .thenMatching({ data: { slug: 'last' } });
    given(...events)
      .when(create)
      .thenRefused('bad_request');
  });
});

describe('the priority of roles', () => {
  const three = [roled('a'), roled('b'), roled('c')];

  it('is the order that is given, and each role that moved is told of', () =>
    given(...three)
      .when(setRolePriority(['member', 'admin', 'a', 'b', 'c']))
      .then(
        { type: 'roles.reordered', data: { role_ids: [member, admin, roleId('a'), roleId('b'), roleId('c')] } },
        { type: 'role.updated', data: { id: member } },
        { type: 'role.updated', data: { id: admin } },
      ));

  it('leaves what is not named behind, as it was', () =>
    given(...three)
      .when(setRolePriority(['c', 'admin']))
      .thenMatching(
        { data: { role_ids: [roleId('c'), admin, member, roleId('a'), roleId('b')] } },
        ...Array.from({ length: 5 }, () => ({ type: 'role.updated' })),
      ));

  it('does not change where it is the same', () =>
    given(...three)
      .when(setRolePriority(['admin', 'member', 'a']))
      .thenNothing());

  it('names each role once, and only roles', () => {
    given()
      .when(setRolePriority(['admin', 'admin']))
      .thenRefused('invalid_request_parameters');
    given()
      .when(setRolePriority(['unknown']))
      .thenRefused('entity_not_found');
  });
});
