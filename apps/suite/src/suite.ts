import 'reflect-metadata';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Gateway } from '#apps/gateway/src/gateway';
import { GatewayAdapter } from '#apps/gateway/src/gateway.adapter';
import { OnlyReplica, Replicas } from '#apps/gateway/src/idempotency';
import { identityViews } from '#apps/identity/src/identity.module';
import { notificationsViews } from '#apps/notifications/src/notifications.module';
import { EnvironmentKeyWithValue } from '#libs/contracts/src/environments/environment';
import { EnsureEnvironmentKey } from '#libs/contracts/src/environments/operations';
import type { Operation } from '#libs/contracts/src/operation';
import { WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { SystemClock, type Clock } from '#libs/platform/src/clock';
import { readSettings, unknownSettings, type Variables } from '#libs/platform/src/config/setting';
import { GatewaySettings, IdentitySettings, NotificationsSettings, PlatformSettings, SETTINGS_CLASSES } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import { portRefused } from '#libs/platform/src/operations/operations-surface';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { openEmbeddedEngines, type Engines } from '#libs/platform/src/runtime/embedded';
import { runtimeOver, type Runtime, type Service } from '#libs/platform/src/runtime/runtime';
import { provided } from '#libs/platform/src/runtime/runtime.module';
import { StartRefused } from '#libs/platform/src/start-refused';
import { systemContext } from '#libs/platform/src/system-context';
import { adminAddress } from './admin/admin-address.ts';
import { listenForAdmin } from './admin/admin-socket.ts';
import { carryOutOnData } from './admin/commands.ts';
import { firstKey, type FirstKey } from './first-key.ts';
import { NestLog } from './nest-log.ts';
import { SuiteModule } from './suite.module.ts';

export interface SuiteOptions {
  readonly variables: Variables;
  readonly log: Log;
  readonly clock?: Clock;
  /** Less than the server, where the command line takes its place: nothing listens and nothing runs in the background. */
  readonly run?: 'server' | 'views' | 'nothing';
  /** The disk failed, or what lies on it is damaged: the process has to end, with this sentence. */
  readonly onFatal: (sentence: string) => void;
}

const SERVICES: readonly Service[] = [
  { owner: 'identity', views: identityViews, sealed: { environment_key: EnvironmentKeyWithValue } },
  { owner: 'notifications', views: notificationsViews, sealed: { webhook_endpoint: WebhookEndpoint } },
];

/** The gateway and the services in one process, on embedded engines. */
export class Suite {
  /** What stops what was started, in the order of starting. */
  private readonly stops: (() => Promise<unknown>)[] = [];
  private app!: NestFastifyApplication;
  private operations: Server | null = null;
  /** Only in development mode, and only while serving. */
  firstKey: FirstKey | null = null;

  private constructor(
    readonly engines: Engines,
    readonly runtime: Runtime,
    readonly settings: Settings,
    private readonly clock: Clock,
  ) {
    this.stops.push(() => engines.close());
  }

  /** @throws StartRefused with the way out, when something outside of this program stands in the way */
  static async start({ variables, log, clock = new SystemClock(), run = 'server', onFatal }: SuiteOptions): Promise<Suite> {
    const settings = readAll(variables);
    for (const name of unknownSettings(SETTINGS_CLASSES, variables)) log.warn(`${name} is set, but there is no such setting.`);
    const engines = await openEmbeddedEngines({ settings: settings.platform, clock, onFatal });
    const also = [
      provided(PlatformSettings, settings.platform),
      provided(GatewaySettings, settings.gateway),
      provided(IdentitySettings, settings.identity),
      provided(NotificationsSettings, settings.notifications),
      provided(Replicas, new OnlyReplica()),
    ];
    const runtime = await runtimeOver({ engines, services: SERVICES, settings: settings.platform, clock, log, also }).catch(async (error: unknown) => {
      await engines.close();
      throw error;
    });
    const suite = new Suite(engines, runtime, settings, clock);
    try {
      await suite.assemble(log);
      if (run === 'server') await suite.serve();
      if (run === 'views') await suite.startParts(['views']);
      return suite;
    } catch (error) {
      await suite.close().catch(() => {});
      throw error;
    }
  }

  get url(): string {
    return urlOf(this.app.getHttpServer());
  }

  /** Where health and metrics are asked. */
  get operationsUrl(): string {
    return this.operations === null ? this.url : urlOf(this.operations);
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.get(OperationTransport).call(operation);
  }

  get<Port>(port: abstract new (...args: never[]) => Port): Port {
    return this.app.get<Port>(port);
  }

  /** Finishes what is in flight: first the requests, then what they left to do, at last the engines. */
  async close(): Promise<void> {
    for (const stop of this.stops.splice(0).reverse()) await stop();
  }

  private async assemble(log: Log): Promise<void> {
    this.app = await NestFactory.create<NestFastifyApplication>(SuiteModule.over(this.runtime.module), new GatewayAdapter(this.settings.gateway), {
      bodyParser: false,
      logger: new NestLog(log),
      abortOnError: false,
    });
    this.stopLater(() => this.app.close());
    // Also where a command has started it.
    this.stopLater(() => this.runtime.projector.stop());
    await this.app.init();
  }

  /** Listens first, so that a taken port is told at once and readiness can be asked; the gateway refuses until everything behind it is there. */
  private async serve(): Promise<void> {
    const { HOST, PORT, OPERATIONS_PORT } = this.settings.gateway;
    const { GATEHOUSE_MODE, DATA_DIR } = this.settings.platform;
    const { surface, readiness } = this.runtime;
    if (OPERATIONS_PORT !== null) {
      this.operations = await surface.listen(HOST, OPERATIONS_PORT);
      this.stopLater(closing(this.operations));
    }
    await this.app.listen(PORT, HOST).catch((error: NodeJS.ErrnoException) => {
      throw portRefused(error, 'PORT', HOST, PORT);
    });
    await this.startParts();
    if (GATEHOUSE_MODE === 'development') this.firstKey = firstKey(DATA_DIR);
    await this.ensureKeys();
    const admin = await listenForAdmin(adminAddress(DATA_DIR), (request, tell) => carryOutOnData(this, request, tell));
    this.stopLater(() => admin.close());
    this.stopLater(() => this.get(Gateway).drain());
    readiness.start();
  }

  private async startParts(only?: Parameters<Runtime['lifecycle']['start']>[0]): Promise<void> {
    this.stopLater(() => this.runtime.lifecycle.stop());
    await this.runtime.lifecycle.start(only);
  }

  private stopLater(stop: () => Promise<unknown>): void {
    this.stops.push(stop);
  }

  /** The key of development mode, and the one that the settings name, work from the first request on. */
  private async ensureKeys(): Promise<void> {
    const { GATEHOUSE_API_KEY, GATEHOUSE_CLIENT_ID } = this.settings.identity;
    if (this.firstKey !== null) await this.ensureKey(this.firstKey.value, null);
    if (GATEHOUSE_API_KEY !== null) await this.ensureKey(GATEHOUSE_API_KEY, GATEHOUSE_CLIENT_ID);
  }

  private async ensureKey(value: string, clientId: string | null): Promise<void> {
    const operation = Object.assign(new EnsureEnvironmentKey(), { name: 'development', value, ...(clientId !== null && { client_id: clientId }) });
    operation.context = systemContext(SYSTEM_ENVIRONMENT, this.clock.now());
    await this.call(operation).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === 'storage_full')
        throw new StartRefused(`The disk of ${this.settings.platform.DATA_DIR} has too little room for a first start: make room, or set DATA_MIN_FREE lower.`);
      throw error;
    });
  }
}

type Settings = ReturnType<typeof readAll>;

function readAll(variables: Variables) {
  return {
    platform: readSettings(PlatformSettings, variables),
    gateway: readSettings(GatewaySettings, variables),
    identity: readSettings(IdentitySettings, variables),
    notifications: readSettings(NotificationsSettings, variables),
  };
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function closing(server: Server): () => Promise<void> {
  return async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
}
