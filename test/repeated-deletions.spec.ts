import { randomUUID } from 'node:crypto';
import '#libs/contracts/src/all';
import { operations } from '#libs/contracts/src/operation';
import { newCommandId } from '#libs/platform/src/ids';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

let suite: GivenSuite;
let environment: string;
beforeAll(async () => {
  suite = await givenSuite();
  await made('/admin/resource_types', { slug: 'project', name: 'Project', parent_type_slugs: ['organization'] });
  await made('/authorization/roles', { slug: 'editor', name: 'Editor', resource_type_slug: 'project' });
  environment = (await suite.records('resource_type.created'))[0]!.meta.environment;
});

async function made(path: string, body: object): Promise<string> {
  return (await suite.post(path, body).expect(201)).id as string;
}

const named = (slug: string = `x-${randomUUID()}`) => ({ slug, name: 'Named' });
const organization = () => made('/organizations', { name: 'Acme' });
const user = () => made('/user_management/users', { email: `${randomUUID()}@acme.test` });
const permission = async () => {
  const body = named();
  await made('/authorization/permissions', body);
  return body.slug;
};
const resource = (organization_id: string, external_id = 'p-1') =>
  made('/authorization/resources', { organization_id, resource_type_slug: 'project', external_id, name: 'Project' });
const membership = async (organization_id: string) => made('/user_management/organization_memberships', { organization_id, user_id: await user() });
const directory = async () => made('/admin/directories', { organization_id: await organization(), type: 'okta scim v2.0', name: 'Directory' });
const group = (organization_id: string) => made(`/organizations/${organization_id}/groups`, { name: 'Group' });

async function customRole(organization_id: string): Promise<string> {
  await made(`/authorization/organizations/${organization_id}/roles`, named('org-auditor'));
  return 'org-auditor';
}

async function assigned(holder: 'organization_memberships' | 'groups', id: string, organization_id: string) {
  const role = { role_slug: 'editor', resource_id: await resource(organization_id) };
  return { ...role, role_assignment_id: await made(`/authorization/${holder}/${id}/role_assignments`, role) };
}

