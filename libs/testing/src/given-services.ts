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
import { operations, Serialised } from '#libs/contracts/src/operation';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { SystemClock, type Clock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { PinoLog } from '#libs/platform/src/pino.log';
import { systemContext } from '#libs/platform/src/system-context';
import type { Engines } from '#libs/runtime/src/engines';
import { openEngines } from '#libs/runtime/src/open-engines';
import { runtimeOver, type Runtime } from '#libs/runtime/src/runtime';
import { provided } from '#libs/runtime/src/runtime.module';
import { modulesOf } from '#libs/runtime/src/service';

/** The environment in which they are asked. */
export const ENVIRONMENT = 'environment_01J00000000000000000000000';

const apps = [identityApp, authorizationApp, directorySyncApp, auditLogsApp, notificationsApp];

@Module({})
class AppModule {}

export interface GivenServices {
  readonly runtime: Runtime;
  /** What an operation answers. `patience`: how long whoever asks waits for it. */
  ask(name: string, fields: object, patience?: number): Promise<{ readonly id: string; readonly [field: string]: unknown }>;
  /** What one of the services has made. */
  get<Provided>(type: abstract new (...args: never[]) => Provided): Provided;
  close(): Promise<void>;
}

/** All services in this process, without a gateway, on engines of which some are others than a setting can name. */
export async function givenServices(enginesOf: (embedded: Engines) => Engines, clock: Clock = new SystemClock()): Promise<GivenServices> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-services-'));
  const log = new PinoLog({ level: 'silent', readable: false });
  const variables = { DATA_DIR: directory, DATA_MIN_FREE: '0' };
  const settings = { of: <Settings extends object>(type: new () => Settings) => readSettings(type, variables) };
  const onFatal = (sentence: string): never => {
    throw new Error(sentence);
  };
  const embedded = await openEngines(settings.of(EngineSettings), {
    settings: settings.of(PlatformSettings),
    kafka: null,
    files: null,
    mayBegin: true,
    clock,
    log,
    onFatal,
  });
  const also = [PlatformSettings, EngineSettings, ...apps.flatMap((app) => app.settings)].map((type) => provided(type, settings.of(type)));
  const services = apps.flatMap((app) => app.services);
  const runtime = await runtimeOver({ engines: enginesOf(embedded), services, settings, clock, log, also });
  const root = { module: AppModule, imports: [runtime.module(null), ...apps.flatMap(modulesOf)] };
  const nest = await NestFactory.createApplicationContext(root, { logger: false });
  await runtime.lifecycle.start();
  return {
    runtime,
    ask: async (name, fields, patience = 20_000) => {
      const { type } = operations().find((operation) => operation.name === name)!;
      const operation = Object.assign(new type(), fields);
      operation.context = { ...systemContext(ENVIRONMENT, clock.now()), deadline: clock.now() + patience };
      const answer = await nest.get(OperationTransport).call(operation);
      return (answer instanceof Serialised ? JSON.parse(answer.json) : answer) as { readonly id: string };
    },
    get: (type) => nest.get(type, { strict: false }),
    close: async () => {
      await runtime.lifecycle.stop();
      await nest.close();
      await embedded.close();
      rmSync(directory, { recursive: true });
    },
  };
}
