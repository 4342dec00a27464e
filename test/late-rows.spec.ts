import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { authorizationApp } from '#apps/authorization/src/authorization.app';
import { identityApp } from '#apps/identity/src/identity.app';
import { notificationsApp } from '#apps/notifications/src/notifications.app';
import '#libs/contracts/src/all';
import { operations, Serialised } from '#libs/contracts/src/operation';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { PinoLog } from '#libs/platform/src/pino.log';
import { modulesOf } from '#libs/runtime/src/service';
import type { Engines } from '#libs/runtime/src/engines';
import { openEngines } from '#libs/runtime/src/open-engines';
import { runtimeOver, type Runtime } from '#libs/runtime/src/runtime';
import { provided } from '#libs/runtime/src/runtime.module';
import { systemContext } from '#libs/platform/src/system-context';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';

const apps = [identityApp, authorizationApp, notificationsApp];
const ENVIRONMENT = 'environment_01J00000000000000000000000';

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

@Module({})
class AppModule {}

let directory: string;
let engines: Engines;
let rows: LateRows;
let runtime: Runtime;
let nest: INestApplicationContext;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-late-rows-'));
  const clock = new SystemClock();
  const log = new PinoLog({ level: 'silent', readable: false });
  const variables = { DATA_DIR: directory, DATA_MIN_FREE: '0' };
  const settings = { of: <Settings extends object>(type: new () => Settings) => readSettings(type, variables) };
  const onFatal = (sentence: string): never => {
    throw new Error(sentence);
  };
  engines = await openEngines(settings.of(EngineSettings), { settings: settings.of(PlatformSettings), kafka: null, mayBegin: true, clock, log, onFatal });
  rows = new LateRows(engines.readModels);
  const also = [PlatformSettings, EngineSettings, ...apps.flatMap((app) => app.settings)].map((type) => provided(type, settings.of(type)));
  const services = apps.flatMap((app) => app.services);
  runtime = await runtimeOver({ engines: { ...engines, readModels: rows }, services, settings, clock, log, also });
  const root = { module: AppModule, imports: [runtime.module(null), ...apps.flatMap(modulesOf)] };
  nest = await NestFactory.createApplicationContext(root, { logger: false });
  await runtime.lifecycle.start();
});
afterAll(async () => {
  rows.open();
  await runtime.lifecycle.stop();
  await nest.close();
  await engines.close();
  rmSync(directory, { recursive: true });
});

/** What an operation answers. `patience`: how long whoever asks waits for it. */
async function ask(name: string, fields: object, patience = 20_000): Promise<{ readonly id: string; readonly [field: string]: unknown }> {
  const { type } = operations().find((operation) => operation.name === name)!;
  const operation = Object.assign(new type(), fields);
  operation.context = { ...systemContext(ENVIRONMENT, Date.now()), deadline: Date.now() + patience };
  const answer = await nest.get(OperationTransport).call(operation);
  return (answer instanceof Serialised ? JSON.parse(answer.json) : answer) as { readonly id: string };
}

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
    { create: ['CreateWebhookEndpoint', { endpoint_url: `https://${external_id}.test/`, events: [] }], get: { GetWebhookEndpoint: byId } },
  ];
}

/** What is no row that a projector writes. */
const ELSEWHERE = ['GetWebhookDelivery'];
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
