import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import 'reflect-metadata';
import { Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import type { Operation, ServiceName } from '#libs/contracts/src/operation';
import { DirectOperationTransport } from '#libs/messaging/src/direct.operation-transport';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import type { RemoteOperations } from '#libs/messaging/src/routed.operation-transport';
import { SystemClock, type Clock } from '#libs/platform/src/clock';
import { readSettings, unknownSettings, type Variables } from '#libs/platform/src/config/setting';
import {
  BlobSettings,
  EngineSettings,
  GatewaySettings,
  KafkaSettings,
  PlatformSettings,
  SETTINGS_CLASSES,
  TransportSettings,
} from '#libs/platform/src/config/settings';
import { faceOf, type HttpFace } from '#libs/platform/src/http-face';
import type { Log } from '#libs/platform/src/log';
import { patiently } from '#libs/platform/src/patience';
import { settingsOfProcess, type App, type Run, type RunningApp } from './app.ts';
import type { Engines } from './engines.ts';
import { FaceServer } from './face-server.ts';
import { NestLog } from './nest-log.ts';
import { openEngines } from './open-engines.ts';
import { requireSettings } from './required-settings.ts';
import { RestoreMark } from './restore-mark.ts';
import { provided } from './runtime.module.ts';
import { runtimeOver, type Runtime } from './runtime.ts';
import { modulesOf, type SettingsOfProcess } from './service.ts';
import { openRemoteOperations, serveOperations, type OperationServer } from './transport.ts';

export interface ProcessOptions {
  readonly variables: Variables;
  readonly log: Log;
  readonly clock?: Clock;
  readonly run?: Run;
  /** How the engines are opened that the settings name; absent: for this process alone. */
  readonly open?: typeof openEngines;
  /** What is stored is damaged, or cannot be stored any more: the process has to end, with this sentence. */
  readonly onFatal: (sentence: string) => void;
}

/** One process: an app, put together over its engines. */
export class AppProcess implements RunningApp {
  /** What stops what was started, in the order of starting. */
  private readonly stops: (() => Promise<unknown>)[] = [];
  private nest!: INestApplicationContext;
  private operations: Server | null = null;
  private server: OperationServer | null = null;
  /** Of a process without an API: where its faces are asked. */
  readonly faceUrls: string[] = [];
  /** Those that are answered on the server of the API. */
  private readonly faces: HttpFace[] = [];

  private constructor(
    private readonly app: App,
    private readonly run: Run,
    readonly engines: Engines,
    readonly runtime: Runtime,
    readonly settings: SettingsOfProcess,
    readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.stops.push(() => engines.close());
  }

  /** @throws StartRefused with the way out, when something outside of this program stands in the way */
  static async start(
    app: App,
    { variables, log, clock = new SystemClock(), run = 'server', open = openEngines, onFatal }: ProcessOptions,
  ): Promise<AppProcess> {
    const used = settingsOfProcess(app, run);
    await requireSettings(used, variables);
    const settings = new ReadSettings(used, variables);
    const injected = used.map((type) => provided(type, settings.of(type)));
    for (const name of unknownSettings(SETTINGS_CLASSES, variables)) log.warn(`${name} is set, but there is no such setting.`);

    const kafka = used.includes(KafkaSettings) ? settings.of(KafkaSettings) : null;
    const engines = await open(settings.of(EngineSettings), {
      settings: settings.of(PlatformSettings),
      kafka,
      files: used.includes(BlobSettings) ? settings.of(BlobSettings) : null,
      mayBegin: run !== 'restore',
      clock,
      log,
      onFatal,
    });
    const runtime = await (
      run === 'restore'
        ? Promise.resolve()
        : patiently(() => new RestoreMark(engines.shortLived).requireNone(), { log, what: 'Whether a restore is under way' })
    )
      .then(() => runtimeOver({ engines, services: app.services, settings, clock, log, also: injected }))
      .catch(async (error: unknown) => {
        await engines.close();
        throw error;
      });
    runtime.metrics
      .gauge({ name: 'process_start_seconds', help: 'When the process of this app started, in seconds since 1970.', labels: ['app'] })
      .set({ app: app.name }, clock.now() / 1_000);
    const process = new AppProcess(app, run, engines, runtime, settings, clock, log);
    try {
      await process.assemble();
      if (run === 'server') await process.serve();
      if (run === 'views') await process.startParts(['views']);
      return process;
    } catch (error) {
      await process.close().catch(() => {});
      throw error;
    }
  }

  /** Where it is asked: an API over HTTP, a service by other processes. */
  get url(): string {
    return this.server?.url ?? urlOf((this.nest as NestFastifyApplication).getHttpServer());
  }

  /** Where health and metrics are asked. */
  get operationsUrl(): string {
    return this.operations === null ? this.url : urlOf(this.operations);
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.get(OperationTransport).call(operation);
  }

  get<Port>(port: abstract new (...args: never[]) => Port): Port {
    return this.nest.get<Port>(port);
  }

  stopLater(stop: () => Promise<unknown>): void {
    this.stops.push(stop);
  }

  /** Finishes what is in flight: first the requests, then what they left to do, at last the engines. */
  async close(): Promise<void> {
    for (const stop of this.stops.splice(0).reverse()) await stop();
  }

  private async assemble(): Promise<void> {
    const { api } = this.app;
    const remote = settingsOfProcess(this.app, this.run).includes(TransportSettings) ? await openRemoteOperations(this.owners, this.transportNeeds) : null;
    if (remote !== null) {
      this.stopLater(() => remote.close());
      if (api !== undefined) this.awaitServices(remote);
    }
    const root = { module: AppModule, imports: [this.runtime.module(remote), ...modulesOf(this.app)] };
    const options = { logger: new NestLog(this.log), abortOnError: false };
    this.nest =
      api === undefined
        ? await NestFactory.createApplicationContext(root, options)
        : await NestFactory.create<NestFastifyApplication>(
            root,
            api.adapter(this.settings, (url) => faceOf(this.faces, url)),
            { ...options, bodyParser: false },
          );
    this.stopLater(() => this.nest.close());
    // Also where a command has started it.
    this.stopLater(() => this.runtime.projector.stop());
    await this.nest.init();
    if (api !== undefined) await this.mountFaces((this.nest as NestFastifyApplication).getHttpAdapter().getInstance());
  }

  /** Listens first, so that a taken port is told at once and readiness can be asked; the gateway refuses until everything behind it is there. */
  private async serve(): Promise<void> {
    const { api } = this.app;
    const { surface, readiness } = this.runtime;
    const { OPERATIONS_PORT } = this.settings.of(PlatformSettings);
    if (OPERATIONS_PORT !== null) {
      const host = api === undefined ? this.settings.of(TransportSettings).SERVICE_HOST : this.settings.of(GatewaySettings).HOST;
      this.operations = await surface.listen(host, OPERATIONS_PORT);
      this.stopLater(closing(this.operations));
    }
    await api?.listen(this.nest as NestFastifyApplication, this.settings);
    await this.startParts();
    await this.app.prepare?.(this);
    if (api === undefined) await this.serveFaces();
    if (api === undefined) await this.serveOperations();
    else this.stopLater(() => api.drain(this));
    readiness.start();
  }

  private async mountFaces(server: FastifyInstance): Promise<void> {
    for (const face of this.app.faces ?? []) {
      const own = this.get<HttpFace>(face.of);
      this.faces.push(own);
      await own.mount(server);
    }
  }

  /** Faces of a process without an API, each on a server of its own. */
  private async serveFaces(): Promise<void> {
    for (const { of, address } of this.app.faces ?? []) {
      if (address === null) continue;
      const server = await FaceServer.listen(this.get<HttpFace>(of), address(this.settings));
      this.faceUrls.push(server.url);
      this.stopLater(async () => {
        this.runtime.readiness.drain();
        await server.close(this.settings.of(PlatformSettings).SHUTDOWN_TIMEOUT);
      });
    }
  }

  private async serveOperations(): Promise<void> {
    const server = await serveOperations(this.get(DirectOperationTransport), this.owners, this.transportNeeds);
    this.server = server;
    this.stopLater(async () => {
      this.runtime.readiness.drain();
      await server.drain(this.settings.of(PlatformSettings).SHUTDOWN_TIMEOUT);
      await server.close();
    });
  }

  /** Requests that came before the first connection to a service would fail. */
  private awaitServices(remote: RemoteOperations): void {
    const { readiness } = this.runtime;
    readiness.awaits('the services');
    void remote.reached().then(() => readiness.found('the services'));
  }

  private get owners(): readonly ServiceName[] {
    return this.app.services.map(({ owner }) => owner);
  }

  private get transportNeeds() {
    return { settings: this.settings.of(TransportSettings), clock: this.clock, log: this.log, metrics: this.runtime.metrics };
  }

  private async startParts(only?: Parameters<Runtime['lifecycle']['start']>[0]): Promise<void> {
    this.stopLater(() => this.runtime.lifecycle.stop());
    await this.runtime.lifecycle.start(only);
  }
}

/** What everything in a process lies below. */
@Module({})
class AppModule {}

/** Each class is read once, and refused at once where a value is wrong. What the process does not name is not read, so that it gets by without. */
class ReadSettings implements SettingsOfProcess {
  private readonly read = new Map<unknown, object>();

  constructor(
    private readonly used: readonly (new () => object)[],
    private readonly variables: Variables,
  ) {}

  of<Settings extends object>(type: new () => Settings): Settings {
    if (!this.used.includes(type)) throw new Error(`${type.name} is not among the settings of this process.`);
    let settings = this.read.get(type) as Settings | undefined;
    if (settings === undefined) this.read.set(type, (settings = readSettings(type, this.variables)));
    return settings;
  }
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
