import { operations, type ServiceName } from '#libs/contracts/src/operation';
import type { OperationTransport } from '#libs/messaging/src/operation-transport';
import type { RemoteOperations } from '#libs/messaging/src/routed.operation-transport';
import type { Clock } from '#libs/platform/src/clock';
import type { TransportSettings } from '#libs/platform/src/config/settings';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';

interface Needs {
  readonly settings: TransportSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Where this process is called by others. */
export interface OperationServer {
  /** `tcp://host:port` */
  readonly url: string;
  /** Sends callers elsewhere, and answers what is on its way, for at most so many milliseconds. */
  drain(milliseconds: number): Promise<void>;
  close(): Promise<void>;
}

/** Calls the owners of those of our operations that do not live here; null where all do. @throws StartRefused */
export async function openRemoteOperations(here: readonly ServiceName[], { settings, ...needs }: Needs): Promise<RemoteOperations | null> {
  const elsewhere = new Set(operations().flatMap(({ options: { owner } }) => (here.includes(owner) ? [] : [owner])));
  if (elsewhere.size === 0) return null;
  const [{ TcpOperationTransport }, { serviceSecurity }] = await Promise.all([
    import('#libs/messaging/src/tcp.operation-transport'),
    import('#libs/messaging/src/tcp/service-security'),
  ]);
  const addresses = Object.fromEntries([...elsewhere].map((owner) => [owner, settings[addressSetting(owner)]]));
  const transport = new TcpOperationTransport({ addresses, security: await serviceSecurity(settings), ...needs });
  await transport.start();
  return transport;
}

/** Answers the operations of these owners to other processes. @throws StartRefused when the address is taken, or open to others without being secured */
export async function serveOperations(transport: OperationTransport, owners: readonly ServiceName[], { settings, ...needs }: Needs): Promise<OperationServer> {
  const [{ TcpOperationServer }, { serviceSecurity }] = await Promise.all([
    import('#libs/messaging/src/tcp.operation-server'),
    import('#libs/messaging/src/tcp/service-security'),
  ]);
  const server = new TcpOperationServer({ transport, owners, security: await serviceSecurity(settings), ...needs });
  const { address, port } = await server.listen(settings.SERVICE_HOST, settings.SERVICE_PORT);
  return { url: `tcp://${address.includes(':') ? `[${address}]` : address}:${port}`, drain: (ms) => server.drain(ms), close: () => server.close() };
}

type Underscored<Name extends string> = Name extends `${infer Word}-${infer Rest}` ? `${Word}_${Underscored<Rest>}` : Name;

/** The setting that says where a service listens: `AUDIT_LOGS_ADDRESS` for `audit-logs`. */
export function addressSetting<Name extends ServiceName>(service: Name): `${Uppercase<Underscored<Name>>}_ADDRESS` {
  return `${service.replaceAll('-', '_').toUpperCase() as Uppercase<Underscored<Name>>}_ADDRESS`;
}
