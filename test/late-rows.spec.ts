import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { operations } from '#libs/contracts/src/operation';
import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import { givenServices, type GivenServices } from '#libs/testing/src/given-services';
import { eventually } from '#libs/testing/src/until';

/** Rows that are away when they are to be written with their events, and that come when they are let in. */
class LateRows extends ReadModels {
  private isOpen = true;
  private opened: Promise<void> = Promise.resolve();
  private letIn: () => void = () => {};

  constructor(private readonly rows: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const table = this.rows.table(definition);
    if (!definition.rebuildable) return table;
    const write: Table<Row>['write'] = async (writes, checkpoint, fence) => {
      // What is written with a checkpoint is written by whoever follows the log.
      if (checkpoint === undefined && !this.isOpen) throw new Error('The rows are away.');
      await this.opened;
      await table.write(writes, checkpoint, fence);
    };
    return new Proxy(table, { get: (target, name) => (name === 'write' ? write : Reflect.get(target, name)) });
  }

  drop(table: string): Promise<void> {
    return this.rows.drop(table);
  }

  close(): void {
    this.isOpen = false;
    this.opened = new Promise((resolve) => (this.letIn = resolve));
  }

  open(): void {
    this.isOpen = true;
    this.letIn();
  }
}

let rows: LateRows;
let services: GivenServices;
const ask: GivenServices['ask'] = (...given) => services.ask(...given);
beforeAll(async () => {
  services = await givenServices((engines) => ({ ...engines, readModels: (rows = new LateRows(engines.readModels)) }));
});
afterAll(async () => {
  rows.open();
  await services.close();
});

/** What is created where, and how it is asked for. */
interface Late {
  readonly create: readonly [operation: string, fields: object];
  readonly get: Readonly<Record<string, (created: { readonly id: string; readonly [field: string]: unknown }) => object>>;
}

async function lateThings(): Promise<readonly Late[]> {
  const external_id = randomUUID();
  const slug = `x-${external_id}`;
  const organization = await ask('CreateOrganization', { name: 'Acme' });
  const organization_id = organization.id;
  const user = await ask('CreateUser', { email: `${external_id}@acme.test` });
  const group = await ask('CreateGroup', { organization_id, name: 'Editors' });
  await ask('CreateResourceType', { slug: 'project', name: 'Project', parent_type_slugs: ['organization'] });
  await ask('CreateRole', { slug: 'auditor', name: 'Auditor' });
  const byId = ({ id }: { readonly id: string }) => ({ id });
  const bySlug = () => ({ slug });
  const named = { slug, name: 'Named' };
  return [
    { create: ['CreateOrganization', { name: 'Late', external_id }], get: { GetOrganization: byId, GetOrganizationByExternalId: () => ({ external_id }) } },
    { create: ['CreateOrganizationDomain', { organization_id, domain: `${external_id}.test` }], get: { GetOrganizationDomain: byId } },
    { create: ['CreateUser', { email: `late-${external_id}@acme.test`, external_id }], get: { GetUser: byId, GetUserByExternalId: () => ({ external_id }) } },
    { create: ['CreateOrganizationMembership', { organization_id, user_id: user.id }], get: { GetOrganizationMembership: byId } },
    { create: ['CreateGroup', { organization_id, name: 'Late' }], get: { GetGroup: ({ id: group_id }) => ({ organization_id, group_id }) } },
    { create: ['CreateResourceType', { ...named, parent_type_slugs: ['organization'] }], get: { GetResourceType: bySlug } },
    { create: ['CreatePermission', named], get: { GetPermission: bySlug } },
    { create: ['CreateRole', named], get: { GetRole: bySlug } },
    {
      create: ['CreateOrganizationRole', { organization_id, slug: 'org-late', name: 'Late' }],
      get: { GetOrganizationRole: () => ({ organization_id, slug: 'org-late' }) },
    },
    {
      create: ['CreateAuthorizationResource', { organization_id, resource_type_slug: 'project', external_id, name: 'Late' }],
      get: {
        GetAuthorizationResource: ({ id: resource_id }) => ({ resource_id }),
        GetAuthorizationResourceByExternalId: () => ({ organization_id, resource_type_slug: 'project', external_id }),
      },
    },
    {
      create: ['CreateGroupRoleAssignment', { group_id: group.id, role_slug: 'auditor' }],
      get: { GetGroupRoleAssignment: ({ id: role_assignment_id }) => ({ group_id: group.id, role_assignment_id }) },
    },
    { create: ['CreateMagicAuth', { email: user['email'] }], get: { GetMagicAuth: byId } },
    { create: ['EnrollAuthenticationFactor', { type: 'generic_otp' }], get: { GetAuthenticationFactor: byId } },
    { create: ['CreatePasswordReset', { email: user['email'] }], get: { GetPasswordReset: byId } },
    {
      create: ['SendInvitation', { email: `invited-${external_id}@acme.test`, organization_id, expires_in_days: 7 }],
      get: { GetInvitation: byId, FindInvitationByToken: ({ token }) => ({ token }) },
    },
    {
      create: ['CreateDirectory', { organization_id, type: 'okta scim v2.0', name: 'Late' }],
      get: { GetDirectory: byId, GetConfiguredDirectory: byId },
    },
    {
      create: ['CreateAuditLogExport', { organization_id, range_start: new Date().toISOString(), range_end: new Date().toISOString() }],
      get: { GetAuditLogExport: byId },
    },
    { create: ['CreateWebhookEndpoint', { endpoint_url: `https://${external_id}.test/`, events: [] }], get: { GetWebhookEndpoint: byId } },
  ];
}

