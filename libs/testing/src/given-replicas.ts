import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { ServiceName } from '#libs/contracts/src/operation';
import { Lamps, startedLamps } from '#libs/messaging/src/operation-transport.contract';
import { TcpOperationServer } from '#libs/messaging/src/tcp.operation-server';
import { TcpOperationTransport } from '#libs/messaging/src/tcp.operation-transport';
import { serviceSecurity, type ServiceSecurity } from '#libs/messaging/src/tcp/service-security';
import { SystemClock } from '#libs/platform/src/clock';
import { Metrics } from '#libs/platform/src/metrics';
import { KeptLog } from './kept-log.ts';

export const OWNER: ServiceName = 'notifications';
const clock = new SystemClock();

export const unproven: ServiceSecurity = await serviceSecurity({
  SERVICE_KEY: null,
  SERVICE_TLS_CERT: null,
  SERVICE_TLS_KEY: null,
  SERVICE_TLS_CA: null,
  SERVICE_TLS_NAMES: [],
});

export interface GivenReplica {
  readonly lamps: Lamps;
  readonly server: TcpOperationServer;
  readonly log: KeptLog;
  readonly metrics: Metrics;
  readonly port: number;
  readonly address: string;
  /** All of its connections break at once. */
  stop(): Promise<void>;
}

export async function givenReplica({ host = '127.0.0.1', port = 0, security = unproven, lamps = new Lamps() } = {}): Promise<GivenReplica> {
  const { app, direct } = await startedLamps(lamps);
  const log = new KeptLog();
  const metrics = new Metrics();
  const server = new TcpOperationServer({ transport: direct, owners: [OWNER], security, clock, log, metrics });
  const address = await server.listen(host, port);
  return {
    lamps,
    server,
    log,
    metrics,
    port: address.port,
    address: `${host}:${address.port}`,
    stop: async () => {
      await server.close();
      await app.close();
    },
  };
}

export interface GivenTransport {
  readonly transport: TcpOperationTransport;
  readonly log: KeptLog;
  readonly metrics: Metrics;
}

/** A process that asks. */
export async function givenTransport(
  addresses: readonly string[],
  { security = unproven, resolve }: { readonly security?: ServiceSecurity; readonly resolve?: (host: string) => Promise<readonly string[]> } = {},
): Promise<GivenTransport> {
  const log = new KeptLog();
  const metrics = new Metrics();
  const transport = new TcpOperationTransport({ addresses: { [OWNER]: addresses }, security, clock, log, metrics, resolve });
  await transport.start();
  return { transport, log, metrics };
}

/** A way to a replica that can be blocked: what is sent meanwhile arrives afterwards, as it does at a process that stood still. */
export class Way {
  private readonly sockets = new Set<Socket>();
  private isBlocked = false;
  private readonly server = createServer((from) => {
    const to = connect(this.port, '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      this.sockets.add(one);
      one.on('data', (data) => other.write(data));
      one.on('end', () => other.end());
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.sockets.delete(one);
        other.destroy();
      });
      if (this.isBlocked) one.pause();
    }
  });

  constructor(private readonly port: number) {}

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  block(): void {
    this.isBlocked = true;
    for (const socket of this.sockets) socket.pause();
  }

  unblock(): void {
    this.isBlocked = false;
    for (const socket of this.sockets) socket.resume();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
