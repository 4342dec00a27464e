import { join } from 'node:path';
import { SERVICES } from '#libs/contracts/src/operation';
import { modeOf, readSettings } from '#libs/platform/src/config/setting';
import { GatewaySettings, PlatformSettings, TransportSettings } from '#libs/platform/src/config/settings';
import { addressSetting } from '#libs/runtime/src/transport';
import type { AppContainer } from '../deployment/app-container.ts';
import { nodeFlags } from '../deployment/image.ts';
import { freePort } from '../engines/free-port.ts';
import { productProgram, ROOT } from '../process.ts';
import { APPS, type App, type PlannedProcess } from './cluster-process.ts';
import { startableOf } from './contained-process.ts';

type Settings = Readonly<Record<string, string>>;

/** Nobody else speaks to Kafka. */
const ANNOUNCING: readonly App[] = ['identity', 'authorization', 'directory-sync'];

/** A replica, and where it listens. */
interface Placed {
  readonly app: App;
  readonly name: string;
  /** Of the API, or of the transport between services. */
  readonly port: number;
  readonly operationsPort: number;
  /** Of SCIM, where the app takes it. */
  readonly scimPort: number;
}

/** How many there are to be of every app, or of each; two where nothing is said. */
export type Replicas = number | Partial<Readonly<Record<App, number>>>;

/** Every address is known before the first process starts, because each is told those of the others. */
export async function place(replicas: Replicas, ports: readonly number[]): Promise<readonly Placed[]> {
  const placed: Placed[] = [];
  for (const app of APPS) {
    const count = typeof replicas === 'number' ? replicas : (replicas[app] ?? 2);
    for (let replica = 0; replica < count; replica += 1) {
      const port = (app === 'gateway' ? ports[replica] : undefined) ?? (await freePort());
      placed.push({ app, name: `${app}-${replica + 1}`, port, operationsPort: await freePort(), scimPort: app === 'directory-sync' ? await freePort() : 0 });
    }
  }
  return placed;
}

/** The addresses of all services, by setting. */
export function addressesOf(all: readonly Placed[]): Settings {
  return Object.fromEntries(SERVICES.map((service) => [addressSetting(service), addressesAt(service, all)]));
}

function addressesAt(name: string, all: readonly Placed[]): string {
  return all
    .filter(({ app }) => app === name)
    .map(({ port }) => `127.0.0.1:${port}`)
    .join();
}

/** The program of the build itself, with settings that are the same for every process. */
export function planned({ app, name, port, operationsPort, scimPort }: Placed, settings: Settings): PlannedProcess {
  const url = `http://127.0.0.1:${port}`;
  // In development mode a gateway answers for itself on the port of the API, as the suite does.
  const isApart = app !== 'gateway' || modeOf(settings) === 'production';
  return {
    app,
    name,
    url,
    operationsUrl: isApart ? `http://127.0.0.1:${operationsPort}` : url,
    scimUrl: `http://127.0.0.1:${scimPort}`,
    asked: {},
    command: [process.execPath, ...nodeFlags(), join(ROOT, `dist/${productProgram(app, settings)}.js`)],
    variables: {
      ...(ANNOUNCING.includes(app) ? settings : withoutKafka(settings)),
      ...(isApart && { OPERATIONS_PORT: String(operationsPort) }),
      ...(app === 'gateway' ? { HOST: '127.0.0.1', PORT: String(port) } : { SERVICE_HOST: '127.0.0.1', SERVICE_PORT: String(port) }),
      ...ownScim(app, scimPort),
    },
  };
}

/**
 * The program of the image, told what a container of it is told. Containers have networks of their own and these processes share one, so that hosts and ports are others.
 * @param way as `startableOf` has it
 */
export function plannedContainer(placed: Placed, containers: readonly AppContainer[], { all, way }: Surroundings): PlannedProcess {
  const { app, name, port, operationsPort, scimPort } = placed;
  const container = containers.find((each) => each.name === app)!;
  const { host, port: own, operationsPort: ofOperations } = listeningOf(container);
  // Others reach a container only where it listens at all of its addresses.
  if (host !== '0.0.0.0') throw new Error(`${app} would listen on ${host} in its container, where nobody reaches it.`);
  const moved = new Map([[own, port] as const, [ofOperations, operationsPort] as const]);
  const asked = Object.entries(container.asked).map(([who, { path, port: asks }]) => [who, `http://127.0.0.1:${moved.get(asks)}${path}`]);
  const listening = { [app === 'gateway' ? 'HOST' : 'SERVICE_HOST']: '127.0.0.1', [app === 'gateway' ? 'PORT' : 'SERVICE_PORT']: String(port) };
  const variables = {
    ...withAddresses(container.variables, containers, all),
    ...listening,
    ...ownScim(app, scimPort),
    OPERATIONS_PORT: String(operationsPort),
  };
  return {
    app,
    name,
    url: `http://127.0.0.1:${port}`,
    operationsUrl: `http://127.0.0.1:${operationsPort}`,
    scimUrl: `http://127.0.0.1:${scimPort}`,
    asked: Object.fromEntries(asked) as Record<string, string>,
    ...startableOf({ ...container, variables }, way),
  };
}

/** Replicas share a machine here. */
function ownScim(app: App, port: number): Settings {
  return app === 'directory-sync' ? { SCIM_HOST: '127.0.0.1', SCIM_PORT: String(port) } : {};
}

interface Surroundings {
  /** Every process of the cluster. */
  readonly all: readonly Placed[];
  readonly way: readonly string[] | null;
}

/** A service is known by its name and the port of its containers: the addresses of all its processes stand for that. */
export function withAddresses(variables: Settings, containers: readonly AppContainer[], all: readonly Placed[]): Settings {
  const known = containers.map((container) => [`${container.name}:${listeningOf(container).port}`, addressesAt(container.name, all)] as const);
  const moved = (value: string): string => known.find(([address]) => address === value)?.[1] ?? value;
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, name.endsWith('_ADDRESS') ? moved(value) : value]));
}

function listeningOf({ name, variables }: AppContainer): { readonly host: string; readonly port: number; readonly operationsPort: number } {
  const operationsPort = readSettings(PlatformSettings, variables).OPERATIONS_PORT!;
  if (name === 'gateway') {
    const { HOST, PORT } = readSettings(GatewaySettings, variables);
    return { host: HOST, port: PORT, operationsPort };
  }
  const { SERVICE_HOST, SERVICE_PORT } = readSettings(TransportSettings, variables);
  return { host: SERVICE_HOST, port: SERVICE_PORT, operationsPort };
}

/** A gateway does not speak to it, and has to get by without a word of it. */
function withoutKafka(settings: Settings): Settings {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !name.startsWith('KAFKA_')));
}
