import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isConsistent, rootByInclusion } from '#apps/audit-logs/src/tree/proofs';
import { leafHash } from '#apps/audit-logs/src/tree/merkle-hash';
import { Suite } from '#apps/suite/src/suite';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import { numberKeys } from '#libs/platform/src/storage/lmdb-keys';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { inFormerForm } from '#libs/testing/src/former-records';
import { ForwardedClock } from '#libs/testing/src/forwarded-clock';
import { recordsAfter } from '#libs/testing/src/records-after';
import { Caller } from '#libs/testing/src/suite';

const MINUTE = 60_000;
/** The first tile of the tree is full with these, and is made of records of both forms. */
const [BEFORE, SINCE] = [200, 100];

describe('a directory of a release that kept records as objects', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-former-log-'));
  const directory = join(root, 'data');
  const clock = new ForwardedClock();
  let suite: Suite;
  let caller: Caller;
  const start = async (): Promise<void> => {
    suite = await Suite.start({
      variables: { PORT: '0', DATA_DIR: directory, DATA_MIN_FREE: '0' },
      clock,
      log: new PinoLog({ level: 'silent', readable: false, destination: { write: () => undefined } }),
      onFatal: (sentence) => {
        throw new Error(sentence);
      },
    });
  };
  const record = (organization_id: string, count: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: count }, async (_, number) => {
        const target = { id: `document_${number}`, type: 'document', name: 'Zoë' };
        const event = {
          action: 'a',
          occurred_at: new Date(clock.now()).toISOString(),
          actor: { id: 'user_1', type: 'user' },
          targets: [target],
          context: { location: '' },
        };
        await caller.post('/audit_logs/events', { organization_id, event }).expect(200);
      }),
    );
  afterAll(async () => {
    await suite.close();
    rmSync(root, { recursive: true });
  });

  it('is gone on with: events are listed and proven as before, and those that follow are of the same trail', async () => {
    await start();
    caller = new Caller(() => suite.url, suite.firstKey!.value);
    const { id } = await caller.post('/organizations', { name: 'Acme' }).expect(201);
    const trail = `/audit_logs/organizations/${id}`;
    const listed = async (): Promise<readonly { readonly id: string }[]> =>
      (await caller.get(`/audit_logs/events?organization_id=${id}&limit=100&order=asc`).expect(200)).data;
    const checkpoint = async (size: number): Promise<{ readonly size: number; readonly root_hash: string; readonly trail: string }> => {
      clock.forward(MINUTE);
      return caller.eventually(`${trail}/checkpoint`, { size });
    };
    await record(id, BEFORE);
    await caller.eventually(`${trail}/checkpoint`, {});
    const signed = await checkpoint(BEFORE);
    const [events, organization] = [await listed(), await caller.get(`/organizations/${id}`).expect(200)];
    const inclusion = await caller.get(`${trail}/inclusion?event_id=${events[50]!.id}&size=${BEFORE}`).expect(200);
    await suite.close();

    const before = await LmdbStorage.open({ directory });
    const all = await recordsAfter(new LmdbEventStore(before), START);
    const records = before.log.db('log', numberKeys);
    for (const each of all) records.put(Number(each.position), inFormerForm(each));
    await before.close();
    writeFileSync(join(directory, 'format'), '2\n');
    // All rows are made anew of what lies in the log.
    rmSync(join(directory, 'views'), { recursive: true });

    await start();
    expect([await listed(), await caller.get(`/organizations/${id}`).expect(200)]).toEqual([events, organization]);
    expect(await caller.get(`${trail}/inclusion?event_id=${events[50]!.id}&size=${BEFORE}`).expect(200)).toEqual(inclusion);
    await record(id, SINCE);
    expect(readFileSync(join(directory, 'format'), 'utf8')).toBe('3\n');
    const later = await checkpoint(BEFORE + SINCE);
    expect(later.trail).toBe('intact');
    const hashes = (texts: readonly string[]): readonly Buffer[] => texts.map((text) => Buffer.from(text, 'base64'));
    const [first, second] = hashes([signed.root_hash, later.root_hash]) as [Buffer, Buffer];
    const { hashes: between } = await caller.get(`${trail}/consistency?from=${BEFORE}&to=${BEFORE + SINCE}`).expect(200);
    expect(isConsistent({ size: BEFORE, root: first }, { size: BEFORE + SINCE, root: second }, hashes(between))).toBe(true);
    const proof = await caller.get(`${trail}/inclusion?event_id=${events[50]!.id}`).expect(200, { leaf_data: inclusion.leaf_data, size: BEFORE + SINCE });
    expect(rootByInclusion(proof.leaf_index, BEFORE + SINCE, { hash: leafHash(proof.leaf_data), proof: hashes(proof.hashes) })).toEqual(second);
    await suite.close();

    const storage = await LmdbStorage.open({ directory });
    for await (const problem of new LmdbEventStore(storage).verify()) throw new Error(problem.detail);
    const forms = [...storage.log.db('log', numberKeys).getRange({ start: 1 })].map(({ value }) => value[4] === '{'.charCodeAt(0));
    expect([forms.slice(0, all.length).every(Boolean), forms.length > all.length + SINCE, forms.slice(all.length).some(Boolean)]).toEqual([true, true, false]);
    await storage.close();
    await start();
    expect(await listed()).toEqual(events);
  });
});
