import { SystemClock } from '#libs/platform/src/clock';
import { Metrics } from '#libs/platform/src/metrics';
import { operationTransportContract, startedLamps } from './operation-transport.contract.ts';
import { TcpOperationServer } from './tcp.operation-server.ts';
import { TcpOperationTransport } from './tcp.operation-transport.ts';
import { serviceSecurity } from './tcp/service-security.ts';
import { Log } from '#libs/platform/src/log';

class KeptLog extends Log {
  readonly lines: unknown[] = [];
  debug(): void {}
  info(sentence: string, fields = {}): void {
    this.lines.push({ sentence, ...fields });
  }
  override readonly warn = this.info.bind(this);
  override readonly error = this.info.bind(this);
}

const clock = new SystemClock();
const none = { SERVICE_KEY: null, SERVICE_TLS_CERT: null, SERVICE_TLS_KEY: null, SERVICE_TLS_CA: null };

operationTransportContract('over TCP', async (lamps) => {
  const { app, direct } = await startedLamps(lamps);
  const security = await serviceSecurity(none);
  const log = new KeptLog();
  const server = new TcpOperationServer({ transport: direct, owners: ['audit-logs'], security, clock, log, metrics: new Metrics() });
  const { port } = await server.listen('127.0.0.1', 0);
  const transport = new TcpOperationTransport({ addresses: { 'audit-logs': [`127.0.0.1:${port}`] }, security, clock, log, metrics: new Metrics() });
  await transport.start();
  return {
    transport,
    close: async () => {
      await transport.close();
      await server.close();
      await app.close();
    },
  };
});
