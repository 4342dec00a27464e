import { environmentVariables } from '#libs/platform/src/config/environment';
import { ForwardedClock } from '#libs/testing/src/forwarded-clock';
import { certificateOfReceivers } from '#libs/testing/src/given-webhook-receiver';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually, until } from '#libs/testing/src/until';
import { StreamReceiver, type Received } from './testing/stream-receiver.ts';

const DAY = 86_400_000;
/** Processes of a cluster have the clock of their machine. */
const isOnCluster = environmentVariables()['SUITE'] === 'processes';

interface Sent {
  readonly id: string;
  readonly organization_id: string;
  readonly data: readonly { readonly object: string; readonly leaf_index: number }[];
}

const pathOf = (organization: string): string => `/admin/organizations/${organization}/audit_log_stream`;

/** Where each process that may deliver streams is asked for its metrics. */
async function metricsOf(suite: GivenSuite): Promise<readonly string[]> {
  if (!isOnCluster) return suite.urls;
  const { SharedCluster } = await import('#libs/testing/src/cluster/shared-cluster');
  return (await SharedCluster.get()).processes.filter(({ app }) => app === 'audit-logs').map(({ planned }) => planned.operationsUrl);
}

/** Two gateways with the services behind them, which share the log and the rows and know nothing else of each other. */
describe('streams that two replicas deliver', () => {
  const clock = new ForwardedClock();
  let suite: GivenSuite;
  let receiver: StreamReceiver;
  let callers: readonly Caller[];
  let organizations: readonly string[];
  beforeAll(async () => {
    suite = await givenSuite({ clock, replicas: true });
    receiver = await StreamReceiver.listen(undefined, await certificateOfReceivers());
    callers = [0, 1].map((at) => new Caller(() => suite.urls[at]!, suite.key));
    organizations = await Promise.all(Array.from({ length: 12 }, async () => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id as string));
    await Promise.all(
      organizations.map((id, at) => callers[at % 2]!.put(pathOf(id), { type: 'GenericHttps', url: receiver.origin, secret: 'x'.repeat(16) }).expect(200)),
    );
  });
  afterAll(() => receiver.close());

  let recorded = 0;
  const record = async (organization_id: string, at: number): Promise<void> => {
    const event = {
      action: `${(recorded += 1)}`,
      occurred_at: new Date(clock.now()).toISOString(),
      actor: { id: 'a', type: 'user' },
      targets: [],
      context: { location: '' },
    };
    await callers[at % 2]!.post('/audit_logs/events', { organization_id, event }).expect(200);
  };
  const recordAll = (count: number): Promise<unknown> =>
    Promise.all(organizations.flatMap((id) => Array.from({ length: count }, (_, index) => record(id, index))));
  const sentTo = (organization: string, requests: readonly Received[] = receiver.received): readonly Sent[] =>
    requests.map(({ body }) => JSON.parse(body) as Sent).filter(({ organization_id }) => organization_id === organization);
  const leaves = (batches: readonly Sent[]): readonly number[] =>
    batches.flatMap(({ data }) => data.flatMap(({ object, leaf_index }) => (object === 'audit_log_event' ? [leaf_index] : [])));
  const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, leaf) => leaf);

  it('send each event once, in its order', async () => {
    await recordAll(20);
    await until(() => organizations.every((id) => leaves(sentTo(id)).length >= 20));
    for (const id of organizations) expect(leaves(sentTo(id))).toEqual(upTo(20));
  });

  it('send a batch again whose answer is lost, and nothing before it', async () => {
    const before = receiver.received.length;
    const [acme] = organizations as [string];
    receiver.answer = () => 'lost';
    await recordAll(1);
    await until(() => sentTo(acme, receiver.received.slice(before)).length > 0);
    receiver.answer = () => ({ status: 200 });
    const since = () => sentTo(acme, receiver.received.slice(before));
    await until(() => since().length > 1);
    expect(since()[1]).toEqual(since()[0]);
    await until(() => organizations.every((id) => leaves(sentTo(id)).includes(20)));
  });

  it('go on where they were after a restart of both, each for its part; one that is paused waits', async () => {
    const settled = async () => {
      for (const id of organizations) await suite.eventually(pathOf(id), { state: 'active', waiting_events: 0, error: null });
    };
    await settled();
    const before = receiver.received.length;
    const [paused, ...others] = organizations as [string, ...string[]];
    await suite.post(`${pathOf(paused)}/pause`).expect(200, { state: 'inactive' });
    await record(paused, 0);
    await suite.restart();
    await recordAll(5);
    await until(() => others.every((id) => leaves(sentTo(id)).includes(25)));
    for (const id of others) expect(leaves(sentTo(id, receiver.received.slice(before)))).toEqual([21, 22, 23, 24, 25]);
    await suite.eventually(pathOf(paused), { state: 'inactive', waiting_events: 6 });
    expect(leaves(sentTo(paused, receiver.received.slice(before)))).toEqual([]);
    await suite.post(`${pathOf(paused)}/resume`).expect(200, { state: 'active' });
    await until(() => leaves(sentTo(paused)).includes(26));
    expect(leaves(sentTo(paused, receiver.received.slice(before)))).toEqual([21, 22, 23, 24, 25, 26]);
    // Streams lie in six shards, of which each replica has three.
    const urls = await metricsOf(suite);
    const counts = (): Promise<readonly number[]> =>
      Promise.all(
        urls.map(async (url) => {
          const text = await (await fetch(`${url}/metrics`)).text();
          return Number(/gatehouse_audit_streams\{state="active"\} (\d+)/.exec(text)?.[1]);
        }),
      );
    // Shards change hands while the replicas find each other.
    await eventually(async () => {
      const sum = (await counts()).reduce((one, other) => one + other);
      // A cluster has those of other specs too.
      if (isOnCluster) expect(sum).toBeGreaterThanOrEqual(organizations.length);
      else expect(sum).toBe(organizations.length);
    });
    await settled();
  });

  // Nobody moves the clock of processes.
  if (!isOnCluster)
    it('pass over what is retained no more, and say how much that was; one that begins with all begins with what is left', async () => {
      const [acme, other] = organizations as [string, string];
      await suite.post(`${pathOf(acme)}/pause`).expect(200, { state: 'inactive' });
      for (const id of [acme, acme, acme, other]) await record(id, 0);
      await suite.eventually(pathOf(other), { waiting_events: 0 });
      clock.forward(31 * DAY);
      for (const caller of callers) await eventually(() => caller.get('/organizations?limit=1').expect(200));
      const before = receiver.received.length;
      for (const id of [acme, other]) await record(id, 0);
      await suite.post(`${pathOf(acme)}/resume`).expect(200);
      await until(() => leaves(sentTo(acme)).includes(30));
      expect(leaves(sentTo(acme, receiver.received.slice(before)))).toEqual([30]);
      await suite.eventually(pathOf(acme), { skipped_events: 3, waiting_events: 0 });
      await suite.delete(pathOf(other)).expect(204);
      const again = receiver.received.length;
      await suite
        .put(pathOf(other), { type: 'GenericHttps', url: receiver.origin, secret: 'x'.repeat(16), from: 'beginning' })
        .expect(200, { skipped_events: 0 });
      await until(() => leaves(sentTo(other, receiver.received.slice(again))).length > 0);
      expect(leaves(sentTo(other, receiver.received.slice(again)))).toEqual([27]);
    });
});
