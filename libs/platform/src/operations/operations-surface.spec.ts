import type { AddressInfo } from 'node:net';
import { Metrics } from '../metrics.ts';
import { Readiness } from '../runtime/readiness.ts';
import { OperationsSurface } from './operations-surface.ts';

describe('the operations surface', () => {
  const readiness = new Readiness();
  const metrics = new Metrics();
  const surface = new OperationsSurface(readiness, metrics);

  it('is live before it is ready, and says what it waits for', async () => {
    expect(await surface.answer('/health/live')).toMatchObject({ status: 200 });
    readiness.viewFilled('organizations', 0.5);
    expect(await surface.answer('/health/ready')).toMatchObject({ status: 503, body: '{"status":"not_ready","reason":"filling organizations: 50 %"}' });
    readiness.viewFilled('organizations', 1);
    readiness.start();
    expect(await surface.answer('/health/ready')).toMatchObject({ status: 200 });
  });

  it('shows what was counted', async () => {
    metrics.counter({ name: 'tries_total', help: 'Tries.', labels: ['outcome'] }).inc({ outcome: 'done' }, 2);
    expect((await surface.answer('/metrics')).body).toContain('gatehouse_tries_total{outcome="done"} 2');
  });

  it('listens on a port of its own, and names the setting when that is taken', async () => {
    const server = await surface.listen('127.0.0.1', 0);
    const { port } = server.address() as AddressInfo;
    try {
      expect((await fetch(`http://127.0.0.1:${port}/health/live`)).status).toBe(200);
      expect((await fetch(`http://127.0.0.1:${port}/organizations`)).status).toBe(404);
      await expect(surface.listen('127.0.0.1', port)).rejects.toThrow('set OPERATIONS_PORT to another port');
    } finally {
      server.close();
    }
  });
});
