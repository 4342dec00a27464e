import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { newUlid } from '#libs/platform/src/ids';
import { EnvironmentModel } from './environment-model.ts';
import { OrganizationIndex } from './organization-index.ts';

const id = (prefix: string): string => `${prefix}_${newUlid(Date.now())}`;
const [environment, organization, user] = [id('environment'), id('org'), id('user')];
const [membership, type, resource] = [id('om'), id('resource_type'), id('authz_resource')];
const [shared, own] = [id('role'), id('role')];
const root = `authz_resource_${organization.slice(-26)}`;

let model: EnvironmentModel;
let index: OrganizationIndex;
const versions = new Map<string, number>();

function event(stream: string, name: string, data: object): RecordedEvent {
  const version = (versions.get(stream) ?? 0) + 1;
  versions.set(stream, version);
  return { stream: `${stream.replace('-', `-${environment}-`)}`, version, type: name, data } as unknown as RecordedEvent;
}

const hears = (stream: string, name: string, data: object): void => index.apply(event(stream, name, data));
const given = (role: string): void =>
  hears(`role_assignment-${membership}.${role}.${resource}`, 'role_assignment.created', {
    id: id('role_assignment'),
    organization_membership_id: membership,
    role: { id: role },
    resource: { id: resource },
  });

beforeEach(() => {
  versions.clear();
  model = new EnvironmentModel(environment);
  index = new OrganizationIndex(organization, environment, model);
  const scope = { resource_type_id: type, resource_type_slug: 'workspace', permissions: [] };
  model.apply(event('authorization_model-', 'resource_type.created', { id: type, slug: 'workspace', parents: [{ id: null, slug: 'organization' }] }));
  model.apply(event('authorization_model-', 'role.created', { id: shared, slug: 'editor', ...scope }));
  hears(`organization-${organization}`, 'organization.created', { id: organization });
  hears(`organization_roles-${organization}`, 'organization_role.created', { id: own, organization_id: organization, slug: 'org-editor', ...scope });
  hears(`organization_membership-${organization}.${user}`, 'organization_membership.created', { id: membership, user_id: user, status: 'active', roles: [] });
  const named = { external_id: 'w', resource_type_id: type, resource_type_slug: 'workspace', name: 'W', description: null };
  hears(`resource_tree-${organization}`, 'resource.created', { id: resource, organization_id: organization, parent_resource_id: root, ...named });
});

const isAssigned = (): boolean => index.hasAssignmentsOn(index.tree.nodeById(resource)!);

describe('a resource has assignments', () => {
  it('where somebody has a role on it', () => {
    expect(isAssigned()).toBe(false);
    given(shared);
    expect(isAssigned()).toBe(true);
  });

  it('until the membership is over', () => {
    given(shared);
    hears(`organization_membership-${organization}.${user}`, 'organization_membership.deleted', { id: membership });
    expect(isAssigned()).toBe(false);
  });

  it('until the last of its roles is deleted, before any assignment is told to be over', () => {
    given(shared);
    given(own);
    model.apply(event('authorization_model-', 'role.deleted', { id: shared }));
    expect(isAssigned()).toBe(true);
    hears(`organization_roles-${organization}`, 'organization_role.deleted', { id: own });
    expect(isAssigned()).toBe(false);
  });
});
