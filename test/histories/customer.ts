import type { Caller } from '#libs/testing/src/suite';
import { Chance } from '../chance.ts';

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
/** How often what was deleted is asked for like the rest. */
const AMONG_THE_DEAD = 0.25;
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

/** What an application was given of an organization, in the order of time; what it deleted since is still known. */
class Known {
  organization = '';
  readonly users: string[] = [];
  readonly memberships: string[] = [];
  readonly groups: string[] = [];
  readonly resources: Placed[] = [];
  readonly roles: { readonly slug: string; readonly type: string; readonly custom: boolean }[] = [{ slug: 'member', type: 'organization', custom: false }];
  readonly grants: Granted[] = [];
  readonly members: { readonly group: string; readonly membership: string }[] = [];
  readonly deleted: string[] = [];
  /** What was written last: paths and bodies. */
  readonly written: string[] = [];
  private sizes: readonly number[] = [];

  /** For somebody who writes at the same time. */
  copy(): Known {
    const copy = new Known();
    copy.organization = this.organization;
    for (const [place, list] of this.lists().entries()) copy.lists()[place]!.splice(0, Infinity, ...list);
    copy.sizes = this.lists().map(({ length }) => length);
    return copy;
  }

  /** What a copy was given since. */
  learn(copy: Known): void {
    for (const [place, list] of copy.lists().entries()) this.lists()[place]!.push(...list.slice(copy.sizes[place]));
  }

  /** Whether nothing of it was deleted by its id; what was under something deleted, only the log can tell. */
  isThere(thing: string | object): boolean {
    return (typeof thing === 'string' ? [thing] : Object.values(thing)).every((id) => !this.deleted.includes(id as string));
  }

  /** Roles that were given of or on what was written last, or to it. */
  touched(): readonly Granted[] {
    const written = this.written.join('\n');
    return this.grants.filter((granted) => Object.values(granted).some((part) => written.includes(part as string)));
  }

  private lists(): readonly unknown[][] {
    return [this.users, this.memberships, this.groups, this.resources, this.roles, this.grants, this.members, this.deleted, this.written];
  }
}

/** Does at random what an application may do with users, groups, roles and resources, mostly with those that are there. */
export class Customer {
  constructor(
    private readonly caller: Caller,
    private readonly chance: Chance,
    readonly known = new Known(),
  ) {}

  /** What every history begins with. */
  async begin(): Promise<void> {
    this.known.organization = (await this.caller.post('/organizations', { name: 'History' }).expect(201)).id;
    const neighbour: string = (await this.caller.post('/organizations', { name: 'Neighbour' }).expect(201)).id;
    this.known.resources.push(organizationResource(neighbour), organizationResource(this.known.organization));
    for (const [slug, parents] of Object.entries(PARENTS))
      await this.caller.post('/admin/resource_types', { slug, name: slug, parent_type_slugs: parents.filter((parent) => parent !== slug) }).expect(201);
    for (const slug of PERMISSIONS) await this.caller.post('/authorization/permissions', { slug, name: slug }).expect(201);
    for (let count = 0; count < 3; count++) await this.createMembership();
    for (const type of TYPES) await this.createRole(type);
    for (let count = 0; count < 3; count++) await this.createResource();
  }

  /** Several things at once. Who is answered first decides nothing of what is done then or later, except by what is refused. */
  async actAtOnce(count: number): Promise<void> {
    this.known.written.length = 0;
    const others = Array.from({ length: count }, () => new Customer(this.caller, new Chance(this.chance.below(2 ** 32)), this.known.copy()));
    await Promise.all(others.map((other) => other.act()));
    for (const { known } of others) this.known.learn(known);
  }

