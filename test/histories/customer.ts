import type { Caller } from '#libs/testing/src/suite';
import type { Chance } from './chance.ts';

/** Children of each type; `organization` is the one that is always there. */
const PARENTS: Readonly<Record<string, readonly string[]>> = {
  workspace: ['organization'],
  project: ['organization', 'workspace'],
  document: ['project', 'document'],
};
const TYPES = ['organization', ...Object.keys(PARENTS)];
/** Few, so that what was deleted is created again under the same name. */
const PERMISSIONS = ['view', 'edit', 'share', 'remove'];
const EXTERNAL_IDS = ['a', 'b', 'c', 'd', 'e', 'f'];
/** What may be answered to a request that names what is not there any more, or not yet. */
const REFUSALS = new Set([400, 404, 409, 422]);

interface Placed {
  readonly id: string;
  readonly type: string;
}

interface Granted {
  readonly membership?: string;
  readonly group?: string;
  readonly role: string;
  readonly resource: string;
}

/**
 * Does at random what an application may do with users, groups, roles and resources. Remembers what it was given, also what it deleted since, so that it asks
 * for the dead as well as for the living.
 */
export class Customer {
  organization = '';
  readonly users: string[] = [];
  readonly memberships: string[] = [];
  readonly groups: string[] = [];
  readonly resources: Placed[] = [];
  readonly roles: { readonly slug: string; readonly type: string; readonly custom: boolean }[] = [{ slug: 'member', type: 'organization', custom: false }];
  readonly grants: Granted[] = [];
  readonly members: { readonly group: string; readonly membership: string }[] = [];
  private names = 0;

  constructor(
    private readonly caller: Caller,
    private readonly chance: Chance,
  ) {}

  /** What every history begins with. */
  async begin(): Promise<void> {
    this.organization = (await this.caller.post('/organizations', { name: 'History' }).expect(201)).id;
    const neighbour: string = (await this.caller.post('/organizations', { name: 'Neighbour' }).expect(201)).id;
    this.resources.push(organizationResource(neighbour), organizationResource(this.organization));
    for (const [slug, parents] of Object.entries(PARENTS))
      await this.caller.post('/admin/resource_types', { slug, name: slug, parent_type_slugs: parents.filter((parent) => parent !== slug) }).expect(201);
    for (const slug of PERMISSIONS) await this.caller.post('/authorization/permissions', { slug, name: slug }).expect(201);
    for (let count = 0; count < 3; count++) await this.createMembership();
    for (const type of TYPES) await this.createRole(type);
    for (let count = 0; count < 3; count++) await this.createResource();
  }

  /** One thing more. @throws Error when the answer is none that it may be */
  async act(): Promise<void> {
    await this.chance.weighted<() => Promise<unknown>>([
      [8, () => this.createMembership()],
      [2, () => this.changeMembership()],
      [2, () => this.delete('/user_management/organization_memberships/', this.memberships)],
      [1, () => this.delete('/user_management/users/', this.users)],
      [3, () => this.createGroup()],
      [1, () => this.delete(`/organizations/${this.organization}/groups/`, this.groups)],
      [9, () => this.addMember()],
      [3, () => this.removeMember()],
      [3, () => this.createRole()],
      [7, () => this.changePermissionsOfRole()],
      [1, () => this.deleteRole()],
      [1, () => this.deletePermission()],
      [14, () => this.createResource()],
      [6, () => this.moveResource()],
      [3, () => this.deleteResource()],
      [16, () => this.assign()],
      [5, () => this.unassign()],
      [9, () => this.assignToGroup()],
      [3, () => this.unassignFromGroup()],
      [2, () => this.replaceAssignmentsOfGroup()],
    ])();
  }

  /** The end of it all. */
  async deleteOrganization(): Promise<void> {
    await this.caller.delete(`/organizations/${this.organization}`).expect(202);
  }

  permission(): string {
    return this.chance.of(PERMISSIONS)!;
  }

