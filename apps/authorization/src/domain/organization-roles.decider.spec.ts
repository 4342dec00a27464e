import { specOf } from '#libs/testing/src/decider-spec';
import {
  addOrganizationRolePermission,
  createOrganizationRole,
  closeOrganizationRole,
  deleteOrganizationRole,
  dropPermission,
  dropRoleMappings,
  organizationRolesDecider,
  recordRoleDeletions,
  reopenOrganizationRole,
  removeOrganizationRolePermission,
  setOrganizationRolePermissions,
  setRoleMappings,
  undoOrganizationRole,
  updateOrganizationRole,
  type OrganizationRolesEvent,
  type StoredRoleMapping,
} from './organization-roles.decider.ts';

const { given, id } = specOf(organizationRolesDecider);
const org = 'org_01KF0000000000000000000000';
const ORGANIZATION = { id: null, slug: 'organization' };
const organization = { resource_type_id: null, resource_type_slug: 'organization' };
const read = { id: 'perm_read', slug: 'read' };
const write = { id: 'perm_write', slug: 'write' };
const all = () => true;

const created = (slug: string, permissions = [read], roleId = `role_${slug}`): OrganizationRolesEvent => ({
  type: 'organization_role.created',
  data: { id: roleId, organization_id: org, slug, name: slug, description: null, ...organization, permissions },
});
const create = (slug: string) => createOrganizationRole(org, { slug, name: slug, type: ORGANIZATION });
const deleted = (slug: string): OrganizationRolesEvent => ({ type: 'organization_role.deleted', data: { id: `role_${slug}` } });

