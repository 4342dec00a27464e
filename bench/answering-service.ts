import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import { FindEnvironmentKey, type UsableEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised } from '#libs/contracts/src/operation';
import { GetOrganization } from '#libs/contracts/src/organizations/operations';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { DirectOperationTransport } from '#libs/messaging/src/direct.operation-transport';
import { Handlers, LocalServices } from '#libs/messaging/src/handlers';
import { Clock, SystemClock } from '#libs/platform/src/clock';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { readSettings } from '#libs/platform/src/config/setting';
import { TransportSettings } from '#libs/platform/src/config/settings';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Positions } from '#libs/platform/src/positions';
import { serveOperations } from '#libs/runtime/src/transport';

/** Answers what a gateway asks in order to let a request in and to read an organization, from memory: what is measured is the way to it. */
class Answers {
  @Handles(FindEnvironmentKey)
  async find(): Promise<UsableEnvironmentKey> {
    const id = '01J00000000000000000000000';
    return { id: `environment_key_${id}`, environment_id: `environment_${id}`, name: 'bench', client_id: 'client_bench', expires_at: null };
  }

  /** As text, which is how rows are stored. */
  @Handles(GetOrganization)
  async get({ id }: GetOrganization): Promise<Serialised<Organization>> {
    return new Serialised(
      `{"object":"organization","id":"${id}","name":"Amber Analytics","domains":[],"metadata":{},"external_id":null,"created_at":"2026-01-15T12:00:00.000Z","updated_at":"2026-01-15T12:00:00.000Z"}`,
    );
  }
}

/** It has seen everything. */
const positions: Positions = { reached: async () => {} };

@Module({
  imports: [CqrsModule.forRoot(), DiscoveryModule],
  providers: [
    Answers,
    Handlers,
    DirectOperationTransport,
    { provide: Clock, useClass: SystemClock },
    { provide: Positions, useValue: positions },
    // It has no handler for most of what the owner is asked.
    { provide: LocalServices, useValue: new LocalServices([]) },
  ],
})
class AnsweringService {}

const service = await NestFactory.createApplicationContext(AnsweringService, { logger: ['error', 'fatal'], abortOnError: false });
const settings = readSettings(TransportSettings, environmentVariables());
const log = new PinoLog({ level: 'warn', readable: false, destination: process.stderr });
await serveOperations(service.get(DirectOperationTransport), ['identity', 'authorization', 'directory-sync', 'audit-logs', 'notifications'], {
  settings,
  clock: service.get(Clock),
  log,
  metrics: new Metrics(),
});
