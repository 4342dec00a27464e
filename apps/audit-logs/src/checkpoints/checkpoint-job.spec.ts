import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { ENVIRONMENT, givenServices, type GivenServices } from '#libs/testing/src/given-services';
import { until } from '#libs/testing/src/until';

describe('checkpoints of trails that are due together', () => {
  let services: GivenServices;
  let events: EventStore;
  /** Organizations whose trails nobody reads. */
  const held = new Set<string>();
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const signing = { now: 0, most: 0 };
  beforeAll(async () => {
    services = await givenServices((engines) => {
      ({ events } = engines);
      const [readBackwards, append] = [events.readBackwards.bind(events), events.append.bind(events)];
      events.readBackwards = async (stream, ...more) => {
        if (stream.startsWith('audit_trail-') && [...held].some((id) => stream.endsWith(id))) await released;
        return readBackwards(stream, ...more);
      };
      events.append = async (stream, ...more) => {
        if (!stream.startsWith('audit_checkpoint-')) return append(stream, ...more);
        signing.most = Math.max(signing.most, (signing.now += 1));
        return append(stream, ...more).finally(() => (signing.now -= 1));
      };
      return engines;
    });
  });
  afterAll(async () => {
    release();
    await services.close();
  });

  const organization = async (): Promise<string> => (await services.ask('CreateOrganization', { name: 'Acme' })).id;
  const record = async (organization_id: string): Promise<void> => {
    const event = { action: 'a', occurred_at: new Date().toISOString(), actor: { id: 'a', type: 'u' }, targets: [], context: { location: '' } };
    await services.ask('CreateAuditLogEvent', { organization_id, event });
  };
  const recorded = async (id: string): Promise<boolean> => (await events.last(`audit_checkpoint-${ENVIRONMENT}-${id}`)) !== null;

  it('wait for none that is slow, and are few at once', async () => {
    const slow = [await organization(), await organization(), await organization()];
    for (const id of slow) held.add(id);
    await Promise.all(slow.map(record));
    const others = await Promise.all(Array.from({ length: 40 }, organization));
    await Promise.all(others.map(record));
    await until(async () => (await Promise.all(others.map(recorded))).every(Boolean), 20_000);
    expect(await Promise.all(slow.map(recorded))).toEqual([false, false, false]);
    expect(signing.most).toBeLessThanOrEqual(2);
    release();
    await until(async () => (await Promise.all(slow.map(recorded))).every(Boolean), 20_000);
  });
});