describe('the roles of an organization', () => {
  it('are created without permissions', () =>
    given()
      .when(create('org-a'))
      .then(created('org-a', [], id('role'))));

  it('are of the type that they are given', () =>
    given()
      .when(createOrganizationRole(org, { slug: 'org-a', name: 'A', description: 'd', type: { id: 'resource_type_x', slug: 'x' } }))
      .thenMatching({ data: { description: 'd', resource_type_id: 'resource_type_x', resource_type_slug: 'x' } }));

  it('have a slug of their own', () => {
    given(created('org-a')).when(create('org-a')).thenRefused('organization_role_slug_conflict');
    given(created('org-a'), deleted('org-a'))
      .when(create('org-a'))
      .thenMatching({ data: { id: id('role') } });
  });

  it('stay deleted when their creation is repeated', () =>
    given(created('org-a', [], id('role')), { type: 'organization_role.deleted', data: { id: id('role') } })
      .when(create('org-a'))
      .thenRefused('entity_not_found'));

  it('change in what is given and different', () => {
    given(created('org-a'))
      .when(updateOrganizationRole('org-a', { name: 'A', description: null }, all))
      .then({ type: 'organization_role.updated', data: { id: 'role_org-a', name: 'A' } });
    given(created('org-a'))
      .when(updateOrganizationRole('org-a', { name: 'org-a' }, all))
      .thenNothing();
    given()
      .when(updateOrganizationRole('org-a', {}, all))
      .thenRefused('entity_not_found');
  });

  it('hold the permissions that they are given', () => {
    const permissions = (...held: readonly (typeof read)[]): OrganizationRolesEvent => ({
      type: 'organization_role.updated',
      data: { id: 'role_org-a', permissions: held },
    });
    given(created('org-a'))
      .when(setOrganizationRolePermissions('org-a', [write]))
      .then(permissions(write));
    given(created('org-a'))
      .when(setOrganizationRolePermissions('org-a', [read]))
      .thenNothing();
    given(created('org-a'))
      .when(addOrganizationRolePermission('org-a', write, all))
      .then(permissions(read, write));
    given(created('org-a'))
      .when(addOrganizationRolePermission('org-a', read, all))
      .thenNothing();
    given(created('org-a'))
      .when(removeOrganizationRolePermission('org-a', read.id, all))
      .then(permissions());
    given(created('org-a'))
      .when(removeOrganizationRolePermission('org-a', write.id, all))
      .thenNothing();
  });

  it('hold no more permissions than a role may, and are renamed although they do', () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => ({ id: `perm_${index}`, slug: `permission-${index}` }));
    given(created('org-a'))
      .when(setOrganizationRolePermissions('org-a', many(1_000)))
      .thenMatching({ type: 'organization_role.updated' });
    given(created('org-a'))
      .when(setOrganizationRolePermissions('org-a', many(1_001)))
      .thenRefused('bad_request');
    given(created('org-a', many(1_001)))
      .when(updateOrganizationRole('org-a', { name: 'A' }, all))
      .then({ type: 'organization_role.updated', data: { id: 'role_org-a', name: 'A' } });
  });

  it('are announced as they are, and as they were where they are no more', () => {
    const evolve = (state: Parameters<typeof organizationRolesDecider.evolve>[0], event: OrganizationRolesEvent) =>
      organizationRolesDecider.evolve(state, { ...event, at: '2026-01-15T12:00:00.000Z', version: 1 });
    const before = evolve(null, created('org-a'));
    const renamed: OrganizationRolesEvent = { type: 'organization_role.updated', data: { id: 'role_org-a', name: 'A' } };
    const payload = { object: 'organization_role', id: 'role_org-a', name: 'org-a', permissions: ['read'] };
    expect(organizationRolesDecider.toPublicEvent(created('org-a'), null, before)).toMatchObject({ payload, names: ['organization_role.created'] });
    expect(organizationRolesDecider.toPublicEvent(renamed, before, evolve(before, renamed))).toMatchObject({ payload: { ...payload, name: 'A' } });
    expect(organizationRolesDecider.toPublicEvent(deleted('org-a'), before, evolve(before, deleted('org-a')))).toMatchObject({
      payload,
      names: ['organization_role.deleted'],
    });
  });

  it('lose what died with whatever changes', () =>
    given(created('org-a', [read, write]))
      .when(updateOrganizationRole('org-a', { name: 'A' }, (permission) => permission !== read.id))
      .then({ type: 'organization_role.updated', data: { id: 'role_org-a', name: 'A', permissions: [write] } }));

  it('lose a permission that was deleted, each that holds it', () =>
    given(created('org-a'), created('org-b', [write, read]), created('org-c', [write]))
      .when(dropPermission(read.id))
      .then(
        { type: 'organization_role.updated', data: { id: 'role_org-a', permissions: [] } },
        { type: 'organization_role.updated', data: { id: 'role_org-b', permissions: [write] } },
      ));

  const intents = (type: 'closing' | 'reopened', intent: string): OrganizationRolesEvent => ({
    type: `organization_role.${type}`,
    data: { id: 'role_org-a', intent },
  });

  it('are deleted while the intent to do so is open', () => {
    const remove = deleteOrganizationRole('role_org-a', 'mine');
    given(created('org-a'), intents('closing', 'mine')).when(remove).then(deleted('org-a'));
    given(created('org-a')).when(remove).thenRefused('role_has_assignments');
    given(created('org-a'), intents('closing', 'of another')).when(remove).thenRefused('role_has_assignments');
    given(created('org-a'), intents('closing', 'mine'), intents('reopened', 'mine')).when(remove).thenRefused('role_has_assignments');
    given().when(remove).thenNothing();
  });

  it('are closed by one intent at a time, and reopened', () => {
    const close = closeOrganizationRole({ id: 'role_org-a', intent: 'mine', now: Date.parse('2026-01-15T11:59:10.001Z') });
    given(created('org-a')).when(close).then(intents('closing', 'mine'));
    given(created('org-a'), intents('closing', 'abandoned')).when(close).then(intents('reopened', 'abandoned'), intents('closing', 'mine'));
    given().when(close).thenRefused('entity_not_found');
    given(created('org-a'), intents('closing', 'mine')).when(reopenOrganizationRole('role_org-a', 'mine')).then(intents('reopened', 'mine'));
    given(created('org-a'), intents('closing', 'mine')).when(reopenOrganizationRole('role_org-a', 'of another')).thenNothing();
  });

  it('are taken back where their type was', () => {
    given(created('org-a')).when(undoOrganizationRole('role_org-a')).then(deleted('org-a'));
    given(created('org-a'), deleted('org-a')).when(undoOrganizationRole('role_org-a')).thenNothing();
  });

  it('are all deleted with their organization', () => {
    given(created('org-a'), created('org-b')).when(recordRoleDeletions()).then(deleted('org-a'), deleted('org-b'));
    given().when(recordRoleDeletions()).thenNothing();
  });
});