  private async createMembership(): Promise<void> {
    let user = this.chance.is(0.3) ? this.chance.of(this.users) : undefined;
    if (user === undefined) {
      user = (await this.ask('POST', '/user_management/users', { email: `user-${++this.names}@history.test` }))!['id'] as string;
      this.users.push(user);
    }
    const membership = await this.ask('POST', '/user_management/organization_memberships', {
      user_id: user,
      organization_id: this.organization,
      ...(this.chance.is(0.5) && { role_slugs: this.organizationRoles() }),
    });
    if (membership !== null && !this.memberships.includes(membership['id'] as string)) this.memberships.push(membership['id'] as string);
  }

  private async changeMembership(): Promise<void> {
    const path = `/user_management/organization_memberships/${this.chance.of(this.memberships)}`;
    if (this.chance.is(0.4)) await this.ask('PUT', path, { role_slugs: this.organizationRoles() });
    else await this.ask('PUT', `${path}/${this.chance.is(0.4) ? 'deactivate' : 'reactivate'}`);
  }

  private organizationRoles(): readonly string[] {
    const fitting = this.roles.filter(({ type }) => type === 'organization');
    return [...new Set([this.chance.of(fitting)!.slug, this.chance.of(fitting)!.slug])];
  }

  private async createGroup(): Promise<void> {
    const group = await this.ask('POST', `/organizations/${this.organization}/groups`, { name: `Group ${++this.names}` });
    if (group !== null) this.groups.push(group['id'] as string);
  }

  private async addMember(): Promise<void> {
    const [group, membership] = [this.chance.of(this.groups), this.chance.of(this.memberships)];
    if (group === undefined || membership === undefined) return this.createGroup();
    this.members.push({ group, membership });
    await this.ask('POST', `/organizations/${this.organization}/groups/${group}/organization-memberships`, { organization_membership_id: membership });
  }

  private async removeMember(): Promise<void> {
    const pair = this.chance.of(this.members);
    if (pair === undefined) return this.addMember();
    await this.ask('DELETE', `/organizations/${this.organization}/groups/${pair.group}/organization-memberships/${pair.membership}`);
  }

  private async createRole(type = TYPES[this.chance.below(TYPES.length)]!): Promise<void> {
    const custom = this.chance.is(0.4);
    // A slug may be one that was deleted.
    const slug = `${custom ? 'org-' : ''}${type}-${this.chance.below(4)}`;
    const path = custom ? `/authorization/organizations/${this.organization}/roles` : '/authorization/roles';
    const role = await this.ask('POST', path, { slug, name: slug, resource_type_slug: type });
    if (role === null) return;
    if (!this.roles.some((known) => known.slug === slug)) this.roles.push({ slug, type, custom });
    await this.ask('PUT', `${path}/${slug}/permissions`, { permissions: PERMISSIONS.filter(() => this.chance.is(0.7)) });
  }

  private async changePermissionsOfRole(): Promise<void> {
    const role = this.chance.of(this.roles)!;
    const path = `${this.pathOf(role)}/permissions`;
    if (this.chance.is(0.6)) await this.ask('POST', path, { slug: this.permission() });
    else if (role.custom && this.chance.is(0.5)) await this.ask('DELETE', `${path}/${this.permission()}`);
    else await this.ask('PUT', path, { permissions: PERMISSIONS.filter(() => this.chance.is(0.7)) });
  }

  private async deleteRole(): Promise<void> {
    const role = this.chance.of(this.roles)!;
    await this.ask('DELETE', role.custom ? this.pathOf(role) : `/admin/roles/${role.slug}`);
  }

  private async deletePermission(): Promise<void> {
    const slug = this.permission();
    await this.ask('DELETE', `/authorization/permissions/${slug}`);
    if (this.chance.is(0.9)) await this.ask('POST', '/authorization/permissions', { slug, name: slug });
  }

  private async createResource(): Promise<void> {
    const type = this.chance.of(Object.keys(PARENTS))!;
    const parent = this.chance.of(this.resources.filter((resource) => PARENTS[type]!.includes(resource.type)));
    const resource = await this.ask('POST', '/authorization/resources', {
      organization_id: this.organization,
      resource_type_slug: type,
      external_id: this.chance.of(EXTERNAL_IDS)! + (this.chance.is(0.6) ? ++this.names : ''),
      name: 'Something',
      ...(parent !== undefined && { parent_resource_id: parent.id }),
    });
    if (resource !== null) this.resources.push({ id: resource['id'] as string, type });
  }

