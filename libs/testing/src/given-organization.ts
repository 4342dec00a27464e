import type { Caller } from './suite.ts';

let names = 0;

/** What resources, roles and groups of a spec belong to: each organization is one of its own, so that specs share a suite. */
export class GivenOrganization {
  private constructor(
    private readonly caller: Caller,
    readonly id: string,
  ) {}

  /** With the model that all of them share: workspaces hold projects; `admin-of-workspace` and `editor` are roles for them, `viewer` is one for the organization. */
  static async create(caller: Caller): Promise<GivenOrganization> {
    return new GivenOrganization(caller, idOf(await caller.post('/organizations', { name: 'Acme' }).expect(201)));
  }

  static async createModel(caller: Caller): Promise<void> {
    await caller.post('/admin/resource_types', { slug: 'workspace', name: 'Workspace', parent_type_slugs: ['organization'] }).expect(201);
    await caller.post('/admin/resource_types', { slug: 'project', name: 'Project', parent_type_slugs: ['workspace', 'organization'] }).expect(201);
    for (const [slug, type] of [
      ['viewer', 'organization'],
      ['admin-of-workspace', 'workspace'],
      ['editor', 'project'],
      ['reviewer', 'project'],
    ])
      await caller.post('/authorization/roles', { slug, name: slug, resource_type_slug: type }).expect(201);
  }

  /** The resource that stands for the organization. */
  get root(): string {
    return `authz_resource_${this.id.slice(-26)}`;
  }

  async membership(): Promise<string> {
    const user_id = idOf(await this.caller.post('/user_management/users', { email: `user-${++names}@acme.test` }).expect(201));
    return idOf(await this.caller.post('/user_management/organization_memberships', { user_id, organization_id: this.id }).expect(201));
  }

  async group(...members: readonly string[]): Promise<string> {
    const id = idOf(await this.caller.post(`/organizations/${this.id}/groups`, { name: 'Engineering' }).expect(201));
    for (const member of members) await this.join(id, member);
    return id;
  }

  async join(group: string, member: string): Promise<void> {
    await this.caller.post(`/organizations/${this.id}/groups/${group}/organization-memberships`, { organization_membership_id: member }).expect(200);
  }

  async leave(group: string, member: string): Promise<void> {
    await this.caller.delete(`/organizations/${this.id}/groups/${group}/organization-memberships/${member}`).expect(204);
  }

  async workspace(externalId = `a-workspace-${++names}`): Promise<string> {
    return this.resource({ external_id: externalId, resource_type_slug: 'workspace' });
  }

  async project(externalId = `a-project-${++names}`, parent?: string): Promise<string> {
    return this.resource({ external_id: externalId, resource_type_slug: 'project', ...(parent !== undefined && { parent_resource_id: parent }) });
  }

  private async resource(fields: { readonly external_id: string; readonly resource_type_slug: string; readonly parent_resource_id?: string }): Promise<string> {
    return idOf(await this.caller.post('/authorization/resources', { name: 'A resource', organization_id: this.id, ...fields }).expect(201));
  }
}

function idOf(answer: unknown): string {
  return (answer as { readonly id: string }).id;
}
