import { randomBytes } from 'node:crypto';
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { type RecordedEvent, START } from '#libs/event-sourcing/src/log/event-store';
import type { Damage, DamageCause } from '#libs/event-sourcing/src/log/log-damage';
import { PinoLog } from '#libs/platform/src/pino.log';
import { givenEventstore, givenKafka, givenMongodb } from '#libs/testing/src/engines/given';
import { gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { recordsAfter } from '#libs/testing/src/records-after';
import { until } from '#libs/testing/src/until';

const [kafka, mongodb, eventstore] = [await givenKafka(), await givenMongodb(), await givenEventstore()];
const isThere = kafka !== null && mongodb !== null && eventstore !== null;

/** What others do to a stream of ours that has one event, and what is said of it. */
interface Kind {
  readonly cause: DamageCause;
  readonly revision: number | null;
  readonly damage: (others: EventStoreDBClient, stored: string, first: RecordedEvent) => Promise<unknown>;
}

const KINDS: Readonly<Record<string, Kind>> = {
  another: { cause: 'foreign', revision: 1, damage: (others, stored) => others.appendToStream(stored, jsonEvent({ type: 'order', data: { total: 7 } })) },
  unreadable: {
    cause: 'unreadable',
    revision: 1,
    // Of a type that nobody handles: whoever does would halt.
    damage: (others, stored, { meta }) => others.appendToStream(stored, jsonEvent({ type: 'spec.garbled', data: 'none of it', metadata: { ...meta } })),
  },
  misplaced: {
    cause: 'misplaced',
    revision: 1,
    damage: (others, stored, { type, shape, data, subject, meta }) =>
      others.appendToStream(stored, jsonEvent({ type, data: { shape, version: 7, data, subject, public: [] } as never, metadata: { ...meta } })),
  },
  counted: { cause: 'truncated', revision: null, damage: (others, stored) => others.setStreamMetadata(stored, { maxCount: 1 }) },
  hidden: { cause: 'truncated', revision: null, damage: (others, stored) => others.deleteStream(stored) },
  ended: { cause: 'deleted', revision: null, damage: (others, stored) => others.tombstoneStream(stored) },
};
const SKIPPABLE = Object.keys(KINDS).filter((name) => KINDS[name]!.revision !== null);

(isThere ? describe : describe.skip)('a log that others have damaged, under two processes', () => {
  const installation = `spec-${randomBytes(4).toString('hex')}`;
  const key = `sk_${randomBytes(32).toString('base64url')}`;
  const variables = {
    INSTALLATION: installation,
    EVENTSTORE_URL: eventstore!,
    MONGODB_URL: mongodb!,
    KAFKA_BROKERS: kafka!,
    KAFKA_REPLICATION: '1',
    MASTER_KEYS: randomBytes(32).toString('base64'),
    GATEHOUSE_API_KEY: key,
  };
  const suites: SuiteProcess[] = [];
  /** The organization of each kind, and the stream that it is in. */
  const ids = new Map<string, string>();
  const streams = new Map<string, string>();
  let others: EventStoreDBClient;

  const ask = async (method: string, path: string, body?: unknown, suite = suites[0]!) => {
    const response = await fetch(suite.url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();

    return { status: response.status, headers: response.headers, text, body: text.startsWith('{') ? JSON.parse(text) : null };
  };
  const rename = (kind: string, suite?: SuiteProcess) => ask('PUT', `/organizations/${ids.get(kind)}`, { name: `Renamed ${kind}` }, suite);
  const skip = (kind: string, revision: string, ...words: readonly string[]) => gatehouse(variables, 'log', 'skip', streams.get(kind)!, revision, ...words);
  const namedBy = async (suite: SuiteProcess): Promise<readonly string[]> => {
    const { status, body } = await ask('GET', '/health/ready', undefined, suite);
    expect([status, body.status]).toEqual([200, 'ready']);
    const { first = [] } = (body.log_damage ?? {}) as { readonly first?: readonly Damage[] };
    return first.map(({ stream, revision, cause }) => `${stream} ${revision} ${cause}`).toSorted();
  };
  const expected = (kinds: readonly string[]) => kinds.map((kind) => `${streams.get(kind)} ${KINDS[kind]!.revision} ${KINDS[kind]!.cause}`).toSorted();
  const bothName = (kinds: readonly string[]): Promise<void> =>
    until(async () => {
      const named = await Promise.all(suites.map(namedBy));
      return named.every((each) => JSON.stringify(each) === JSON.stringify(expected(kinds)));
    }, 30_000);
  const gaugesOf = async (suite: SuiteProcess): Promise<Readonly<Record<string, number>>> => {
    const { text } = await ask('GET', '/metrics', undefined, suite);
    return Object.fromEntries([...text.matchAll(/^gatehouse_log_damages\{cause="(\w+)"\} (\d+)$/gm)].map(([, cause, count]) => [cause, Number(count)]));
  };

  async function records(): Promise<readonly RecordedEvent[]> {
    const log = await EventstoredbEventStore.connect({ url: eventstore!, installation, log: new PinoLog({ level: 'silent', readable: false }) });
    const found = await recordsAfter(log, START);
    await log.close();
    return found;
  }

  beforeAll(async () => {
    others = EventStoreDBClient.connectionString(eventstore!);
    for (let count = 0; count < 2; count++) suites.push(await SuiteProcess.start(variables));
    for (const kind of [...Object.keys(KINDS), 'whole']) ids.set(kind, (await ask('POST', '/organizations', { name: kind })).body.id);
    expect(await gatehouse(variables, 'verify')).toMatchObject({ code: 0, stdout: expect.stringContaining('every stream has all of its versions') });
    const all = await records();
    for (const [kind, id] of ids) streams.set(kind, all.find(({ stream, type }) => type === 'organization.created' && stream.endsWith(id))!.stream);
    for (const [kind, { damage }] of Object.entries(KINDS)) {
      const stream = streams.get(kind)!;
      await damage(
        others,
        `${installation}.${stream}`,
        all.find((record) => record.stream === stream)!,
      );
    }
    // Behind all of it.
    ids.set('later', (await ask('POST', '/organizations', { name: 'later' })).body.id);
  }, 120_000);
  afterAll(async () => {
    for (const suite of suites) await suite.stop();
    await others.dispose();
  });

  it('is named by every process, which is ready all the same, and by its metrics', async () => {
    await bothName(Object.keys(KINDS));
    for (const suite of suites) expect(await gaugesOf(suite)).toEqual({ foreign: 1, misplaced: 1, unreadable: 1, missing: 0, truncated: 2, deleted: 1 });
  }, 120_000);

  it('is refused where it is damaged, and nowhere else', async () => {
    for (const suite of suites) {
      for (const kind of Object.keys(KINDS)) {
        const { status, headers, body } = await rename(kind, suite);
        expect([kind, status, body.code, headers.get('retry-after')]).toEqual([kind, 503, 'event_log_damaged', null]);
      }
      for (const kind of ['whole', 'later']) expect([kind, (await rename(kind, suite)).status]).toEqual([kind, 200]);
    }
  });

  it('is read whole by verify, which names each damage and ends with 2', async () => {
    const { code, stdout, stderr } = await gatehouse(variables, 'verify');
    expect([code, stderr]).toEqual([2, 'gatehouse: The log is not whole (streams that are damaged: 6). docs/operations.md says what to do.\n']);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(6);
    for (const [kind, { revision }] of Object.entries(KINDS))
      expect(lines).toContainEqual(expect.stringContaining(`Damaged: ${streams.get(kind)}${revision === null ? '' : `, revision ${revision}`}`));
  }, 120_000);

  it('is skipped where that is asked for rightly, and a refusal says why not', async () => {
    const reason = ['--reason', 'An order got there by mistake.'];
    expect(await skip('another', '1')).toMatchObject({ code: 64, stderr: expect.stringContaining("'log skip' needs --reason") });
    for (const [revision, words, sentence] of [
      ['1', ['--reason', '  '], '--reason must say why'],
      ['first', reason, "'first' is no revision"],
      ['1.5', reason, "'1.5' is no revision"],
      ['0', reason, `Revision 0 of ${streams.get('another')} cannot be skipped: ${streams.get('another')}, revision 1`],
    ] as const) {
      const { code, stdout, stderr } = await skip('another', revision, ...words);
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^gatehouse: .*\n$/)]);
      expect(stderr).toContain(sentence);
    }
    expect((await skip('whole', '0', ...reason)).stderr).toContain('it is whole');
    expect((await skip('counted', '0', ...reason)).stderr).toContain('its metadata set $tb, $maxCount or $maxAge');
    expect((await skip('ended', '0', ...reason)).stderr).toContain('deleted for good');
    expect((await gatehouse(variables, 'log', 'skip', 'organization-of-nobody', '0', ...reason)).stderr).toContain('There is no stream');
    await bothName(Object.keys(KINDS));
  }, 120_000);

  it('goes on in every process once it was skipped, its revision counted; again changes nothing', async () => {
    const stream = streams.get('another')!;
    const done = await skip('another', '1', '--reason', 'An order got there by mistake.');
    expect(done).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(`${stream} goes on without revision 1, in every process.`) });
    await bothName(Object.keys(KINDS).filter((kind) => kind !== 'another'));
    for (const suite of suites) expect((await rename('another', suite)).status).toBe(200);
    const again = await skip('another', '1', '--reason', 'Twice.');
    expect(again).toMatchObject({ code: 0, stderr: '', stdout: `${stream} goes on without revision 1 already.\n` });
    const written = (await records()).filter((record) => record.stream === stream);
    expect(written.map(({ version }) => version)).toEqual([1, 3, 4].slice(0, written.length));
    expect(written.length).toBeGreaterThan(1);
    const notes: unknown[] = [];
    for await (const { event } of others.readStream(`${installation}.damage`))
      if (event?.type === 'damage.skipped') notes.push({ data: event.data, metadata: event.metadata });
    expect(notes).toEqual([
      {
        data: expect.objectContaining({ data: { stream, from: 1, revision: 1, reason: 'An order got there by mistake.' } }),
        metadata: expect.objectContaining({ actor: { id: 'command_line', source: 'system', name: 'command line' } }),
      },
    ]);
  }, 120_000);

  it('is whole again, as far as it can be repaired or skipped', async () => {
    for (const kind of ['counted', 'hidden']) await others.setStreamMetadata(`${installation}.${streams.get(kind)}`, {});
    for (const kind of SKIPPABLE.filter((each) => each !== 'another')) expect(await skip(kind, '1', '--reason', 'spec')).toMatchObject({ code: 0, stderr: '' });
    await bothName(['ended']);
    for (const kind of Object.keys(KINDS)) expect([kind, (await rename(kind, suites[1])).status]).toEqual([kind, kind === 'ended' ? 503 : 200]);
    expect(await gaugesOf(suites[1]!)).toMatchObject({ foreign: 0, truncated: 0, deleted: 1 });
    const { code, stdout } = await gatehouse(variables, 'verify');
    expect([code, stdout]).toEqual([2, expect.stringMatching(new RegExp(`^Damaged: ${streams.get('ended')}, position .*: deleted for good\\.\\n$`))]);
  }, 120_000);
});
