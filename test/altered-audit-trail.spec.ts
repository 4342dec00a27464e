import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AUDIT_TRAIL } from '#apps/audit-logs/src/domain/audit-trail.decider';
import { TrailKeys } from '#apps/audit-logs/src/sealing/trail-keys';
import { Checkpoints } from '#apps/audit-logs/src/checkpoints/checkpoints';
import { CSV_HEAD, csvLine } from '#apps/audit-logs/src/export-format/csv';
import type { ExportedEvent } from '#apps/audit-logs/src/export-format/exported-event';
import { ProofWriter } from '#apps/audit-logs/src/export-format/proof-file';
import { isConsistent } from '#apps/audit-logs/src/tree/proofs';
import { parseCheckpoint } from '#apps/audit-logs/src/tree/checkpoint';
import { leafHash } from '#apps/audit-logs/src/tree/merkle-hash';
import { Edge, TreeNodes } from '#apps/audit-logs/src/tree/tiles';
import { verifyAuditExport } from '#apps/suite/src/admin/audit-verify';
import { Suite } from '#apps/suite/src/suite';
import { ListEnvironments } from '#libs/contracts/src/environments/operations';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamKeyOf, streamName } from '#libs/event-sourcing/src/log/naming';
import { canonicalJson } from '#libs/platform/src/canonical-json';
import { Clock } from '#libs/platform/src/clock';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { recordsAfter } from '#libs/testing/src/records-after';
import { Caller } from '#libs/testing/src/suite';
import { until } from '#libs/testing/src/until';

/** An hour ahead once somebody was at the files: a checkpoint is looked at again after a minute. */
class LaterClock extends Clock {
  ahead = 0;

  now(): number {
    return Date.now() + this.ahead;
  }
}

const EVENTS = 5;
/** What is done to the third of the events of a trail, in the files alone: whoever does it writes checksums and indexes as they have to be. */
const KINDS = ['untouched', 'altered', 'removed', 'reordered', 'back-dated', 'shortened', 'altered with its checkpoints'] as const;
type Kind = (typeof KINDS)[number];

const isOfTrail = ({ type }: RecordedEvent): boolean => type === 'audit_event.recorded';
const dataOf = (record: RecordedEvent) => record.data as Readonly<Record<string, unknown>>;

/** A record reads its content where it is asked for it. */
function whole({ id, stream, version, position, type, shape, data, subject, public: announced, sealed, meta }: RecordedEvent): RecordedEvent {
  return { id, stream, version, position, type, shape, data, subject, public: announced, sealed, meta };
}

/** The log as somebody left it. Every record keeps its position: what is taken away leaves something of no account there. */
function tampered(
  log: readonly RecordedEvent[],
  kindOf: (stream: string) => Kind | undefined,
  forged: ReadonlyMap<string, { readonly sealed: string; readonly commitment: string }>,
): readonly RecordedEvent[] {
  const nothing = (record: RecordedEvent): RecordedEvent => ({ ...record, stream: `nothing-x-${record.id}`, type: 'nothing.recorded', data: null });
  return log.map((record) => {
    const kind = kindOf(streamKeyOf(record.stream));
    if (record.type === 'audit_checkpoint.recorded') return kind === 'altered with its checkpoints' ? nothing(record) : record;
    if (!isOfTrail(record)) return record;
    switch (kind) {
      case 'altered':
      case 'altered with its checkpoints':
        return record.version === 3 ? { ...record, data: { ...dataOf(record), ...forged.get(dataOf(record)['id'] as string)! } } : record;
      case 'removed':
        return record.version === 3 ? nothing(record) : record;
      case 'shortened':
        return record.version === EVENTS ? nothing(record) : record;
      case 'back-dated':
        return record.version === 3 ? { ...record, meta: { ...record.meta, at: record.meta.at - 1 } } : record;
      case 'reordered': {
        const other = { 3: 4, 4: 3 }[record.version];
        return log.find(({ stream, version }) => stream === record.stream && version === other) ?? record;
      }
      case 'untouched':
      case undefined:
        return record;
    }
  });
}

