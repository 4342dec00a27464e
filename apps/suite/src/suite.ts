import 'reflect-metadata';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AnswerVault, OnlyReplica, Replicas } from '#apps/gateway/src/idempotency';
import { GatewayAdapter } from '#apps/gateway/src/gateway.adapter';
import { EnsureEnvironmentKey } from '#libs/contracts/src/environments/operations';
import type { Operation } from '#libs/contracts/src/operation';
import { EventStore } from '#libs/event-sourcing/src/event-store';
import { DirectOperationTransport } from '#libs/messaging/src/direct.operation-transport';
import { Handlers, OwnersHere } from '#libs/messaging/src/handlers';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock, SystemClock } from '#libs/platform/src/clock';
import { readSettings, unknownSettings, type Variables } from '#libs/platform/src/config/setting';
import { GatewaySettings, IdentitySettings, NotificationsSettings, PlatformSettings, SETTINGS_CLASSES } from '#libs/platform/src/config/settings';
import { newUlid } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { OperationsSurface, portRefused } from '#libs/platform/src/operations/operations-surface';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { openEmbeddedEngines, type Engines } from '#libs/platform/src/runtime/embedded';
import { Lifecycle } from '#libs/platform/src/runtime/lifecycle';
import { Readiness } from '#libs/platform/src/runtime/readiness';
import { provided, RuntimeModule } from '#libs/platform/src/runtime/runtime.module';
import { Sweepers } from '#libs/platform/src/sweepers';
import { systemContext } from '#libs/platform/src/system-context';
import { ReadModels } from '#libs/read-models/src/read-models';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { adminAddress } from './admin/admin-address.ts';
import { listenForAdmin } from './admin/admin-socket.ts';
import { carryOutOnData } from './admin/commands.ts';
import { identityViews } from '#apps/identity/src/identity.module';
import { Repository } from '#libs/event-sourcing/src/repository';
import { Reactions } from '#libs/event-sourcing/src/reaction';
import { Positions } from '#libs/event-sourcing/src/positions';
import { LogRepository } from '#libs/event-sourcing/src/log.repository';
import { Naming } from '#libs/event-sourcing/src/naming';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { SealedAnswerVault } from '#apps/gateway/src/sealed.answer-vault';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { StandInPositions } from './stand-in.ts';
import { firstKey, type FirstKey } from './first-key.ts';
import { NestLog } from './nest-log.ts';
import { SuiteModule } from './suite.module.ts';

export interface SuiteOptions {
  readonly variables: Variables;
  readonly log: Log;
  readonly clock?: Clock;
  /** Without it nothing is listened on and nothing runs in the background: for the command line when no server runs. */
  readonly serve?: boolean;
  /** The disk failed, or what lies on it is damaged: the process has to end, with this sentence. */
  readonly onFatal: (sentence: string) => void;
}

/** The gateway and the services in one process, on embedded engines. */
export class Suite {
  private constructor(
    private readonly app: NestFastifyApplication,
    readonly engines: Engines,
    readonly settings: Settings,
    private readonly operationsServer: Server | null,
    readonly firstKey: FirstKey | null,
  ) {}

  private admin: { close(): Promise<void> } | null = null;


