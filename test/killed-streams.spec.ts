import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StreamReceiver } from '#apps/audit-logs/src/streams/testing/stream-receiver';
import { SuiteProcess } from '#libs/testing/src/process';
import { until } from '#libs/testing/src/until';

const CONNECTIONS = 16;
/** Of six shards, which they are spread over, one has fifteen at least. */
const STREAMS = 90;
const SECRET = 'x'.repeat(16);

it('a process in which many streams wait for news finds nothing wrong with that', async () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-many-streams-'));
  const DATA_DIR = join(root, 'data');
  const receiver = await StreamReceiver.listen();
  const suite = await SuiteProcess.start({ DATA_DIR, DATA_MIN_FREE: '0' });
  let told = '';
  try {
    const authorization = `Bearer ${readFileSync(join(DATA_DIR, 'development.key'), 'utf8').trim()}`;
    const ask = async (method: string, path: string, body: object): Promise<unknown> => {
      const answer = await fetch(suite.url + path, { method, headers: { authorization, 'content-type': 'application/json' }, body: JSON.stringify(body) });
      expect(answer.ok).toBe(true);
      return answer.json();
    };
    const event = { action: 'a', occurred_at: new Date().toISOString(), actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } };
    const ids = await Promise.all(
      Array.from({ length: STREAMS }, async () => {
        const { id } = (await ask('POST', '/organizations', { name: 'Acme' })) as { readonly id: string };
        await ask('PUT', `/admin/organizations/${id}/audit_log_stream`, { type: 'GenericHttps', url: receiver.origin, secret: SECRET });
        return id;
      }),
    );
    await Promise.all(ids.map((id) => ask('POST', '/audit_logs/events', { organization_id: id, event })));
    await until(() => receiver.received.length >= STREAMS);
  } finally {
    told = (await suite.stop()).stderr;
    await receiver.close();
    rmSync(root, { recursive: true });
  }
  expect(told).not.toContain('Warning');
});

it('a stream loses nothing to kill -9, keeps its order, and repeats the last batch alone', async () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-killed-streams-'));
  const variables = { DATA_DIR: join(root, 'data'), DATA_MIN_FREE: '0' };
  const receiver = await StreamReceiver.listen();
  let suite = await SuiteProcess.start(variables);
  try {
    const authorization = `Bearer ${readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim()}`;
    const ask = async (method: string, path: string, body: object): Promise<Response> =>
      fetch(suite.url + path, { method, headers: { authorization, 'content-type': 'application/json' }, body: JSON.stringify(body) });
    const { id } = (await (await ask('POST', '/organizations', { name: 'Acme' })).json()) as { readonly id: string };
    const stream = { type: 'GenericHttps', url: receiver.origin, secret: SECRET };
    expect((await ask('PUT', `/admin/organizations/${id}/audit_log_stream`, stream)).status).toBe(200);

    const acknowledged = new Set<string>();
    let next = 0;
    let isOver = false;
    const record = async (action: string): Promise<number | null> => {
      const event = { action, occurred_at: new Date().toISOString(), actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } };
      // Whoever is killed answers nobody.
      const answer = await ask('POST', '/audit_logs/events', { organization_id: id, event }).catch(() => null);
      return answer?.status ?? null;
    };
    const recordOn = async (): Promise<void> => {
      while (!isOver) {
        const action = `action ${(next += 1)}`;
        const status = await record(action);
        if (status === 200) acknowledged.add(action);
        if (status === null) return;
      }
    };
    /** The leaves of each batch. */
    const batches = new Map<number, readonly number[]>();
    const actions = new Set<string>();
    receiver.answer = ({ body }) => {
      const { data } = JSON.parse(body) as { readonly data: readonly { readonly object: string; readonly action: string; readonly leaf_index: number }[] };
      const events = data.filter(({ object }) => object === 'audit_log_event');
      for (const { action } of events) actions.add(action);
      batches.set(
        receiver.received.length,
        events.map(({ leaf_index }) => leaf_index),
      );
      // Nobody learns what became of the third.
      return receiver.received.length === 3 ? null : { status: 200 };
    };

    const recording = Array.from({ length: CONNECTIONS }, recordOn);
    await until(() => receiver.received.length === 3);
    await suite.killHard();
    isOver = true;
    await Promise.all(recording);
    suite = await SuiteProcess.start(variables);
    expect(await record('last')).toBe(200);
    await until(() => [...acknowledged, 'last'].every((action) => actions.has(action)));
    const [first = [], second = [], unanswered = [], ...rest] = [...batches.values()];
    expect([...first, ...second, ...rest.flat()]).toEqual(Array.from({ length: rest.flat().at(-1)! + 1 }, (_, leaf) => leaf));
    expect(rest[0]!.slice(0, unanswered.length)).toEqual(unanswered);
    expect(actions.size).toBeGreaterThanOrEqual(acknowledged.size);
  } finally {
    await suite.killHard();
    await receiver.close();
    rmSync(root, { recursive: true });
  }
});
