import { randomUUID } from 'node:crypto';
import type { Chance } from '../chance.ts';
import type { Change, Unanswered } from './request.ts';

export const PERMISSION = 'torture:read';
/** Of an organization, which gives and takes its permission. */
const CUSTOM_ROLE = 'org-torture';
const ROLES = { workspace: 'torture_workspace', project: 'torture_project' } as const;
/** Few enough that they meet each other. */
const MOST = { memberships: 3, groups: 2, resources: 6 };

interface Membership {
  readonly id: string;
  isActive: boolean;
}
interface Group {
  readonly id: string;
  readonly members: Set<string>;
}
interface Resource {
  readonly id: string;
  readonly type: keyof typeof ROLES;
  parent: string | null;
}
interface Grant {
  /** A membership or a group. */
  readonly subject: string;
  readonly role: string;
  readonly resource: string;
}

/** Types, a permission and roles that all organizations share, made once. */
export async function prepareModel(url: string, key: string): Promise<void> {
  const send = async (method: string, path: string, body: object): Promise<void> => {
    const response = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}: ${await response.text()}`);
    await response.arrayBuffer();
  };
  await send('POST', '/admin/resource_types', { slug: 'workspace', name: 'Workspace', parent_type_slugs: ['organization'] });
  await send('POST', '/admin/resource_types', { slug: 'project', name: 'Project', parent_type_slugs: ['organization', 'workspace'] });
  await send('POST', '/authorization/permissions', { slug: PERMISSION, name: 'Read', resource_type_slug: 'project' });
  for (const [type, slug] of Object.entries(ROLES)) {
    await send('POST', '/authorization/roles', { slug, name: 'Reader', resource_type_slug: type });
    await send('PUT', `/authorization/roles/${slug}/permissions`, { permissions: [PERMISSION] });
  }
}

/** What was acknowledged of who may do what in one organization. */
export class Access {
  readonly memberships: Membership[] = [];
  readonly resources: Resource[] = [];
  /** Of memberships that were deleted. */
  readonly ended: string[] = [];
  private readonly groups: Group[] = [];
  private users: string[] = [];
  private grants: Grant[] = [];
  /** Whether the organization's own role is there, and whether it holds the permission. */
  private customRole: 'absent' | 'idle' | 'reading' = 'absent';

  constructor(
    private readonly organization: string,
    private readonly changes: Change[],
    private readonly chance: Chance,
  ) {}

  /** What a check has to say. */
  allows({ id, isActive }: Membership, resource: Resource): boolean {
    if (!isActive) return false;
    const subjects = [id, ...this.groups.filter(({ members }) => members.has(id)).map((group) => group.id)];
    for (let at: Resource | undefined = resource; at !== undefined; at = this.resources.find((each) => each.id === at?.parent)) {
      const here = at.id;
      if (this.grants.some((grant) => grant.resource === here && subjects.includes(grant.subject) && this.holds(grant.role))) return true;
    }
    return false;
  }

  /** A request that changes something of it. */
  next(): Unanswered {
    const dice = this.chance.below(100);
    if (dice < 18) return this.join();
    if (dice < 26) return this.gather();
    if (dice < 46) return this.grow();
    if (dice < 88) return this.give();
    return dice < 94 ? this.changeRole() : this.take();
  }

  private holds(role: string): boolean {
    return role !== CUSTOM_ROLE || this.customRole === 'reading';
  }

  /** A user, and then a membership. */
  private join(): Unanswered {
    if (this.users.length === 0) {
      const email = `${randomUUID()}@torture.test`;
      return this.post('/user_management/users', { email }, (id) => {
        this.users.push(id);
        this.told('user.created', id);
      });
    }
    const user = this.users[0]!;
    if (this.memberships.length >= MOST.memberships) return this.suspend();
    return this.post('/user_management/organization_memberships', { user_id: user, organization_id: this.organization }, (id) => {
      this.users = this.users.filter((each) => each !== user);
      this.memberships.push({ id, isActive: true });
      this.told('organization_membership.created', id);
    });
  }

  private suspend(): Unanswered {
    const one = this.anyOf(this.memberships)!;
    const path = `/user_management/organization_memberships/${one.id}/${one.isActive ? 'deactivate' : 'reactivate'}`;
    const isActive = !one.isActive;
    return { request: { method: 'PUT', path, expected: [200] }, answered: () => void (one.isActive = isActive) };
  }

  private gather(): Unanswered {
    const path = `/organizations/${this.organization}/groups`;
    const [group, one] = [this.anyOf(this.groups), this.anyOf(this.memberships)];
    if (group === undefined || this.groups.length < MOST.groups)
      return this.post(path, { name: 'Group' }, (id) => {
        this.groups.push({ id, members: new Set() });
        this.told('group.created', id);
      });
    if (one === undefined) return this.join();
    const members = `${path}/${group.id}/organization-memberships`;
    if (group.members.has(one.id)) return this.delete(`${members}/${one.id}`, () => void group.members.delete(one.id));
    return this.post(members, { organization_membership_id: one.id }, () => void group.members.add(one.id), 200);
  }

  private grow(): Unanswered {
    const workspaces = this.resources.filter(({ type }) => type === 'workspace');
    const projects = this.resources.filter(({ type }) => type === 'project');
    if (this.resources.length >= MOST.resources) return this.move(this.anyOf(projects), this.anyOf(workspaces));
    const type = workspaces.length <= projects.length / 2 ? 'workspace' : 'project';
    const parent = type === 'project' ? (this.anyOf(workspaces)?.id ?? null) : null;
    const body = {
      organization_id: this.organization,
      resource_type_slug: type,
      external_id: randomUUID(),
      name: type,
      parent_resource_id: parent ?? undefined,
    };
    return this.post('/authorization/resources', body, (id) => void this.resources.push({ id, type, parent }));
  }

  private move(project: Resource | undefined, workspace: Resource | undefined): Unanswered {
    if (project === undefined || workspace === undefined) return this.take();
    const path = `/authorization/resources/${project.id}`;
    return {
      request: { method: 'PATCH', path, body: { parent_resource_id: workspace.id }, expected: [200] },
      answered: () => void (project.parent = workspace.id),
    };
  }

  private give(): Unanswered {
    const [one, group, resource] = [this.anyOf(this.memberships), this.anyOf(this.groups), this.anyOf(this.resources)];
    if (one === undefined) return this.join();
    if (resource === undefined) return this.grow();
    const role = resource.type === 'project' && this.customRole !== 'absent' && this.chance.below(2) === 0 ? CUSTOM_ROLE : ROLES[resource.type];
    const isForGroup = group !== undefined && this.chance.below(2) === 0;
    const grant: Grant = { subject: isForGroup ? group.id : one.id, role, resource: resource.id };
    if (this.grants.some((each) => isSame(each, grant))) return this.takeBack(grant);
    const path = `/authorization/${isForGroup ? 'groups' : 'organization_memberships'}/${grant.subject}/role_assignments`;
    return this.post(path, { role_slug: role, resource_id: resource.id }, () => void this.grants.push(grant));
  }

  private takeBack(grant: Grant): Unanswered {
    const kind = grant.subject.startsWith('group_') ? 'groups' : 'organization_memberships';
    const forget = (): void => void (this.grants = this.grants.filter((each) => !isSame(each, grant)));
    return this.delete(`/authorization/${kind}/${grant.subject}/role_assignments`, forget, {
      body: { role_slug: grant.role, resource_id: grant.resource },
    });
  }

  private changeRole(): Unanswered {
    const path = `/authorization/organizations/${this.organization}/roles`;
    if (this.customRole === 'absent')
      return this.post(path, { slug: CUSTOM_ROLE, name: 'Ours', resource_type_slug: 'project' }, (id) => {
        this.customRole = 'idle';
        this.told('organization_role.created', id);
      });
    const next = this.customRole === 'idle' ? 'reading' : 'idle';
    const body = { permissions: next === 'reading' ? [PERMISSION] : [] };
    return { request: { method: 'PUT', path: `${path}/${CUSTOM_ROLE}/permissions`, body, expected: [200] }, answered: () => void (this.customRole = next) };
  }

  /** Something is deleted, with all that hangs on it. */
  private take(): Unanswered {
    const [one, group, resource] = [this.anyOf(this.memberships), this.anyOf(this.groups), this.anyOf(this.resources)];
    const dice = this.chance.below(3);
    if (dice === 0 && one !== undefined)
      return this.delete(
        `/user_management/organization_memberships/${one.id}`,
        () => {
          this.remove(this.memberships, one);
          this.ended.push(one.id);
          for (const { members } of this.groups) members.delete(one.id);
          this.forget(({ subject }) => subject === one.id);
          this.told('organization_membership.deleted', one.id);
        },
        { status: 200 },
      );
    if (dice === 1 && group !== undefined)
      return this.delete(`/organizations/${this.organization}/groups/${group.id}`, () => {
        this.remove(this.groups, group);
        this.forget(({ subject }) => subject === group.id);
        this.told('group.deleted', group.id);
      });
    if (resource === undefined) return this.grow();
    return this.delete(`/authorization/resources/${resource.id}?cascade_delete=true`, () => {
      for (const each of this.resources.filter(({ parent }) => parent === resource.id)) this.removeResource(each);
      this.removeResource(resource);
    });
  }

  private removeResource(one: Resource): void {
    this.remove(this.resources, one);
    this.forget(({ resource }) => resource === one.id);
  }

  private forget(isGone: (grant: Grant) => boolean): void {
    this.grants = this.grants.filter((grant) => !isGone(grant));
  }

  private anyOf<Kept>(kept: readonly Kept[]): Kept | undefined {
    return kept[this.chance.below(Math.max(1, kept.length))];
  }

  private remove<Kept>(from: Kept[], one: Kept): void {
    from.splice(from.indexOf(one), 1);
  }

  private told(event: string, about: string): void {
    this.changes.push({ event, about, recognise: () => true });
  }

  private post(path: string, body: object, answered: (id: string) => void, status = 201): Unanswered {
    return { request: { method: 'POST', path, body, key: randomUUID(), expected: [status] }, answered: (answer) => answered(answer!.id!) };
  }

  private delete(path: string, answered: () => void, { status = 204, body }: { readonly status?: number; readonly body?: object } = {}): Unanswered {
    return { request: { method: 'DELETE', path, body, expected: [status] }, answered };
  }
}

function isSame(one: Grant, other: Grant): boolean {
  return one.subject === other.subject && one.role === other.role && one.resource === other.resource;
}
