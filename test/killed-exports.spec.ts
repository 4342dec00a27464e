import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { verifyExport } from '#apps/audit-logs/src/export-format/verify-export';
import { givenEventstore, givenKafka, givenMongodb, givenS3 } from '#libs/testing/src/engines/given';
import { SuiteProcess } from '#libs/testing/src/process';
import { eventually, until } from '#libs/testing/src/until';

/** As large as they may be: together three parts of an upload and more. */
const EVENTS = 1_200;
const AT_ONCE = 24;
const LARGE = Object.fromEntries(Array.from({ length: 48 }, (_, index) => [`key_${index}`, 'x'.repeat(500)]));
/** An export may be made before anybody sees that it is being stored. */
const ATTEMPTS = 10;
const MIB = 2 ** 20;
const KEY = `sk_${'k'.repeat(40)}`;
const CLIENT = 'client_KilledExports';

/** What a store of files shows from outside. */
interface Store {
  /** Whether the beginning of a file is there that nobody can read yet. */
  isStoring(): Promise<boolean>;
  /** Everything that takes room. */
  held(): Promise<readonly string[]>;
}

function filesBelow(directory: string): Store {
  const all = (): readonly string[] =>
    readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
  return {
    isStoring: async () => {
      try {
        return all().some((path) => path.includes('.incoming') && statSync(path).size > MIB);
      } catch {
        // It has just been renamed, or there is none yet.
        return false;
      }
    },
    held: async () => all().map((path) => path.slice(directory.length + 1)),
  };
}

function bucketAt(address: string): Store {
  const texts = async (query: string): Promise<readonly string[]> =>
    [...(await (await fetch(`${address}?${query}`)).text()).matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key!);
  return {
    isStoring: async () => (await texts('uploads')).length > 0,
    held: async () => [...(await texts('list-type=2')), ...(await texts('uploads')).map((key) => `upload ${key}`)],
  };
}

const [eventstore, kafka, mongodb, s3] = [await givenEventstore(), await givenKafka(), await givenMongodb(), await givenS3()];
const root = mkdtempSync(join(tmpdir(), 'gatehouse-killed-exports-'));
afterAll(() => rmSync(root, { recursive: true }));

const onEngines: readonly [string, Record<string, string>, () => Store][] =
  eventstore === null || kafka === null || mongodb === null || s3 === null
    ? []
    : [
        [
          'on the engines of a cluster, with a bucket',
          {
            ...{ EVENTSTORE_URL: eventstore, KAFKA_BROKERS: kafka, MONGODB_URL: mongodb, KAFKA_REPLICATION: '1', ...s3.settings },
            ...{ INSTALLATION: `killed-exports-${randomBytes(6).toString('hex')}`, MASTER_KEYS: randomBytes(32).toString('base64') },
          },
          () => bucketAt(`${s3.settings['S3_ENDPOINT']}/${s3.settings['S3_BUCKET']}`),
        ],
      ];

it.each([['embedded', {}, () => filesBelow(join(root, 'data/blobs'))] as const, ...onEngines])(
  'an export whose process is killed while it is stored is made by the next as it would have been, and leaves nothing else, %s',
  async (name, engines, storeOf) => {
    const DATA_DIR = join(root, name === 'embedded' ? 'data' : 'engines');
    const variables = { DATA_DIR, DATA_MIN_FREE: '0', GATEHOUSE_API_KEY: KEY, GATEHOUSE_CLIENT_ID: CLIENT, ...engines };
    const store = storeOf();
    let suite = await SuiteProcess.start(variables);
    try {
      const ask = async (method: string, path: string, body?: object) => {
        const headers = { authorization: `Bearer ${KEY}`, ...(body !== undefined && { 'content-type': 'application/json' }) };
        const answer = await fetch(suite.url + path, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
        const text = await answer.text();
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
        return JSON.parse(text);
      };
      const { id: organization_id } = await ask('POST', '/organizations', { name: 'Acme' });
      const occurred_at = new Date().toISOString();
      let next = 0;
      const record = async (): Promise<void> => {
        while (next < EVENTS) {
          const event = {
            action: `action ${(next += 1)}`,
            occurred_at,
            actor: { id: 'a', type: 'user' },
            targets: [],
            context: { location: '' },
            metadata: LARGE,
          };
          await ask('POST', '/audit_logs/events', { organization_id, event });
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, record));
      const asked = async (): Promise<string> =>
        (await ask('POST', '/audit_logs/exports', { organization_id, range_start: occurred_at, range_end: occurred_at, format: 'ndjson' })).id;
      const get = (id: string) => ask('GET', `/audit_logs/exports/${id}`);
      const ready = (id: string) =>
        eventually(async () => {
          const made = await get(id);
          expect(made).toMatchObject({ state: 'ready' });
          return made;
        }, 40_000);

      let killed: string | null = null;
      const whole: string[] = [];
      for (let attempt = 0; killed === null && attempt < ATTEMPTS; attempt += 1) {
        const id = await asked();
        while (killed === null && (await get(id)).state === 'pending') {
          const until = Date.now() + 250;
          while (killed === null && Date.now() < until) {
            if (await store.isStoring()) {
              await suite.killHard();
              killed = id;
            } else await pause(1);
          }
        }
        if (killed === null) whole.push(id);
      }
      expect(killed).not.toBeNull();
      suite = await SuiteProcess.start(variables);

      const [one, other] = [await ready(killed!), await ready(await asked())];
      const contentOf = async (url: string): Promise<Buffer> => {
        const local = url.startsWith('http://localhost:3000/') ? suite.url + url.slice('http://localhost:3000'.length) : url;
        const answer = await fetch(local);
        expect(answer.status).toBe(200);
        return Buffer.from(await answer.arrayBuffer());
      };
      const [file, proof] = [await contentOf(one.url), await contentOf(one.proof_url)];
      expect(file.length).toBeGreaterThan(3 * 8 * MIB);
      expect(file.equals(await contentOf(other.url))).toBe(true);
      expect(proof.equals(await contentOf(other.proof_url))).toBe(true);
      const path = join(root, one.id);
      writeFileSync(path, file);
      writeFileSync(`${path}.proof`, proof);
      const keys = await ask('GET', `/audit_logs/keys?client_id=${CLIENT}`);
      const publicKeys = keys.data.map(({ public_key }: { public_key: string }) => Buffer.from(public_key, 'base64'));
      expect(await verifyExport({ file: path, proof: `${path}.proof`, trust: { publicKeys } })).toMatchObject({ events: EVENTS, isComplete: true });

      const ids = [...whole, one.id, other.id];
      await until(async () => (await store.held()).length === 2 * ids.length);
      for (const id of ids)
        expect(
          (await store.held())
            .filter((held) => held.includes(id))
            .map((held) => held.split('.').at(-1))
            .sort(),
        ).toEqual(['file', 'proof']);
    } finally {
      await suite.killHard();
    }
  },
  180_000,
);
