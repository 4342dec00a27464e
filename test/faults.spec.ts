import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { failedStart, gatehouse, SuiteProcess } from '#libs/testing/src/process';

const root = mkdtempSync(join(tmpdir(), 'gatehouse-faults-'));
afterAll(() => rmSync(root, { recursive: true }));

const BULK = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`key-${index}`, 'x'.repeat(600)]));

async function create(url: string, key: string): Promise<string | null> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const response = await fetch(`${url}/organizations`, { method: 'POST', headers, body: JSON.stringify({ name: 'Acme', metadata: BULK }) });
  if (response.status === 503) return null;
  expect(response.status).toBe(201);
  return ((await response.json()) as { readonly id: string }).id;
}

it('stops on a full disk and says so, and has everything that it acknowledged when there is room again', async () => {
  const variables = { DATA_DIR: join(root, 'full'), DATA_MIN_FREE: '0' };
  const suite = await SuiteProcess.start(variables, { largestFile: 6 * 2 ** 20 });
  const key = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
  const acknowledged: string[] = [];
  for (let isRunning = true; isRunning;) {
    const id = await create(suite.url, key).catch(() => null);
    if (id === null) isRunning = false;
    else acknowledged.push(id);
  }
  const { code, signal, stderr } = await suite.ended;
  expect(signal).toBeNull();
  expect(code).toBe(1);
  // What stands before it is LMDB's own, which does not always end its line.
  expect(stderr.trim().split('\n').at(-1)).toMatch(/gatehouse: .* Everything that was acknowledged is on disk\.$/);
  expect(acknowledged.length).toBeGreaterThan(10);

  const roomy = await SuiteProcess.start(variables);
  for (const id of acknowledged) expect((await fetch(`${roomy.url}/organizations/${id}`, { headers: { Authorization: `Bearer ${key}` } })).status).toBe(200);
  expect(await create(roomy.url, key)).not.toBeNull();
  await roomy.stop();
  expect(await gatehouse(variables, 'verify')).toMatchObject({ code: 0 });
});

it('answers 503 to writes, and goes on reading, while there is less room than it was told to leave', async () => {
  const variables = { DATA_DIR: join(root, 'nearly-full'), DATA_MIN_FREE: '0' };
  const before = await SuiteProcess.start(variables);
  const key = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
  const id = await create(before.url, key);
  await before.stop();

  const suite = await SuiteProcess.start({ ...variables, DATA_MIN_FREE: '1000TiB' });
  expect(await create(suite.url, key)).toBeNull();
  expect((await fetch(`${suite.url}/organizations/${id}`, { headers: { Authorization: `Bearer ${key}` } })).status).toBe(200);
  expect((await fetch(`${suite.url}/health/ready`)).status).toBe(200);
  await suite.stop();
});

it('leaves a directory to the process that has it, and takes it over when that one ends', async () => {
  const variables = { DATA_DIR: join(root, 'held'), DATA_MIN_FREE: '0' };
  const suite = await SuiteProcess.start(variables);
  const { code, stderr } = await failedStart({ ...variables, DATA_DIR_WAIT: '0s' });
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/^gatehouse: Another process works on .*\n$/);
  const successor = SuiteProcess.start({ ...variables, DATA_DIR_WAIT: '5m' });
  await suite.killHard();
  await (await successor).stop();
});