/** What no operation creates. */
const BY_SCIM = ['GetDirectoryUser', 'GetDirectoryGroup'];
/** What is no row that a projector writes, and, of email verifications, challenges and audit events, what no answer to its creation names: it is found as a magic code is. */
const ELSEWHERE = [
  ...['GetWebhookDelivery', 'GetAuthenticationPolicy', 'GetEnvironmentSettings', 'GetJwtTemplate', 'GetTokenKeySet'],
  ...['GetEmailVerification', 'GetRadarChallenge', 'GetDirectoryRun', 'GetAuditLogEvent', ...BY_SCIM],
  ...['GetAuditLogsRetention', 'GetAuditLogConfiguration'],
  ...['GetAuditLogCheckpoint', 'ProveAuditLogInclusion', 'ProveAuditLogConsistency', 'GetAuditLogKeys'],
  ...['GetAuditLogStream', 'ListAuditLogStreamDeliveries'],
];
const lookUps = operations()
  .filter(({ route, options }) => route?.method === 'get' && options.answers.shape === 'one')
  .map(({ name }) => name);

it('finds what was created although its row comes after the answer, and says of nothing that it is not there before', async () => {
  const late = await lateThings();
  expect(late.flatMap(({ get }) => Object.keys(get)).sort()).toEqual(lookUps.filter((name) => !ELSEWHERE.includes(name)).sort());

  rows.close();
  const created = await Promise.all(late.map(({ create: [operation, fields] }) => ask(operation, fields)));
  const asked = late.flatMap(({ get }, index) =>
    Object.entries(get).map(([name, given]) => ({ name, fields: given(created[index]!), id: created[index]!.id })),
  );
  const outcomes = async (patience?: number) =>
    Promise.all(
      asked.map(async ({ name, fields, id }) => {
        const outcome = await ask(name, fields, patience).then(
          (found) => (found.id === id ? 'found' : 'another'),
          (error: { readonly code?: string }) => error.code,
        );
        return [name, outcome];
      }),
    );
  // Whoever cannot wait is told to ask again. Where the log alone knows enough, nobody waits.
  for (const [, outcome] of await outcomes(500)) expect(['found', 'service_unavailable']).toContain(outcome);

  const waiting = outcomes();
  await pause(100);
  rows.open();
  expect(await waiting).toEqual(asked.map(({ name }) => [name, 'found']));
});

it('erases what was written to an address before it had a user, although the row that tells of it comes late', async () => {
  const email = `erased-${randomUUID()}@acme.test`;
  rows.close();
  const invitation = await ask('SendInvitation', { email, expires_in_days: 7 });
  const { id } = await ask('CreateUser', { email });
  await expect(ask('EraseUser', { id }, 500)).rejects.toMatchObject({ code: 'service_unavailable' });
  const erased = ask('EraseUser', { id });
  await pause(100);
  rows.open();
  await erased;
  await eventually(async () => expect(await ask('GetInvitation', { id: invitation.id })).toMatchObject({ email: '', state: 'revoked' }));
});
