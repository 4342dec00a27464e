import type { AddressInfo } from 'node:net';
import type { Damage } from '#libs/event-sourcing/src/log/log-damage';
import { Metrics } from '../metrics.ts';
import { Readiness } from '../readiness.ts';
import { OperationsSurface } from './operations-surface.ts';

describe('the operations surface', () => {
  const readiness = new Readiness();
  const metrics = new Metrics();
  const damages: Damage[] = [];
  const surface = new OperationsSurface(readiness, metrics, { list: () => damages });

  it('is live before it is ready, and says what it waits for', async () => {
    expect(await surface.answer('/health/live')).toMatchObject({ status: 200 });
    readiness.viewFilled('organizations', 0.5);
    expect(await surface.answer('/health/ready')).toMatchObject({ status: 503, body: '{"status":"not_ready","reason":"filling organizations: 50 %"}' });
    readiness.viewFilled('organizations', 1);
    readiness.start();
    expect(await surface.answer('/health/ready')).toMatchObject({ status: 200 });
  });

  it('is ready while the log is damaged, since another process would be no better off, and names the first damages', async () => {
    expect((await surface.answer('/health/ready')).body).toBe('{"status":"ready"}');
    for (let revision = 0; revision < 1_000; revision++) damages.push({ stream: 'thing-1', revision, position: `${revision}-${revision}`, cause: 'foreign' });
    const { status, body } = await surface.answer('/health/ready');
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual({ status: 'ready', log_damage: { count: 1_000, first: damages.slice(0, 20) } });
    readiness.viewFilled('organizations', 0.5);
    expect(await surface.answer('/health/ready')).toMatchObject({ status: 503, body: expect.stringContaining('"count":1000') });
    readiness.viewFilled('organizations', 1);
    damages.length = 0;
    expect(await surface.answer('/health/ready')).toMatchObject({ status: 200, body: '{"status":"ready"}' });
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