describe('an audit trail whose data files somebody altered', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-altered-'));
  const directory = join(root, 'data');
  const variables = { PORT: '0', DATA_DIR: directory, DATA_MIN_FREE: '0' };
  const clock = new LaterClock();
  const start = (): Promise<Suite> =>
    Suite.start({
      variables,
      clock,
      log: new PinoLog({ level: 'silent', readable: false, destination: { write: () => undefined } }),
      onFatal: (sentence) => {
        throw new Error(sentence);
      },
    });
  const trails = new Map<Kind, string>();
  const idOf = (kind: Kind): string => trails.get(kind)!;
  let suite: Suite;
  let caller: Caller;
  let environment: string;
  /** What was kept outside. */
  const kept = (kind: Kind, name: 'checkpoint' | 'keys' | 'proof' | 'csv'): string => join(root, `${idOf(kind)}.${name}`);

  /** Every event of a trail as it is told now, and what its leaf is made of. */
  async function told(kind: Kind): Promise<readonly (ExportedEvent & { readonly leaf_data: string })[]> {
    const { data } = await caller.get(`/audit_logs/events?organization_id=${idOf(kind)}&order=asc`).expect(200);
    const events = await Promise.all(
      (data as readonly (ExportedEvent & { readonly object: string })[]).map(async ({ object: _object, ...event }) => {
        const { salt, leaf_data } = await caller
          .get(`/audit_logs/organizations/${idOf(kind)}/inclusion?event_id=${event.id}&size=${event.leaf_index + 1}`)
          .expect(200);
        return { ...event, salt, leaf_data };
      }),
    );
    return events.toSorted((one, other) => one.leaf_index - other.leaf_index);
  }

  const csvOf = (events: readonly (ExportedEvent & { readonly leaf_data: string })[]): string =>
    CSV_HEAD + events.map(({ leaf_data: _data, ...event }) => csvLine(event)).join('');

  /** Of what is told now, by what was kept. */
  async function verified(kind: Kind): Promise<string> {
    writeFileSync(kept(kind, 'csv'), csvOf(await told(kind)));
    return verifyAuditExport({
      arguments: [kept(kind, 'csv')],
      options: { keys: kept(kind, 'keys'), checkpoint: kept(kind, 'checkpoint'), proof: kept(kind, 'proof') },
    });
  }

  beforeAll(async () => {
    suite = await start();
    const key = suite.firstKey!.value;
    caller = new Caller(() => suite.url, key);
    for (const kind of KINDS) {
      const { id } = await caller.post('/organizations', { name: kind }).expect(201);
      trails.set(kind, id);
      for (let number = 0; number < EVENTS; number += 1) {
        const event = {
          action: `document.${number}`,
          occurred_at: new Date().toISOString(),
          actor: { id: '=1+1', type: 'user' },
          targets: [],
          context: { location: '' },
        };
        await caller.post('/audit_logs/events', { organization_id: id, event }).expect(200);
      }
    }
    const [first] = await suite.call(Object.assign(new ListEnvironments(), { context: systemContext(SYSTEM_ENVIRONMENT, clock.now()) }));
    environment = first!.id;
    const keys = (await caller.get(`/audit_logs/keys?client_id=${first!.client_id}`)).text;
    for (const kind of KINDS) {
      const { note } = (await suite.get(Checkpoints).record({ environment, organization: idOf(kind) }))!;
      writeFileSync(kept(kind, 'checkpoint'), note);
      writeFileSync(kept(kind, 'keys'), keys);
      const edge = Edge.empty();
      for (const { leaf_data } of await told(kind)) edge.append(leafHash(leaf_data));
      const proof = new ProofWriter(note, new TreeNodes({ read: () => Promise.reject(new Error('no tile')) }, edge));
      const hashes = await proof.events(Array.from({ length: EVENTS }, (_, leaf) => leaf));
      writeFileSync(kept(kind, 'proof'), proof.head() + hashes + (await proof.rest()));
    }
    for (const kind of KINDS) expect(await verified(kind)).toMatch(/^5 events are genuine and unaltered.* It has all that arrived from leaf 0 to leaf 4\.$/);
    // Whoever has the keys of trails as well seals another content, as it has to be sealed.
    const forged = new Map<string, { readonly sealed: string; readonly commitment: string }>();
    for (const kind of ['altered', 'altered with its checkpoints'] as const) {
      const { id, received_at, action, occurred_at, version, targets, context, metadata, actor } = (await told(kind))[2]!;
      const content = canonicalJson({ action, occurred_at, version, targets, context, metadata, actor: { ...actor, id: 'somebody else' } });
      const key = (await suite.get(TrailKeys).obtain({ environment, organization: idOf(kind) })).at(Date.parse(received_at));
      const binding = `${streamName(AUDIT_TRAIL, environment, idOf(kind))} ${id}`;
      forged.set(id, { sealed: key.seal(binding, content), commitment: key.commitment(id, content) });
    }
    await suite.close();

    await rewriteLog((log) => tampered(log, (organization) => KINDS.find((kind) => idOf(kind) === organization), forged));
    clock.ahead = 3_600_000;
    suite = await start();
  });
  afterAll(async () => {
    await suite.close();
    rmSync(root, { recursive: true });
  });

  /** All that follows from the log goes as well, and is made anew from it. */
  async function rewriteLog(change: (log: readonly RecordedEvent[]) => readonly RecordedEvent[]): Promise<void> {
    const before = await LmdbStorage.open({ directory });
    const log = change((await recordsAfter(new LmdbEventStore(before), START)).map(whole));
    await before.close();
    const after = await LmdbStorage.open({ directory: join(root, 'rewritten') });
    const events = new LmdbEventStore(after);
    const versions = new Map<string, number>();
    for (const { stream, version: _version, position: _position, ...event } of log) {
      const version = versions.get(stream) ?? 0;
      await events.append(stream, version, [event]);
      versions.set(stream, version + 1);
    }
    await after.close();
    rmSync(join(directory, 'log'), { recursive: true });
    rmSync(join(directory, 'views'), { recursive: true });
    renameSync(join(root, 'rewritten', 'log'), join(directory, 'log'));
  }

  it('is told from one that nobody touched', async () => {
    expect(await verified('untouched')).toMatch(/^5 events are genuine/);
    await caller.get(`/audit_logs/organizations/${idOf('untouched')}/checkpoint`).expect(200, { size: EVENTS, trail: 'intact' });
  });

  it.each(KINDS.slice(1))('is found: %s', async (kind) => {
    await expect(verified(kind)).rejects.toThrow('is NOT verified.');
  });

  it.each<[Kind, string]>([
    ['altered', 'altered'],
    ['reordered', 'altered'],
    ['back-dated', 'altered'],
    ['removed', 'shorter'],
    ['shortened', 'shorter'],
  ])('is reported by the server itself: %s', async (kind, trail) => {
    const owner = { environment, organization: idOf(kind) };
    await caller.get(`/audit_logs/organizations/${idOf(kind)}/checkpoint`).expect(200, { size: EVENTS, trail });
    await expect(suite.get(Checkpoints).record(owner)).rejects.toMatchObject({ code: 'audit_log_trail_diverged', standing: trail });
    if (trail === 'shorter')
      await caller.get(`/audit_logs/organizations/${idOf(kind)}/consistency?from=1&to=${EVENTS}`).expect(422, { errors: [{ field: 'to' }] });
  });

  it('counts for the metric, on which the alert goes', async () => {
    const metrics = () => suite.get(Metrics).text();
    await until(async () => {
      const text = await metrics();
      return ['{as="altered"} 3\n', '{as="shorter"} 2\n'].every((line) => text.includes(`gatehouse_audit_trails_diverged${line}`));
    });
  });

  it('is caught by what was kept outside, and by nothing else, where the server was made to sign anew', async () => {
    const kind = 'altered with its checkpoints';
    await caller.eventually(`/audit_logs/organizations/${idOf(kind)}/checkpoint`, { size: EVENTS, trail: 'intact' });
    const { checkpoint } = await caller.get(`/audit_logs/organizations/${idOf(kind)}/checkpoint`).expect(200);
    const [older, newer] = [parseCheckpoint(readFileSync(kept(kind, 'checkpoint'), 'utf8'))!, parseCheckpoint(checkpoint)!];
    expect(isConsistent(older, newer, [])).toBe(false);
  });
});