  private async moveResource(): Promise<void> {
    const moved = this.chance.of(this.resources)!;
    const parent = this.chance.of(this.resources.filter(({ type }) => PARENTS[moved.type]?.includes(type) ?? true))!;
    await this.ask('PATCH', `/authorization/resources/${moved.id}`, { parent_resource_id: parent?.id ?? moved.id });
  }

  private async deleteResource(): Promise<void> {
    await this.ask('DELETE', `/authorization/resources/${this.chance.of(this.resources)!.id}?cascade_delete=${this.chance.is(0.5)}`);
  }

  private async assign(): Promise<void> {
    const membership = this.chance.of(this.memberships);
    const grant = this.grant();
    if (membership === undefined || grant === null) return;
    this.grants.push({ membership, ...grant });
    await this.ask('POST', `/authorization/organization_memberships/${membership}/role_assignments`, bodyOf(grant));
  }

  private async unassign(): Promise<void> {
    const grant = this.chance.of(this.grants.filter(({ membership }) => membership !== undefined));
    if (grant !== undefined) await this.ask('DELETE', `/authorization/organization_memberships/${grant.membership}/role_assignments`, bodyOf(grant));
  }

  private async assignToGroup(): Promise<void> {
    const group = this.chance.of(this.groups);
    const grant = this.grant();
    if (group === undefined || grant === null) return;
    this.grants.push({ group, ...grant });
    await this.ask('POST', `/authorization/groups/${group}/role_assignments`, bodyOf(grant));
  }

  private async unassignFromGroup(): Promise<void> {
    const grant = this.chance.of(this.grants.filter(({ group }) => group !== undefined));
    if (grant !== undefined) await this.ask('DELETE', `/authorization/groups/${grant.group}/role_assignments`, bodyOf(grant));
  }

  private async replaceAssignmentsOfGroup(): Promise<void> {
    const group = this.chance.of(this.groups);
    const grants = [this.grant(), this.grant()].filter((grant) => grant !== null);
    if (group === undefined) return;
    this.grants.push(...grants.map((grant) => ({ group, ...grant })));
    await this.ask('PUT', `/authorization/groups/${group}/role_assignments`, { role_assignments: grants.map(bodyOf) });
  }

  /** A role on a resource that it mostly fits. */
  private grant(): { readonly role: string; readonly resource: string } | null {
    const resource = this.chance.of(this.resources)!;
    const role = this.chance.of(this.chance.is(0.95) ? this.roles.filter(({ type }) => type === resource.type) : this.roles);
    return role === undefined ? null : { role: role.slug, resource: resource.id };
  }

  private async delete(path: string, known: readonly string[]): Promise<void> {
    const id = this.chance.of(known);
    if (id !== undefined) await this.ask('DELETE', path + id);
  }

  private pathOf({ slug, custom }: { readonly slug: string; readonly custom: boolean }): string {
    return custom ? `/authorization/organizations/${this.organization}/roles/${slug}` : `/authorization/roles/${slug}`;
  }

  /** The body of what was done; null where it was refused. */
  private async ask(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Readonly<Record<string, unknown>> | null> {
    const verb = method.toLowerCase() as 'post' | 'put' | 'patch' | 'delete';
    const answer = await this.caller[verb](path, body);
    if (answer.status < 300) return (answer.body ?? {}) as Readonly<Record<string, unknown>>;
    if (REFUSALS.has(answer.status)) return null;
    throw new Error(`${method} ${path} ${JSON.stringify(body)} was answered ${answer.status} ${answer.text}`);
  }
}

function organizationResource(organization: string): Placed {
  return { id: `authz_resource_${organization.slice('org_'.length)}`, type: 'organization' };
}

function bodyOf({ role, resource }: Pick<Granted, 'role' | 'resource'>): object {
  return { role_slug: role, resource_id: resource };
}