  /** @throws StartRefused with the way out, when something outside of this program stands in the way */
  static async start({ variables, log, clock = new SystemClock(), serve = true, onFatal }: SuiteOptions): Promise<Suite> {
    const settings = readAll(variables);
    const { platform, gateway } = settings;
    for (const name of unknownSettings(SETTINGS_CLASSES, variables)) log.warn(`${name} is set, but there is no such setting.`);

    const readiness = new Readiness();
    const metrics = new Metrics();
    const surface = new OperationsSurface(readiness, metrics);
    const lifecycle = new Lifecycle();
    const engines = await openEmbeddedEngines({ settings: platform, clock, onFatal });
    const undo: (() => Promise<unknown>)[] = [() => engines.close()];
    try {
      const sweepers = new Sweepers({ clock, log, metrics, leases: engines.shortLived, intervalMs: platform.SWEEP_INTERVAL, holder: newUlid(clock.now()) });
      sweepers.add('short_lived', (now, limit) => engines.shortLived.sweep(now, limit));
      lifecycle.add(sweepers);
      const repository = new LogRepository(engines.events, engines.readModels, new Naming(await engines.keys.obtain('naming')), clock, log);
      for (const view of identityViews) repository.keep(view as never);
      const runtime = RuntimeModule.with(
        [
          provided(Clock, clock),
          provided(Log, log),
          provided(Readiness, readiness),
          provided(Metrics, metrics),
          provided(OperationsSurface, surface),
          provided(Lifecycle, lifecycle),
          provided(Sweepers, sweepers),
          provided(EventStore, engines.events),
          provided(ReadModels, engines.readModels),
          provided(ShortLived, engines.shortLived),
          provided(PlatformSettings, platform),
          provided(GatewaySettings, gateway),
          provided(IdentitySettings, settings.identity),
          provided(NotificationsSettings, settings.notifications),
          provided(OwnersHere, new OwnersHere(['identity'])),
          provided(Replicas, new OnlyReplica()),
          provided(Repository, repository),
          provided(Vault, new Vault(engines.keys)),
          provided(Positions, new StandInPositions()),
          provided(AnswerVault, new SealedAnswerVault(engines.keys)),
          provided(KeyStore, engines.keys),
        ],
        [
          { port: OperationTransport, by: DirectOperationTransport },
          { port: Handlers, by: Handlers },
          { port: Reactions, by: Reactions },
        ],
      );
      const operationsServer = serve && gateway.OPERATIONS_PORT !== null ? await surface.listen(gateway.HOST, gateway.OPERATIONS_PORT) : null;
      if (operationsServer !== null) undo.push(async () => operationsServer.close());

      const app = await NestFactory.create<NestFastifyApplication>(SuiteModule.over(runtime), new GatewayAdapter(gateway), {
        bodyParser: false,
        logger: new NestLog(log),
        abortOnError: false,
      });
      undo.push(() => app.close());
      await app.init();
      undo.push(() => lifecycle.stop());
      await lifecycle.start(serve ? undefined : ['views']);
      const suite = new Suite(app, engines, settings, operationsServer, serve && platform.GATEHOUSE_MODE === 'development' ? firstKey(platform.DATA_DIR) : null);
      if (serve) {
        await suite.ensureKeys();
        suite.admin = await listenForAdmin(adminAddress(platform.DATA_DIR), (request, tell) => carryOutOnData(suite, request, tell));
        undo.push(() => suite.admin!.close());
        await app.listen(gateway.PORT, gateway.HOST).catch((error: NodeJS.ErrnoException) => Promise.reject(portRefused(error, 'PORT', gateway.HOST, gateway.PORT)));
        readiness.start();
      }
      return suite;
    } catch (error) {
      for (const step of undo.reverse()) await step().catch(() => {});
      throw error;
    }
  }

  get url(): string {
    const { address, family, port } = this.app.getHttpServer().address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.app.get(OperationTransport).call(operation);
  }

  get<Port>(port: abstract new (...args: never[]) => Port): Port {
    return this.app.get<Port>(port as never);
  }

  /** Finishes what is in flight, from the gateway inwards. */
  async close(): Promise<void> {
    // Closing the application empties the gateway first.
    await this.app.close();
    await this.admin?.close();
    await this.get(Lifecycle).stop();
    this.operationsServer?.close();
    await this.engines.close();
  }

  /** The key of development mode, and the one that the settings name, work from the first request on. */
  private async ensureKeys(): Promise<void> {
    const { GATEHOUSE_API_KEY, GATEHOUSE_CLIENT_ID } = this.settings.identity;
    if (this.firstKey !== null) await this.ensureKey(this.firstKey.value, null);
    if (GATEHOUSE_API_KEY !== null) await this.ensureKey(GATEHOUSE_API_KEY, GATEHOUSE_CLIENT_ID);
  }

  private async ensureKey(value: string, clientId: string | null): Promise<void> {
    const operation = Object.assign(new EnsureEnvironmentKey(), { name: 'development', value, ...(clientId !== null && { client_id: clientId }) });
    operation.context = systemContext(SYSTEM_ENVIRONMENT, this.get(Clock).now());
    await this.call(operation);
  }
}

export type Settings = ReturnType<typeof readAll>;

function readAll(variables: Variables) {
  return {
    platform: readSettings(PlatformSettings, variables),
    gateway: readSettings(GatewaySettings, variables),
    identity: readSettings(IdentitySettings, variables),
    notifications: readSettings(NotificationsSettings, variables),
  };
}