describe('what groups of a directory give', () => {
  const directory = { id: 'directory_one', organization_id: org };
  const shared = [
    { id: 'role_member', slug: 'member', resource_type_slug: 'organization' },
    { id: 'role_editor', slug: 'editor', resource_type_slug: 'workspace' },
  ];
  const mapping = (group_id: string, role_id: string): StoredRoleMapping => ({ group_id, role_id });
  const changed = (added: readonly StoredRoleMapping[], removed: readonly StoredRoleMapping[] = [], directory_id = directory.id): OrganizationRolesEvent => ({
    type: 'role_mappings.changed',
    data: { organization_id: org, directory_id, added, removed },
  });
  const set = (...pairs: readonly (readonly [group_id: string, role_slug: string])[]) =>
    setRoleMappings(
      directory,
      pairs.map(([group_id, role_slug]) => ({ group_id, role_slug })),
      shared,
    );
  const [ofMembers, ofAuditors] = [mapping('group_a', 'role_member'), mapping('group_a', 'role_org-a')];

  it('are roles of the environment and of the organization, each of a group once', () => {
    given()
      .when(set(['group_a', 'member'], ['group_a', 'member']))
      .then(changed([ofMembers]));
    given(created('org-a'))
      .when(set(['group_a', 'org-a'], ['group_b', 'member']))
      .then(changed([ofAuditors, mapping('group_b', 'role_member')]));
  });

  it('are replaced as a whole, in one directory', () => {
    const others = changed([mapping('group_z', 'role_member')], [], 'directory_two');
    given(changed([ofMembers]), others, created('org-a'))
      .when(set(['group_a', 'org-a']))
      .then(changed([ofAuditors], [ofMembers]));
    given(changed([ofMembers]), others)
      .when(set(['group_a', 'member']))
      .thenNothing();
    given(changed([ofMembers]), others)
      .when(set())
      .then(changed([], [ofMembers]));
    given(others).when(set()).thenNothing();
  });

  it('are roles that are there, and for organizations', () => {
    given(created('org-a'), deleted('org-a'))
      .when(set(['group_a', 'org-a']))
      .thenRefused('entity_not_found');
    given()
      .when(set(['group_a', 'editor']))
      .thenRefused('sub_resource_scoped_role_not_allowed');
  });

  it('are 5,000 in an organization at the most, and fewer again where they were more', () => {
    const many = (count: number, group: string) => Array.from({ length: count }, (_, number) => mapping(`${group}_${number}`, 'role_member'));
    const full = changed(many(5_000, 'group'), [], 'directory_two');
    given(full)
      .when(set(['group_a', 'member']))
      .thenRefused('role_mapping_limit_reached');
    given(changed(many(4_999, 'group'), [], 'directory_two'))
      .when(set(['group_a', 'member']))
      .then(changed([ofMembers]));
    given(full, changed([ofMembers, ofAuditors]))
      .when(set(['group_b', 'member']))
      .thenMatching({ data: { added: [{ group_id: 'group_b' }] } });
  });

  it('keep a role of the organization from being deleted, before and while that is done', () => {
    const closing = (type: 'closing' | 'reopened'): OrganizationRolesEvent => ({
      type: `organization_role.${type}`,
      data: { id: 'role_org-a', intent: 'mine' },
    });
    const close = closeOrganizationRole({ id: 'role_org-a', intent: 'mine', now: Date.parse('2026-01-15T11:59:10.001Z') });
    const remove = deleteOrganizationRole('role_org-a', 'mine');
    given(created('org-a'), changed([ofAuditors]))
      .when(close)
      .thenRefused('role_has_group_role_mappings');
    given(created('org-a'), closing('closing'), changed([ofAuditors]))
      .when(remove)
      .thenRefused('role_has_group_role_mappings');
    given(created('org-a'), changed([ofAuditors]), changed([], [ofAuditors]))
      .when(close)
      .then(closing('closing'));
    given(created('org-a'), changed([ofMembers]), closing('closing'))
      .when(remove)
      .then(deleted('org-a'));
  });

  it('end with their directory, their group and their role', () => {
    const elsewhere = mapping('group_z', 'role_member');
    const past = [changed([ofMembers, ofAuditors]), changed([elsewhere], [], 'directory_two')];
    given(...past)
      .when(dropRoleMappings({ directory_id: directory.id }))
      .then(changed([], [ofMembers, ofAuditors]));
    given(...past)
      .when(dropRoleMappings({ group_id: 'group_z' }))
      .then(changed([], [elsewhere], 'directory_two'));
    given(...past)
      .when(dropRoleMappings({ role_id: 'role_member' }))
      .then(changed([], [ofMembers]), changed([], [elsewhere], 'directory_two'));
    given(...past)
      .when(dropRoleMappings({ group_id: 'group_b' }))
      .thenNothing();
    given()
      .when(dropRoleMappings({ group_id: 'group_b' }))
      .thenNothing();
  });

  it('are announced to nobody', () => expect(organizationRolesDecider.toPublicEvent(changed([ofMembers]), null, null)).toBeNull());
});