  /** One thing more. @throws Error when the answer is none that it may be */
  async act(): Promise<void> {
    this.known.written.length = 0;
    await this.chance.weighted<() => Promise<unknown>>([
      [8, () => this.createMembership()],
      [2, () => this.changeMembership()],
      [2, () => this.delete('/user_management/organization_memberships/', this.known.memberships)],
      [1, () => this.delete('/user_management/users/', this.known.users)],
      [3, () => this.createGroup()],
      [1, () => this.delete(`/organizations/${this.known.organization}/groups/`, this.known.groups)],
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
    await this.caller.delete(`/organizations/${this.known.organization}`).expect(202);
  }

  permission(): string {
    return this.chance.of(PERMISSIONS)!;
  }

  /** Mostly one that is there. */
  one<Thing extends string | object>(things: readonly Thing[]): Thing | undefined {
    return this.chance.of(this.chance.is(AMONG_THE_DEAD) ? things : things.filter((thing) => this.known.isThere(thing)));
  }

  private async createMembership(): Promise<void> {
    let user = this.chance.is(0.3) ? this.one(this.known.users) : undefined;
    if (user === undefined) {
      user = (await this.ask('POST', '/user_management/users', { email: `user-${this.name()}@history.test` }))!['id'] as string;
      this.known.users.push(user);
    }
    const membership = await this.ask('POST', '/user_management/organization_memberships', {
      user_id: user,
      organization_id: this.known.organization,
      ...(this.chance.is(0.5) && { role_slugs: this.organizationRoles() }),
    });
    if (membership !== null && !this.known.memberships.includes(membership['id'] as string)) this.known.memberships.push(membership['id'] as string);
  }

  private async changeMembership(): Promise<void> {
    const path = `/user_management/organization_memberships/${this.one(this.known.memberships)}`;
    if (this.chance.is(0.4)) await this.ask('PUT', path, { role_slugs: this.organizationRoles() });
    else await this.ask('PUT', `${path}/${this.chance.is(0.4) ? 'deactivate' : 'reactivate'}`);
  }

  private organizationRoles(): readonly string[] {
    const fitting = this.known.roles.filter(({ type }) => type === 'organization');
    return [...new Set([this.chance.of(fitting)!.slug, this.chance.of(fitting)!.slug])];
  }

  private async createGroup(): Promise<void> {
    const group = await this.ask('POST', `/organizations/${this.known.organization}/groups`, { name: `Group ${this.name()}` });
    if (group !== null) this.known.groups.push(group['id'] as string);
  }

  private async addMember(): Promise<void> {
    const [group, membership] = [this.one(this.known.groups), this.one(this.known.memberships)];
    if (group === undefined || membership === undefined) return this.createGroup();
    const path = `/organizations/${this.known.organization}/groups/${group}/organization-memberships`;
    if ((await this.ask('POST', path, { organization_membership_id: membership })) !== null) this.known.members.push({ group, membership });
  }

  private async removeMember(): Promise<void> {
    const pair = this.one(this.known.members);
    if (pair === undefined) return this.addMember();
    await this.ask('DELETE', `/organizations/${this.known.organization}/groups/${pair.group}/organization-memberships/${pair.membership}`);
  }

  private async createRole(type = TYPES[this.chance.below(TYPES.length)]!): Promise<void> {
    const custom = this.chance.is(0.4);
    // A slug may be one that was deleted.
    const slug = `${custom ? 'org-' : ''}${type}-${this.chance.below(4)}`;
    const path = custom ? `/authorization/organizations/${this.known.organization}/roles` : '/authorization/roles';
    const role = await this.ask('POST', path, { slug, name: slug, resource_type_slug: type });
    if (role === null) return;
    if (!this.known.roles.some((known) => known.slug === slug)) this.known.roles.push({ slug, type, custom });
    await this.ask('PUT', `${path}/${slug}/permissions`, { permissions: PERMISSIONS.filter(() => this.chance.is(0.7)) });
  }

  private async changePermissionsOfRole(): Promise<void> {
    const role = this.chance.of(this.known.roles)!;
    const path = `${this.pathOf(role)}/permissions`;
    if (this.chance.is(0.6)) await this.ask('POST', path, { slug: this.permission() });
    else if (role.custom && this.chance.is(0.5)) await this.ask('DELETE', `${path}/${this.permission()}`);
    else await this.ask('PUT', path, { permissions: PERMISSIONS.filter(() => this.chance.is(0.7)) });
  }

  private async deleteRole(): Promise<void> {
    const role = this.chance.of(this.known.roles)!;
    await this.ask('DELETE', role.custom ? this.pathOf(role) : `/admin/roles/${role.slug}`);
  }

  private async deletePermission(): Promise<void> {
    const slug = this.permission();
    await this.ask('DELETE', `/authorization/permissions/${slug}`);
    if (this.chance.is(0.9)) await this.ask('POST', '/authorization/permissions', { slug, name: slug });
  }

  private async createResource(): Promise<void> {
    const type = this.chance.of(Object.keys(PARENTS))!;
    const parent = this.one(this.known.resources.filter((resource) => PARENTS[type]!.includes(resource.type)));
    const resource = await this.ask('POST', '/authorization/resources', {
      organization_id: this.known.organization,
      resource_type_slug: type,
      external_id: this.chance.of(EXTERNAL_IDS)! + (this.chance.is(0.6) ? this.name() : ''),
      name: 'Something',
      ...(parent !== undefined && { parent_resource_id: parent.id }),
    });
    if (resource !== null) this.known.resources.push({ id: resource['id'] as string, type });
  }

  private async moveResource(): Promise<void> {
    const moved = this.one(this.known.resources)!;
    const parent = this.one(this.known.resources.filter(({ type }) => PARENTS[moved.type]?.includes(type) ?? true))!;
    await this.ask('PATCH', `/authorization/resources/${moved.id}`, { parent_resource_id: parent?.id ?? moved.id });
  }

  private async deleteResource(): Promise<void> {
    const { id } = this.one(this.known.resources)!;
    if ((await this.ask('DELETE', `/authorization/resources/${id}?cascade_delete=${this.chance.is(0.5)}`)) !== null) this.known.deleted.push(id);
  }

  private async assign(): Promise<void> {
    const membership = this.one(this.known.memberships);
    const grant = this.grant();
    if (membership === undefined || grant === null) return;
    const path = `/authorization/organization_memberships/${membership}/role_assignments`;
    if ((await this.ask('POST', path, bodyOf(grant))) !== null) this.known.grants.push({ membership, ...grant });
  }

  private async unassign(): Promise<void> {
    const grant = this.one(this.known.grants.filter(({ membership }) => membership !== undefined));
    if (grant !== undefined) await this.ask('DELETE', `/authorization/organization_memberships/${grant.membership}/role_assignments`, bodyOf(grant));
  }

  private async assignToGroup(): Promise<void> {
    const group = this.one(this.known.groups);
    const grant = this.grant();
    if (group === undefined || grant === null) return;
    if ((await this.ask('POST', `/authorization/groups/${group}/role_assignments`, bodyOf(grant))) !== null) this.known.grants.push({ group, ...grant });
  }

  private async unassignFromGroup(): Promise<void> {
    const grant = this.one(this.known.grants.filter(({ group }) => group !== undefined));
    if (grant !== undefined) await this.ask('DELETE', `/authorization/groups/${grant.group}/role_assignments`, bodyOf(grant));
  }

  private async replaceAssignmentsOfGroup(): Promise<void> {
    const group = this.one(this.known.groups);
    const grants = [this.grant(), this.grant()].filter((grant) => grant !== null);
    if (group === undefined) return;
    const replaced = await this.ask('PUT', `/authorization/groups/${group}/role_assignments`, { role_assignments: grants.map(bodyOf) });
    if (replaced !== null) this.known.grants.push(...grants.map((grant) => ({ group, ...grant })));
  }

  private name(): string {
    return String(this.chance.below(1e9));
  }

  /** A role on a resource that it mostly fits. */
  private grant(): { readonly role: string; readonly resource: string } | null {
    const resource = this.one(this.known.resources)!;
    const role = this.chance.of(this.chance.is(0.95) ? this.known.roles.filter(({ type }) => type === resource.type) : this.known.roles);
    return role === undefined ? null : { role: role.slug, resource: resource.id };
  }

  private async delete(path: string, known: readonly string[]): Promise<void> {
    const id = this.one(known);
    if (id !== undefined && (await this.ask('DELETE', path + id)) !== null) this.known.deleted.push(id);
  }

  private pathOf({ slug, custom }: { readonly slug: string; readonly custom: boolean }): string {
    return custom ? `/authorization/organizations/${this.known.organization}/roles/${slug}` : `/authorization/roles/${slug}`;
  }

  /** The body of what was done; null where it was refused. */
  private async ask(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Readonly<Record<string, unknown>> | null> {
    const verb = method.toLowerCase() as 'post' | 'put' | 'patch' | 'delete';
    this.known.written.push(`${path} ${JSON.stringify(body)}`);
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
