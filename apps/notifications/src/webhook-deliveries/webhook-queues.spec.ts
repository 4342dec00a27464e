import { ReadModels, type PageRequest, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import { until } from '#libs/testing/src/until';
import { ENVIRONMENT, GivenNotifications, Receiver } from '../testing/given-notifications.ts';
import { queuedDelivery } from './delivery.ts';

/** Rows that note which pages of webhook queues are asked for. */
class NotedRows extends ReadModels {
  readonly pages: PageRequest[] = [];

  constructor(private readonly rows: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const table = this.rows.table(definition);
    if (definition.name !== 'webhook_queue') return table;
    const page: Table<Row>['page'] = (environment, request) => {
      this.pages.push(request);
      return table.page(environment, request);
    };
    return new Proxy(table, { get: (target, name) => (name === 'page' ? page : (Reflect.get(target, name) as unknown)) });
  }

  drop(table: string): Promise<void> {
    return this.rows.drop(table);
  }
}

describe('the queue of a webhook endpoint', () => {
  let receiver: Receiver;
  let given: GivenNotifications;
  beforeEach(async () => {
    receiver = await Receiver.start();
    given = await GivenNotifications.start();
  });
  afterEach(async () => {
    await given.stop();
    await receiver.stop();
  });

  it('is read on from where it was read to, not from the front over what is off it already', async () => {
    const { id: endpointId } = await given.endpoint(receiver.url);
    // Whoever works on the queues next finds what is there when it begins.
    await given.lifecycle.stop();
    const begin = Date.now() - 60_000;
    const dues = Array.from({ length: 600 }, (_, number) => new Date(begin + 10 * number).toISOString());
    const waiting = dues.map((next_attempt_at, number) => ({
      ...queuedDelivery({ endpointId, eventId: `event_01J0000000000000000000${1_000 + number}`, event: 'organization.created', now: begin }),
      next_attempt_at,
      sample: '{}',
    }));
    await given.deliveries.save(ENVIRONMENT, waiting);
    const rows = new NotedRows(given.readModels);
    const worker = await given.replica({ readModels: rows });
    try {
      await until(async () => receiver.received.length === 600 && (await worker.deliveriesOf(endpointId, { status: 'pending' })).length === 0, 30_000);
      expect((await worker.deliveriesOf(endpointId, { status: 'delivered' })).length).toBe(100);
      await until(() => rows.pages.filter(({ limit }) => limit === 1).length > 0);
      const reads = rows.pages.filter(({ where }) => where !== undefined);
      expect(reads.map(({ from }) => from)).toEqual([dues[0], dues[499], dues[599], dues[599]]);
      expect(await worker.deliveries.nextDue(ENVIRONMENT, endpointId)).toBeNull();
    } finally {
      await worker.stop();
    }
  }, 60_000);
});
