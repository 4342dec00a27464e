import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ContainerRuntimeClient } from 'testcontainers';
import { environmentVariables } from '#libs/platform/src/config/environment';
import type { EngineDefinition } from './engine-definition.ts';
import type { Engine } from './engine.ts';
import { freePort } from './free-port.ts';

/** The first start fetches the image. */
const READY_MS = 300_000;

type Container = ReturnType<ContainerRuntimeClient['container']['getById']>;

/** An engine in a container of its own image. It goes with the process that started it. */
export class ContainerEngine implements Engine {
  readonly pid = null;

  private constructor(
    private readonly container: Container,
    private readonly definition: EngineDefinition,
    readonly address: string,
  ) {}

  /** Resolves when it answers; null where no Docker engine does, or has no way to the image, or where it is named how a process of it is started. */
  static async start(definition: EngineDefinition): Promise<ContainerEngine | null> {
    if (definition.isNamed?.() || !mayHaveDocker()) return null;
    const { GenericContainer, getContainerRuntimeClient } = await import('testcontainers');
    const docker = await getContainerRuntimeClient().catch(() => null);
    if (docker === null) return null;
    const { imageMembers } = definition;
    const port = await freePort();
    const ports = [port];
    while (ports.length < (imageMembers?.count ?? 1)) ports.push(await freePort());
    const prepared = new GenericContainer(definition.image)
      .withExposedPorts(...ports.map((each) => ({ container: each, host: each })))
      .withEnvironment(definition.imageVariables(port))
      .withStartupTimeout(READY_MS);
    const container = imageMembers ? prepared.withCommand(imageMembers.command(ports)) : prepared;
    const started = await container.start().catch(() => null);
    if (started === null) return null;
    const engine = new ContainerEngine(docker.container.getById(started.getId()), definition, definition.addressAt(port));
    if (imageMembers)
      await engine.orLate(() =>
        imageMembers.join(ports).then(
          () => true,
          () => false,
        ),
      );
    await engine.ready();
    return engine;
  }

  get name(): string {
    return this.definition.name;
  }

  async pause(): Promise<void> {
    await this.container.pause();
  }

  async resume(): Promise<void> {
    await this.container.unpause();
  }

  async stop(): Promise<void> {
    if (await this.isRunning()) await this.container.stop();
  }

  async kill(): Promise<void> {
    if (await this.isRunning()) await this.container.kill();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.container.start();
    await this.ready();
  }

  async close(): Promise<void> {
    await this.container.remove({ force: true, v: true });
  }

  /** Docker neither stops nor kills what is paused. */
  private async isRunning(): Promise<boolean> {
    const { State } = await this.container.inspect();
    if (State.Paused) await this.container.unpause();
    return State.Running;
  }

  private ready(): Promise<void> {
    return this.orLate(() => this.definition.answers(this.address));
  }

  private async orLate(isSo: () => Promise<boolean>): Promise<void> {
    for (const deadline = Date.now() + READY_MS; !(await isSo()); await pause(200))
      if (Date.now() > deadline) throw new Error(`${this.definition.title} did not answer at ${this.address} in its container.`);
  }
}

/** Loading the client and letting it look takes a second, which a machine without Docker should not pay for every file of specs. */
function mayHaveDocker(): boolean {
  const { DOCKER_HOST, XDG_RUNTIME_DIR } = environmentVariables();
  const sockets = ['/var/run/docker.sock', join(homedir(), '.docker/run/docker.sock'), join(XDG_RUNTIME_DIR ?? '/run', 'docker.sock')];
  return DOCKER_HOST !== undefined || existsSync(join(homedir(), '.testcontainers.properties')) || sockets.some((socket) => existsSync(socket));
}
