import 'reflect-metadata';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { auditLogsApp } from '#apps/audit-logs/src/audit-logs.app';
import { authorizationApp } from '#apps/authorization/src/authorization.app';
import { directorySyncApp } from '#apps/directory-sync/src/directory-sync.app';
import { identityApp } from '#apps/identity/src/identity.app';
import { notificationsApp } from '#apps/notifications/src/notifications.app';
import '#libs/contracts/src/all';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { PinoLog } from '#libs/platform/src/pino.log';
import { modulesOf } from '#libs/runtime/src/service';
import { openEngines } from '#libs/runtime/src/open-engines';
import { runtimeOver } from '#libs/runtime/src/runtime';
import { provided } from '#libs/runtime/src/runtime.module';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { MongodbReadModels } from '#libs/read-models/src/mongodb.read-models';
import { ReadModels, type PageRequest, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { MongodbQuestions } from '#libs/testing/src/engines/mongodb-questions';

const apps = [identityApp, authorizationApp, directorySyncApp, auditLogsApp, notificationsApp];
const ENVIRONMENT = 'environment_01J00000000000000000000000';
const log = new PinoLog({ level: 'silent', readable: false });
const isThere = (await givenMongodb()) !== null;

@Module({})
class AppModule {}

/** Notes every table that is opened. */
class NotedTables extends ReadModels {
  readonly definitions = new Map<string, TableDefinition<never>>();

  constructor(private readonly rows: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const known = this.definitions.get(definition.name);
    // Whoever only asks how far a table is filled names no indexes.
    if (known === undefined || known.indexes.length < definition.indexes.length) this.definitions.set(definition.name, definition);
    return this.rows.table(definition);
  }

  drop(table: string): Promise<void> {
    return this.rows.drop(table);
  }
}

/** All tables of the product, as its processes open them. */
async function tablesOfProduct(): Promise<readonly TableDefinition<never>[]> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-table-queries-'));
  const clock = new SystemClock();
  const variables = { DATA_DIR: directory, DATA_MIN_FREE: '0' };
  const settings = { of: <Settings extends object>(type: new () => Settings) => readSettings(type, variables) };
  const onFatal = (sentence: string): never => {
    throw new Error(sentence);
  };
  const engines = await openEngines(settings.of(EngineSettings), {
    settings: settings.of(PlatformSettings),
    kafka: null,
    files: null,
    mayBegin: true,
    clock,
    log,
    onFatal,
  });
  const tables = new NotedTables(engines.readModels);
  const also = [PlatformSettings, EngineSettings, ...apps.flatMap((app) => app.settings)].map((type) => provided(type, settings.of(type)));
  const services = apps.flatMap((app) => app.services);
  const runtime = await runtimeOver({ engines: { ...engines, readModels: tables }, services, settings, clock, log, also });
  const root = { module: AppModule, imports: [runtime.module(null), ...apps.flatMap(modulesOf)] };
  const nest = await NestFactory.createApplicationContext(root, { logger: false });
  await runtime.lifecycle.start();
  await runtime.lifecycle.stop();
  await nest.close();
  await engines.close();
  rmSync(directory, { recursive: true });
  return [...tables.definitions.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Every kind of page that can be asked of a table, by what tells questions of the database apart. */
function* pagesOf({ indexes }: TableDefinition<never>, cursor: string): Generator<PageRequest> {
  const wheres = indexes.flatMap(({ name }) =>
    [1, 201].map((count) => ({ index: name, values: Array.from({ length: count }, (_, value) => `value ${value}`) })),
  );
  for (const where of [undefined, ...wheres])
    for (const order of ['asc', 'desc'] as const)
      for (const place of [{}, { after: cursor }, { before: cursor }])
        for (const bounds of [{}, { from: 'a' }, { from: 'a', to: 'b' }]) yield { where, order, limit: 10, ...place, ...bounds };
}

(isThere ? describe : describe.skip)('the tables of the product in MongoDB', () => {
  it('have an index for every page, which is named and serves filter, order and place', async () => {
    const definitions = await tablesOfProduct();
    // A view of each service, and what is stored beside views.
    for (const name of ['organizations-v', 'organization_roles-v', 'feed-v', 'webhook_queue', 'follower-states'])
      expect(definitions.map((definition) => definition.name).join('\n')).toContain(name);
    const storage = await MongodbStorage.connect({ url: MongodbQuestions.of((await givenMongodb())!), log });
    const questions = new MongodbQuestions();
    questions.watch(storage);
    const readModels = new MongodbReadModels(storage);
    let asked = 0;
    for (const definition of definitions) {
      const table = readModels.table(definition);
      // A tombstone is a cursor as well, and needs no row that the indexes of the table could read.
      await table.write([{ environment: ENVIRONMENT, id: 'cursor', position: '1', revision: 1, text: null }]);
      for (const request of pagesOf(definition, 'cursor')) await table.page(ENVIRONMENT, request);
      await table.getMany(ENVIRONMENT, ['a', 'b']);
      await table.purge(ENVIRONMENT, ['a', 'b']);
      await table.clear();
      const all = questions.take();
      asked += all.length;
      expect(questions.unserved(all)).toEqual([]);
      for (const { filter, hint } of all) if (Object.keys(filter).some((field) => field.startsWith('row.'))) expect(hint).toBeDefined();
    }
    expect(asked).toBeGreaterThan(80 * definitions.length);
    await storage.close();
  }, 180_000);
});
