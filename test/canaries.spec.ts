import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

/** Where a secret may be found: nowhere but in these files. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  'first key': ['development.key'],
  'key from the settings': [],
  'created key': [],
  'rotated key': [],
  'master key': [],
  'signing secret': [],
  'signing secret, decoded': [],
};

it('keeps secrets out of data, logs, messages and answers', async () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-canaries-'));
  const data = join(root, 'data');
  const masterKey = randomBytes(32).toString('base64');
  const settingsKey = `sk_canary_${randomUUID()}`;
  const variables = { DATA_DIR: data, DATA_MIN_FREE: '0', MASTER_KEYS: masterKey, GATEHOUSE_API_KEY: settingsKey, ACCESS_LOG: 'on', LOG_LEVEL: 'debug' };
  const answers: string[] = [];
  const receiver = await WebhookReceiver.listen();
  const suite = await SuiteProcess.start(variables);
  const firstKey = readFileSync(join(data, 'development.key'), 'utf8').trim();

  const send = async (method: string, path: string, body?: object, key = firstKey): Promise<string> => {
    const headers = {
      Authorization: `Bearer ${key}`,
      ...(body && { 'Content-Type': 'application/json' }),
      ...(method === 'POST' && { 'Idempotency-Key': randomUUID() }),
    };
    return (await fetch(suite.url + path, { method, headers, body: body === undefined ? null : JSON.stringify(body) })).text();
  };
  const tell = async (...asked: Parameters<typeof send>): Promise<void> => void answers.push(await send(...asked));

  // The one kind of answer that shows a signing secret, and the two that show a key.
  const { secret } = JSON.parse(await send('POST', '/webhook_endpoints', { endpoint_url: receiver.url, events: ['organization.created'] })) as {
    readonly secret: string;
  };
  const [createdId, created] = (await gatehouse(variables, 'keys', 'create', '--environment', 'development')).stdout.trim().split(/\s+/) as [string, string];
  const [, rotated] = (await gatehouse(variables, 'keys', 'rotate', createdId)).stdout.trim().split(/\s+/) as [string, string];
  for (const key of [created, rotated, settingsKey, firstKey]) await tell('POST', '/organizations', { name: `Acme ${randomUUID()}` }, key);
  await tell('POST', '/organizations', { name: 1 });
  await tell('GET', '/organizations', undefined, `${firstKey}x`);
  await receiver.receives(({ event }) => event === 'organization.created');
  await tell('GET', '/events?limit=100');
  answers.push((await gatehouse(variables, 'keys', 'list')).stdout);
  answers.push(...receiver.received.map((received) => JSON.stringify(received)));
  const { stdout, stderr } = await suite.stop();
  await receiver.close();

  const canaries: Readonly<Record<string, string | Buffer>> = {
    'first key': firstKey,
    'key from the settings': settingsKey,
    'created key': created,
    'rotated key': rotated,
    'master key': masterKey,
    'signing secret': secret,
    'signing secret, decoded': Buffer.from(secret.slice('whsec_'.length), 'base64'),
  };
  const files = readdirSync(data, { recursive: true, encoding: 'utf8' }).filter((file) => statSync(join(data, file)).isFile());
  const places = new Map<string, Buffer>([
    ...files.map((file): [string, Buffer] => [file, readFileSync(join(data, file))]),
    ['answers', Buffer.from(answers.join('\n'))],
  ]);
  places.set(
    'log lines',
    Buffer.from(
      stdout
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .join('\n') + stderr,
    ),
  );
  const found = Object.entries(canaries).flatMap(([name, canary]) =>
    [...places].filter(([place, bytes]) => !ALLOWED[name]!.includes(place) && bytes.includes(canary)).map(([place]) => `${name} in ${place}`),
  );
  expect(found).toEqual([]);
  // The search itself works: what may be found is found.
  expect(places.get('development.key')!.includes(firstKey)).toBe(true);
  expect(places.get('answers')!.includes('organization.created')).toBe(true);
  rmSync(root, { recursive: true });
});