/** What each operation is given to take something away that is there. */
const GIVEN: Readonly<Record<string, () => Promise<object>>> = {
  DeleteOrganization: async () => ({ id: await organization() }),
  DeleteOrganizationDomain: async () => ({
    id: await made('/organization_domains', { domain: `${randomUUID()}.test`, organization_id: await organization() }),
  }),
  DeleteUser: async () => ({ id: await user() }),
  DeleteAuthenticationFactor: async () => ({ id: await made('/auth/factors/enroll', { type: 'generic_otp', user_id: await user() }) }),
  DeleteDirectory: async () => ({ id: await directory() }),
  RevokeDirectoryToken: async () => {
    const id = await directory();
    return { id, token_id: await made(`/admin/directories/${id}/tokens`, {}) };
  },
  DeleteOrganizationMembership: async () => ({ id: await membership(await organization()) }),
  DeleteApiKey: async () => ({ id: await made(`/organizations/${await organization()}/api_keys`, { name: 'Build server' }) }),
  DeleteGroup: async () => {
    const organization_id = await organization();
    return { organization_id, group_id: await group(organization_id) };
  },
  RemoveGroupMember: async () => {
    const organization_id = await organization();
    const [group_id, organization_membership_id] = [await group(organization_id), await membership(organization_id)];
    await suite.post(`/organizations/${organization_id}/groups/${group_id}/organization-memberships`, { organization_membership_id }).expect(200);
    return { organization_id, group_id, organization_membership_id };
  },
  DeleteResourceType: async () => {
    const { slug, name } = named();
    await made('/admin/resource_types', { slug, name, parent_type_slugs: ['organization'] });
    return { slug };
  },
  DeletePermission: async () => ({ slug: await permission() }),
  DeleteRole: async () => {
    const body = named();
    await made('/authorization/roles', body);
    return { slug: body.slug };
  },
  DeleteOrganizationRole: async () => {
    const organization_id = await organization();
    return { organization_id, slug: await customRole(organization_id) };
  },
  RemoveOrganizationRolePermission: async () => {
    const organization_id = await organization();
    const [role_slug, permission_slug] = [await customRole(organization_id), await permission()];
    await suite.post(`/authorization/organizations/${organization_id}/roles/${role_slug}/permissions`, { slug: permission_slug }).expect(200);
    return { organization_id, role_slug, permission_slug };
  },
  DeleteAuthorizationResource: async () => ({ resource_id: await resource(await organization()), cascade_delete: false }),
  DeleteAuthorizationResourceByExternalId: async () => {
    const organization_id = await organization();
    await resource(organization_id, 'p-2');
    return { organization_id, resource_type_slug: 'project', external_id: 'p-2', cascade_delete: false };
  },
  DeleteRoleAssignment: async () => {
    const organization_id = await organization();
    const organization_membership_id = await membership(organization_id);
    const { role_slug, resource_id } = await assigned('organization_memberships', organization_membership_id, organization_id);
    return { organization_membership_id, role_slug, resource_id };
  },
  DeleteRoleAssignmentById: async () => {
    const organization_id = await organization();
    const organization_membership_id = await membership(organization_id);
    const { role_assignment_id } = await assigned('organization_memberships', organization_membership_id, organization_id);
    return { organization_membership_id, role_assignment_id };
  },
  DeleteGroupRoleAssignment: async () => {
    const organization_id = await organization();
    const group_id = await group(organization_id);
    const { role_slug, resource_id } = await assigned('groups', group_id, organization_id);
    return { group_id, role_slug, resource_id };
  },
  DeleteGroupRoleAssignmentById: async () => {
    const organization_id = await organization();
    const group_id = await group(organization_id);
    const { role_assignment_id } = await assigned('groups', group_id, organization_id);
    return { group_id, role_assignment_id };
  },
  DeleteRedirectUri: async () => {
    await suite.post('/user_management/redirect_uris', { uri: 'https://acme.test/first' }).expect(201);
    return { id: await made('/user_management/redirect_uris', { uri: `https://acme.test/${randomUUID()}` }) };
  },
  DeleteCorsOrigin: async () => ({ id: await made('/user_management/cors_origins', { origin: `https://${randomUUID()}.test` }) }),
  RemoveRadarListEntry: async () => {
    const entry = `${randomUUID()}@acme.test`;
    await suite.post('/radar/lists/email/block', { entry }).expect(200);
    return { type: 'email', action: 'block', entry };
  },
  DeleteAuditLogStream: async () => {
    const id = await organization();
    await suite.put(`/admin/organizations/${id}/audit_log_stream`, { type: 'GenericHttps', url: 'https://acme.test/', secret: randomUUID() }).expect(200);
    return { id };
  },
  DeleteWebhookEndpoint: async () => ({ id: await made('/webhook_endpoints', { endpoint_url: `https://${randomUUID()}.test/`, events: [] }) }),
};

const deletions = operations().filter(({ route }) => route?.method === 'delete');

describe('a deletion', () => {
  it.each(deletions.map(({ name, type }) => [name, type] as const))('that is carried out and comes again is done: %s', async (name, type) => {
    const given = GIVEN[name];
    if (given === undefined) throw new Error(`Say what ${name} is given.`);
    const fields = await given();
    const actor = { id: 'key', source: 'api', name: null } as const;
    const ask = (commandId: string, attempt = 1) => suite.call(type, fields, { environment, actor, commandId, attempt });
    const commandId = newCommandId(Date.now());

    const answer = await ask(commandId);
    const recorded = await ofCommand(commandId);
    expect(recorded.length).toBeGreaterThan(0);
    expect(await ask(commandId, 2)).toEqual(answer);
    expect(await ofCommand(commandId)).toEqual(recorded);

    const other = newCommandId(Date.now());
    await expect(ask(other, 2)).rejects.toMatchObject({ code: 'entity_not_found' });
    expect(await ofCommand(other)).toEqual([]);
  });

  it.each(deletions.map(({ name, type }) => [name, type] as const))('that three ask for at once is done for one of them: %s', async (name, type) => {
    const fields = await GIVEN[name]!();
    const actor = { id: 'key', source: 'api', name: null } as const;
    const commands = [0, 1, 2].map(() => newCommandId(Date.now()));
    const outcomes = await Promise.allSettled(commands.map((commandId) => suite.call(type, fields, { environment, actor, commandId })));
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
    expect(refusals).toEqual([0, 1].map(() => expect.objectContaining({ code: 'entity_not_found' }) as unknown));
    const done = outcomes.findIndex(({ status }) => status === 'fulfilled');
    for (const [index, commandId] of commands.entries()) expect((await ofCommand(commandId)).length > 0).toBe(index === done);
  });

  async function ofCommand(commandId: string): Promise<readonly string[]> {
    return (await suite.records()).filter(({ meta }) => meta.commandId === commandId).map(({ type }) => type);
  }
});
