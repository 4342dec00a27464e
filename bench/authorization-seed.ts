import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { EventMeta, NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import type { Suite } from './suite.ts';

/** What is granted where, as small or as large as a measurement wants it. */
export interface Shape {
  readonly organizations: number;
  /** Of each organization: types by name, their parents, and how many resources of each under one parent taken in turn. */
  readonly types: readonly { readonly slug: string; readonly parents: readonly string[]; readonly resources: number }[];
  readonly memberships: number;
  readonly assignments: number;
  /** Whether each type has as many assignments as any other, or each resource. */
  readonly spread: 'types' | 'resources';
  readonly groups: number;
  readonly membersPerGroup: number;
  /** One more organization, the last, which is smaller. */
  readonly beside?: { readonly resourcesPerType: number; readonly assignments: number };
}

export interface Assigned {
  readonly membership: string;
  readonly role: string;
  readonly resource: string;
}

/** One organization as it was recorded. */
export interface SeededOrganization {
  readonly id: string;
  readonly memberships: readonly string[];
  /** By type. */
  readonly resources: ReadonlyMap<string, readonly string[]>;
  readonly parents: ReadonlyMap<string, string>;
  readonly assignments: readonly Assigned[];
}

interface Role {
  readonly id: string;
  readonly slug: string;
}

interface Type {
  readonly id: string;
  readonly viewer: Role;
  readonly editor: Role;
}

/** What is made as a customer makes it. */
export interface Model {
  readonly organizations: readonly string[];
  readonly types: ReadonlyMap<string, Type>;
  /** Each is a member of every organization. */
  readonly users: readonly string[];
}

/** What an editor may do; a viewer only the first of them. */
export const PERMISSIONS = ['view', 'edit'] as const;
/** Appends in flight: enough to share each flush, few enough to stay small. */
const TOGETHER = 2_000;
/** Events in one append. */
const AT_ONCE = 1_000;

/** What all organizations share, made as a customer makes it, and the organizations themselves, still empty. */
export async function model(suite: Suite, { types, organizations, beside, memberships }: Shape): Promise<Model> {
  const made = new Map<string, Type>();
  for (const slug of PERMISSIONS) await suite.post('/authorization/permissions', { slug, name: slug });
  for (const { slug, parents } of types) {
    const type = (await suite.post('/admin/resource_types', { slug, name: slug, parent_type_slugs: parents })) as { id: string };
    const role = async (name: string, permissions: readonly string[]): Promise<Role> => {
      const created = (await suite.post('/authorization/roles', { slug: `${slug}-${name}`, name, resource_type_slug: slug })) as Role;
      await suite.put(`/authorization/roles/${created.slug}/permissions`, { permissions });
      return { id: created.id, slug: created.slug };
    };
    made.set(slug, { id: type.id, viewer: await role('viewer', ['view']), editor: await role('editor', PERMISSIONS) });
  }
  const ids: string[] = [];
  const all = organizations + (beside === undefined ? 0 : 1);
  for (let index = 0; index < all; index++) ids.push(((await suite.post('/organizations', { name: `Bench ${index}` })) as { id: string }).id);
  const users: string[] = [];
  let begun = 0;
  const register = async (): Promise<void> => {
    while (begun < memberships) users.push(((await suite.post('/user_management/users', { email: `user-${(begun += 1)}@bench.test` })) as { id: string }).id);
  };
  await Promise.all(Array.from({ length: 32 }, register));
  return { organizations: ids, types: made, users };
}

/** Fills the organizations straight into the log; the views are for a rebuild to fill. */
export async function fill(directory: string, shape: Shape, { organizations, types, users }: Model): Promise<readonly SeededOrganization[]> {
  const storage = await LmdbStorage.open({ directory });
  try {
    const store = new LmdbEventStore(storage);
    const environment = await environmentOf(store, organizations[0]!);
    const seeded: SeededOrganization[] = [];
    for (const [index, id] of organizations.entries()) {
      const own = shape.beside === undefined || index < shape.organizations ? shape : smaller(shape, shape.beside);
      seeded.push(await new Filling(store, environment, id, own, types, users).fill());
    }
    return seeded;
  } finally {
    await storage.close();
  }
}

function smaller(shape: Shape, { resourcesPerType, assignments }: NonNullable<Shape['beside']>): Shape {
  return { ...shape, types: shape.types.map((type) => ({ ...type, resources: resourcesPerType })), assignments };
}

async function environmentOf(store: LmdbEventStore, organization: string): Promise<string> {
  for await (const batch of store.subscribe('', new AbortController().signal)) {
    const created = batch.find(({ type, meta }) => type === 'organization.created' && meta.organization === organization);
    if (created !== undefined) return created.meta.environment;
  }
  throw new Error(`${organization} was not recorded.`);
}

class Filling {
  private pending: Promise<unknown>[] = [];
  private random = 1;

  constructor(
    private readonly store: LmdbEventStore,
    private readonly environment: string,
    private readonly organization: string,
    private readonly shape: Shape,
    private readonly types: ReadonlyMap<string, Type>,
    private readonly users: readonly string[],
  ) {}

  async fill(): Promise<SeededOrganization> {
    const memberships = await this.memberships();
    const { resources, parents } = await this.resources();
    const assignments = await this.assignments(memberships, resources);
    await this.groups(memberships, resources);
    await this.settle(0);
    return { id: this.organization, memberships, resources, parents, assignments };
  }

  private async memberships(): Promise<readonly string[]> {
    const ids: string[] = [];
    for (const user of this.users) {
      const id = this.id('om');
      ids.push(id);
      const data = { id, organization_id: this.organization, user_id: user, status: 'active', roles: [], directory_managed: false, custom_attributes: {} };
      await this.append('organization_membership', `${this.organization}.${user}`, [this.event('organization_membership.created', data)]);
    }
    return ids;
  }

  private async resources(): Promise<Pick<SeededOrganization, 'resources' | 'parents'>> {
    const parents = new Map<string, string>();
    const resources = new Map<string, readonly string[]>([['organization', [`authz_resource_${this.organization.slice('org_'.length)}`]]]);
    let events: NewEvent[] = [];
    let version = 0;
    const flush = async (): Promise<void> => {
      await this.store.append(`resource_tree-${this.environment}-${this.organization}`, version, events);
      version += events.length;
      events = [];
    };
    for (const type of this.shape.types) {
      const above = type.parents.flatMap((parent) => resources.get(parent) ?? []);
      const made = Array.from({ length: type.resources }, () => this.id('authz_resource'));
      for (const [index, id] of made.entries()) {
        const parent = above[index % above.length]!;
        parents.set(id, parent);
        events.push(
          this.event('resource.created', {
            id,
            organization_id: this.organization,
            external_id: `${type.slug}-${index}`,
            resource_type_id: this.types.get(type.slug)!.id,
            resource_type_slug: type.slug,
            parent_resource_id: parent,
            name: `${type.slug} ${index}`,
            description: null,
          }),
        );
        if (events.length === AT_ONCE) await flush();
      }
      resources.set(type.slug, made);
    }
    if (events.length > 0) await flush();
    return { resources, parents };
  }

  private async assignments(memberships: readonly string[], resources: SeededOrganization['resources']): Promise<readonly Assigned[]> {
    const assigned: Assigned[] = [];
    const known = new Set<string>();
    while (assigned.length < this.shape.assignments) {
      const { type, index } = this.place();
      const resource = resources.get(type.slug)![index]!;
      const { viewer, editor } = this.types.get(type.slug)!;
      const role = this.next() < 0.5 ? viewer : editor;
      const membership = this.of(memberships);
      const key = `${membership}.${role.id}.${resource}`;
      if (known.has(key)) continue;
      known.add(key);
      assigned.push({ membership, role: role.slug, resource });
      const data = {
        id: this.id('role_assignment'),
        organization_id: this.organization,
        organization_membership_id: membership,
        role,
        resource: { id: resource, external_id: `${type.slug}-${index}`, resource_type_slug: type.slug },
      };
      await this.append('role_assignment', key, [this.event('role_assignment.created', data)]);
    }
    return assigned;
  }

  private async groups(memberships: readonly string[], resources: SeededOrganization['resources']): Promise<void> {
    for (let index = 0; index < this.shape.groups; index++) {
      const group = this.id('group');
      const members = new Set<string>();
      while (members.size < this.shape.membersPerGroup) members.add(this.of(memberships));
      await this.append('group', group, [
        this.event('group.created', { id: group, organization_id: this.organization, name: `Group ${index}`, description: null }),
        ...[...members].map((organization_membership_id) => this.event('group.member_added', { group_id: group, organization_membership_id })),
      ]);
      const { type, index: at } = this.place();
      const resource = resources.get(type.slug)![at]!;
      const { viewer } = this.types.get(type.slug)!;
      const data = {
        id: this.id('gra'),
        organization_id: this.organization,
        group_id: group,
        role: viewer,
        resource: { id: resource, external_id: `${type.slug}-${at}`, resource_type_slug: type.slug },
      };
      await this.append('group_role_assignment', `${group}.${viewer.id}.${resource}`, [this.event('group_role_assignment.created', data)]);
    }
  }

  private place(): { readonly type: Shape['types'][number]; readonly index: number } {
    if (this.shape.spread === 'types') {
      const type = this.of(this.shape.types);
      return { type, index: Math.floor(this.next() * type.resources) };
    }
    let index = Math.floor(this.next() * this.shape.types.reduce((sum, { resources }) => sum + resources, 0));
    const type = this.shape.types.find(({ resources }) => (index -= resources) < 0)!;
    return { type, index: index + type.resources };
  }

  private async append(category: string, key: string, events: readonly NewEvent[]): Promise<void> {
    this.pending.push(this.store.append(`${category}-${this.environment}-${key}`, 0, events));
    await this.settle(TOGETHER);
  }

  private async settle(allowed: number): Promise<void> {
    if (this.pending.length <= allowed) return;
    await Promise.all(this.pending);
    this.pending = [];
  }

  private event(type: string, data: object): NewEvent {
    const meta: EventMeta = {
      environment: this.environment,
      organization: this.organization,
      actor: { id: 'bench', source: 'system', name: null },
      requestId: 'bench',
      commandId: newUlid(Date.now()),
      at: Date.now(),
    };
    return { id: newUlid(Date.now()), type, shape: 1, data, subject: null, public: [], meta };
  }

  private id(prefix: string): string {
    return `${prefix}_${newUlid(Date.now())}`;
  }

  private of<T>(items: readonly T[]): T {
    return items[Math.floor(this.next() * items.length)]!;
  }

  /** The same at every run: a linear congruential generator, whose low bits nobody looks at. */
  private next(): number {
    this.random = (Math.imul(this.random, 1_664_525) + 1_013_904_223) >>> 0;
    return this.random / 2 ** 32;
  }
}
