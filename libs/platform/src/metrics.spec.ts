import { Metrics } from './metrics.ts';

describe('metrics', () => {
  it('shows all others while one cannot be collected, or takes too long', async () => {
    const metrics = new Metrics();
    metrics.gauge({ name: 'away', help: 'Its engine is away.', collect: () => Promise.reject(new Error('away')) });
    metrics.gauge({ name: 'hung', help: 'Its engine hangs.', labels: ['part'], collect: () => new Promise<void>(() => {}) });
    metrics.gauge({ name: 'wrong', help: 'Its code is wrong.', labels: ['part'], collect: (gauge) => gauge.set({ other: 'part' } as never, 1) });
    metrics.gauge({ name: 'known', help: 'Nothing is in its way.', collect: (gauge) => gauge.set(1) });
    const text = await metrics.text();
    expect(text).toContain('gatehouse_known 1\n');
    expect(text).not.toMatch(/^gatehouse_(away|hung|wrong)[ {]/m);
  });
});
