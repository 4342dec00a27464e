import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Upcast } from '#libs/contracts/src/shapes';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, NeedsLaterRelease, notFound } from '#libs/platform/src/domain-error';
import { derivedId, newCommandId, newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { AppendTooLarge, type Appended, type EventStore, type RecordedEvent } from '../log/event-store.ts';
import { MeasuredEventStore } from '../log/measured.event-store.ts';
import { Naming, streamName } from '../log/naming.ts';
import { SKIPPED } from '../log/protocol.ts';
import { UpcastingEventStore } from '../log/upcasts.ts';
import { StoppedViews } from '../views/stopped-views.ts';
import { primaryView, tableOf } from '../views/view.ts';
import type { Decider, Decision, Fact } from './decider.ts';
import { LogRepository } from './log.repository.ts';

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const OTHER_ENVIRONMENT = 'environment_01J00000000000000000000000';

interface Book {
  readonly id: string;
  readonly title: string;
  readonly isbn: string | null;
  readonly created_at: string;
}
type BookState = Book | null;
type BookEvent =
  | Fact<'book.created', { readonly id: string; readonly title: string; readonly isbn: string | null }>
  | Fact<'book.changed', Partial<Pick<Book, 'title' | 'isbn'>>>
  | Fact<'book.deleted', null>;

const bookDecider: Decider<BookState, BookEvent> = {
  category: 'book',
  foldVersion: 1,
  initial: null,
  sealed: { 'book.created': null, 'book.changed': null, 'book.deleted': null },
  evolve(state, event) {
    if (event.type === 'book.created') return state ?? { ...event.data, created_at: event.at };
    if (state === null || event.type === 'book.deleted') return null;
    return { ...state, ...event.data };
  },
  claims: (state) =>
    state === null || state.isbn === null
      ? []
      : [{ kind: 'book.isbn', value: state.isbn, refusal: () => new DomainError('conflict', 'isbn_taken', 'Another book has it.') }],
  organization: () => 'org_1',
  toPublicEvent: (event, before, after) => (event.type === 'book.changed' ? null : { payload: after ?? before, names: [event.type] }),
};

const booksView = primaryView<BookState, BookEvent, Book>({
  name: 'books',
  version: 1,
  decider: bookDecider,
  indexes: [],
  rowOf: (state) => state,
});

type Decide = Decision<BookState, BookEvent>;
const create =
  (isbn: string | null = null): Decide =>
  (state, context) =>
    state === null ? [{ type: 'book.created', data: { id: context.id('book'), title: 'Notes', isbn } }] : [];
const change =
  (changes: Partial<Pick<Book, 'title' | 'isbn'>>): Decide =>
  (state) => {
    if (state === null) throw notFound('Book', '?');
    return [{ type: 'book.changed', data: changes }];
  };
const remove: Decide = (state) => (state === null ? [] : [{ type: 'book.deleted', data: null }]);

class SetClock extends Clock {
  time = Date.parse('2026-01-15T12:00:00.000Z');
  now(): number {
    return this.time;
  }
}

describe('a transaction', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let rows: Table<Book>;
  let repository: LogRepository;
  let clock: SetClock;
  const lines: string[] = [];
  const naming = new Naming(createSecretKey(Buffer.alloc(32, 1)));
  const log = new PinoLog({ level: 'warn', readable: false, destination: { write: (line: string) => void lines.push(line) } });

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'repository-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    clock = new SetClock();
    repository = repositoryOn(new LmdbReadModels(storage));
    lines.length = 0;
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  /** As another process has it, with rows of its own. */
  function repositoryOn(readModels: ReadModels, stopped = new StoppedViews(), store: EventStore = events): LogRepository {
    const opened = new LogRepository(store, readModels, naming, clock, log, stopped);
    opened.registerPrimaryView(booksView);
    rows = readModels.table(tableOf(booksView));
    return opened;
  }

  function context(changes: Partial<RequestContext> = {}): RequestContext {
    const commandId = newCommandId(clock.now());
    const actor = { id: 'key_1', source: 'api', name: null } as const;
    return { environment: ENVIRONMENT, actor, requestId: 'request_1', commandId, deadline: clock.now() + 10_000, receipt: {}, ...changes };
  }

  const streamOf = (key: string) => `book-${ENVIRONMENT}-${key}`;
  const typesOf = (records: readonly RecordedEvent[]) => records.map(({ type }) => type);
  const refused = (code: string) => expect.objectContaining({ code }) as unknown;

  it('records what was decided, with everything about it', async () => {
    const asked = context({ traceparent: '00-1-1-01' });
    const { state, facts, position, version } = await repository.transact(bookDecider, asked, 'a', create());
    const id = `book_${derivedId(asked.commandId, 0)}`;
    const book = { id, title: 'Notes', isbn: null, created_at: '2026-01-15T12:00:00.000Z' };
    expect({ state, facts, version }).toEqual({ state: book, facts: [{ type: 'book.created', data: { id, title: 'Notes', isbn: null } }], version: 1 });
    expect(asked.receipt.position).toBe(position);
    const { commandId, actor, requestId } = asked;
    expect(await events.read(streamOf('a'))).toMatchObject([
      {
        id: derivedId(commandId, 0),
        stream: streamOf('a'),
        version: 1,
        position,
        type: 'book.created',
        shape: 1,
        data: facts[0]!.data,
        subject: book,
        public: [{ id: `event_${derivedId(commandId, 0)}`, name: 'book.created' }],
        meta: { environment: ENVIRONMENT, organization: 'org_1', actor, requestId, commandId, traceparent: '00-1-1-01', at: clock.now() },
      },
    ]);
  });

  it('shows its row when it is answered', async () => {
    const { state, position } = await repository.transact(bookDecider, context(), 'a', create());
    expect(await rows.get(ENVIRONMENT, 'a')).toMatchObject({ text: JSON.stringify(state), position, revision: 1 });
    await repository.transact(bookDecider, context(), 'a', remove);
    expect(await rows.get(ENVIRONMENT, 'a')).toBeNull();
    expect(await repository.load(bookDecider, ENVIRONMENT, 'a')).toBeNull();
  });

  it('finds a repeated command done', async () => {
    const asked = context();
    const first = await repository.transact(bookDecider, asked, 'a', create());
    const repeated = await repository.transact(bookDecider, { ...asked, receipt: {} }, 'a', create());
    expect(repeated).toEqual({ ...first, facts: [] });
    expect(await events.read(streamOf('a'))).toHaveLength(1);
  });

  it('refuses what would be given an id twice: one aggregate too many, or another after more facts than have ids', async () => {
    const all = context({ receipt: { transacts: 1_023 } });
    await repository.transact(bookDecider, all, 'a', create());
    await expect(repository.transact(bookDecider, all, 'b', create())).rejects.toThrow(RangeError);
    const asked = context();
    const renamed = Array.from({ length: 1_024 }, (_, index): BookEvent => ({ type: 'book.changed', data: { title: `Number ${index}` } }));
    await repository.transact(bookDecider, asked, 'a', () => renamed);
    await repository.transact(bookDecider, asked, 'b', create());
    await repository.transact(bookDecider, asked, 'a', () => [...renamed, ...renamed.slice(0, 1)]);
    await expect(repository.transact(bookDecider, asked, 'c', create())).rejects.toThrow(RangeError);
    expect(await events.read(streamOf('c'))).toEqual([]);
  });

  describe('that comes to more than the log takes at once', () => {
    const changes = (count: number): readonly BookEvent[] =>
      Array.from({ length: count }, (_, index) => ({ type: 'book.changed', data: { title: `${index} ${'x'.repeat(100_000)}` } }));
    const following = { ...bookDecider, mayFollow: ['book.changed'] as const };
    /** As many as are left to say, in the order of their numbers. */
    const rename = (count: number): Decide => {
      const all = changes(count);
      return (state) => all.slice(Number.parseInt(state?.title ?? '', 10) + 1 || 0);
    };

    it('is recorded in parts where its facts may follow, each decided by what is left', async () => {
      const asked = context();
      await repository.transact(following, asked, 'a', create());
      const parts = [];
      for (let left = 1; left > 0; parts.push(left)) left = (await repository.transact(following, asked, 'a', rename(30))).facts.length;
      expect(parts.length).toBeGreaterThan(3);
      const recorded = await events.read(streamOf('a'));
      expect(recorded.slice(1).map(({ data }) => data)).toEqual(changes(30).map(({ data }) => data));
      expect(new Set(recorded.map(({ id }) => id)).size).toBe(31);
      expect(JSON.parse((await rows.get(ENVIRONMENT, 'a'))!.text)).toMatchObject({ title: changes(30).at(-1)!.data!.title });
    });

    it('goes on behind the part that a process recorded before it died', async () => {
      await repository.transact(following, context(), 'a', create());
      await repository.transact(following, context(), 'a', rename(30));
      const before = (await events.read(streamOf('a'))).length;
      for (let left = 1; left > 0;) left = (await repository.transact(following, context(), 'a', rename(30))).facts.length;
      expect(before).toBeLessThan(31);
      expect(await events.read(streamOf('a'))).toHaveLength(31);
    });

    it('is refused as a whole where they may not: a caller learns why, and the system what to change', async () => {
      await repository.transact(bookDecider, context(), 'a', create());
      const asked = context({ actor: { id: 'key', source: 'api', name: null } });
      await expect(repository.transact(bookDecider, asked, 'a', rename(30))).rejects.toMatchObject({ code: 'payload_too_large' });
      const own = context({ actor: { id: 'system', source: 'system', name: null } });
      await expect(repository.transact(bookDecider, own, 'a', rename(30))).rejects.toThrow(AppendTooLarge);
      // Nor may what comes before facts that may follow be cut off.
      const ending: Decide = () => [...changes(12), { type: 'book.deleted', data: null }];
      await expect(repository.transact(following, own, 'a', ending)).rejects.toThrow(AppendTooLarge);
      expect(await events.read(streamOf('a'))).toHaveLength(1);
    });
  });

  it('goes on without a claim that it may do without, where another holds it, and fails with whatever else stands in the way', async () => {
    const unclaimed = { ...bookDecider, claims: () => [] };
    const lenient = { ...bookDecider, claims: (state: BookState) => bookDecider.claims!(state).map((claim) => ({ ...claim, mayBeUnclaimed: true as const })) };
    await repository.transact(bookDecider, context(), 'a', create('isbn-1'));
    await repository.transact({ ...bookDecider, category: 'magazine' }, context(), 'a', create('isbn-2'));
    for (const number of ['1', '2']) await repository.transact(unclaimed, context(), `held-${number}`, create(`isbn-${number}`));
    expect(await repository.transact(lenient, context(), 'held-1', change({ title: 'Other' }))).toMatchObject({ version: 2 });
    await expect(repository.transact(lenient, context(), 'held-2', change({ title: 'Other' }))).rejects.toThrow('is claimed by magazine and by book');
  });

  it('fails where two kinds of aggregates claim the same, since neither would see whose it is', async () => {
    const magazineDecider = { ...bookDecider, category: 'magazine' };
    await repository.transact(bookDecider, context(), 'a', create('isbn-1'));
    await expect(repository.transact(magazineDecider, context(), 'b', create('isbn-1'))).rejects.toThrow('book.isbn is claimed by book and by magazine');
    expect(await events.read(`magazine-${ENVIRONMENT}-b`)).toEqual([]);
  });

  describe('on an aggregate whose id its own command made', () => {
    /** Counts whatever is read of the log. */
    class CountingStore extends MeasuredEventStore {
      reads = 0;
      override read(stream: string, from?: number): Promise<readonly RecordedEvent[]> {
        this.reads++;
        return super.read(stream, from);
      }
    }
    let store: CountingStore;
    let asked: RequestContext;
    let key: string;
    beforeEach(() => {
      store = new CountingStore(events, new Metrics());
      repository = repositoryOn(new LmdbReadModels(storage), new StoppedViews(), store);
      asked = context();
      key = `book_${asked.commandId}`;
    });

    it('asks the log for nothing before it appends', async () => {
      const { state, version } = await repository.transact(bookDecider, asked, key, create());
      expect({ state, version, reads: store.reads }).toMatchObject({ state: { title: 'Notes' }, version: 1, reads: 0 });
      // Another's id is looked for.
      await repository.transact(bookDecider, context(), `book_${newCommandId(clock.now())}`, create());
      expect(store.reads).toBe(1);
    });

    it.each<[string, Partial<RequestContext>]>([
      ['another may have carried it out', { attempt: 2 }],
      ['it follows from an event, which may come again', { actor: { id: 'spec', source: 'system', name: null } }],
    ])('looks first where %s', async (_, changes) => {
      const first = await repository.transact(bookDecider, asked, key, create());
      await repository.transact(bookDecider, context(), key, change({ title: 'Sketch' }));
      const before = store.reads;
      const { state, facts } = await repository.transact(bookDecider, { ...asked, receipt: {}, ...changes }, key, create());
      expect([first.facts.length, state?.title, facts, store.reads > before]).toEqual([1, 'Sketch', [], true]);
    });

    it('decides on what is there, where something is', async () => {
      await repository.transact(bookDecider, context(), key, create());
      const told = await repository.transact(bookDecider, asked, key, change({ title: 'Sketch' }));
      expect([told.state?.title, told.version]).toEqual(['Sketch', 2]);
      const other = context();
      await repository.transact(bookDecider, context(), `book_${other.commandId}`, create());
      const created = await repository.transact(bookDecider, other, `book_${other.commandId}`, create());
      expect([created.facts, created.version, created.isRepeat]).toEqual([[], 1, false]);
    });
  });

  describe('that comes again', () => {
    /** Counts what is read of the log beside what every command reads. */
    class CountingStore extends MeasuredEventStore {
      readBack = 0;
      override readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
        this.readBack++;
        return super.readBackwards(stream, count, from);
      }
    }
    let store: CountingStore;
    beforeEach(async () => {
      store = new CountingStore(events, new Metrics());
      await repository.transact(bookDecider, context(), 'a', create());
      repository = repositoryOn(new LmdbReadModels(storage), new StoppedViews(), store);
    });

    const again = (asked: RequestContext, changes: Partial<RequestContext> = { attempt: 2 }) => ({ ...asked, receipt: {}, ...changes });
    const titled = (title: string) => repository.transact(bookDecider, context(), 'a', change({ title }));

    /** So many records in the stream of a book, the first of them this old (milliseconds). */
    async function grown(count: number, age = 0): Promise<void> {
      for (let left = count; left > 0; left -= 1_000) {
        const { version } = (await events.last(streamOf('a')))!;
        const records = Array.from({ length: Math.min(left, 1_000) }, () => {
          const id = newUlid(clock.now());
          const meta = { environment: ENVIRONMENT, actor: context().actor, requestId: 'x', commandId: id, at: clock.now() - age };
          return { id, type: 'book.changed', shape: 1, data: { title: 'Grown' }, subject: null, public: [], meta };
        });
        await events.append(streamOf('a'), version, records);
      }
      // With it the row is at the end of the stream again: what every command reads is nothing.
      await titled('Grown');
    }

    it.each<[string, () => Partial<RequestContext>]>([
      ['a gateway took it over, or a transport handed it on', () => ({ attempt: 2 })],
      ['it was sent more than a second before', () => ({ sentAt: performance.now() - 1_001 })],
    ])('is not carried out a second time, whatever happened since: %s', async (_, changes) => {
      const asked = context();
      const first = await repository.transact(bookDecider, asked, 'a', change({ title: 'Sketch' }));
      await grown(250);
      const before = await events.read(streamOf('a'));
      const repeated = again(asked, changes());
      const { state, facts, isRepeat, version, position } = await repository.transact(bookDecider, repeated, 'a', change({ title: 'Sketch' }));
      expect({ title: state!.title, facts, isRepeat, version }).toEqual({ title: 'Grown', facts: [], isRepeat: true, version: before.length });
      expect(repeated.receipt).toMatchObject({ position });
      expect(await events.read(streamOf('a'))).toEqual(before);
      expect(first.isRepeat).toBe(false);
    });

    it('reads nothing more the first time, and decides where it is not found', async () => {
      const young = context({ attempt: 1, sentAt: performance.now() });
      expect(await repository.transact(bookDecider, young, 'a', change({ title: 'Sketch' }))).toMatchObject({ version: 2, isRepeat: false });
      expect(store.readBack).toBe(0);
      expect(await repository.transact(bookDecider, context({ attempt: 2 }), 'a', change({ title: 'Draft' }))).toMatchObject({ version: 3, isRepeat: false });
      expect(store.readBack).toBe(1);
    });

    it('is looked for up to what is 70 s older than it, and decided then', async () => {
      const asked = context();
      await grown(3_000, 69_000);
      await repository.transact(bookDecider, asked, 'a', change({ title: 'Sketch' }));
      await grown(150, 69_000);
      expect(await repository.transact(bookDecider, again(asked), 'a', change({ title: 'Sketch' }))).toMatchObject({ isRepeat: true });
      const other = context({ attempt: 2 });
      await grown(150, 71_000);
      await grown(150, 69_000);
      store.readBack = 0;
      expect(await repository.transact(bookDecider, other, 'a', change({ title: 'Sketch' }))).toMatchObject({ isRepeat: false });
      expect(store.readBack).toBe(2);
    });

    it('is refused where ten thousand records came since, and never carried out again', async () => {
      const asked = context();
      await repository.transact(bookDecider, asked, 'a', change({ title: 'Sketch' }));
      await grown(9_900);
      expect(await repository.transact(bookDecider, again(asked), 'a', change({ title: 'Sketch' }))).toMatchObject({ isRepeat: true });
      await grown(200);
      const before = await events.last(streamOf('a'));
      await expect(repository.transact(bookDecider, again(asked), 'a', change({ title: 'Sketch' }))).rejects.toEqual(refused('idempotency_outcome_unknown'));
      expect(await events.last(streamOf('a'))).toEqual(before);
    });

    it('goes on with the aggregate at which it broke off', async () => {
      await repository.transact(bookDecider, context(), 'b', create());
      const asked = context();
      await repository.transact(bookDecider, asked, 'a', change({ title: 'Sketch' }));
      await titled('Another');
      const repeated = again(asked);
      const [a, b] = [
        await repository.transact(bookDecider, repeated, 'a', change({ title: 'Sketch' })),
        await repository.transact(bookDecider, repeated, 'b', change({ title: 'Sketch' })),
      ];
      expect([a.isRepeat, a.state!.title, b.isRepeat, b.state!.title]).toEqual([true, 'Another', false, 'Sketch']);
      expect((await events.last(streamOf('b')))!.id).toBe(derivedId(asked.commandId, 1024));
      const once = again(asked);
      expect(await repository.transact(bookDecider, once, 'a', change({ title: 'Sketch' }))).toMatchObject({ isRepeat: true });
      expect(await repository.transact(bookDecider, once, 'b', change({ title: 'Sketch' }))).toMatchObject({ isRepeat: true });
    });

    it('is found by whoever was asked first and comes last', async () => {
      const asked = context();
      // Between the load of this one and its append, others change it, another replica is asked, and somebody undoes it.
      let overtaken: Promise<unknown> | null = null;
      const overtaking = new (class extends MeasuredEventStore {
        override async append(...given: Parameters<EventStore['append']>): Promise<Appended> {
          overtaken ??= (async () => {
            await titled('Draft');
            await repository.transact(bookDecider, again(asked), 'a', change({ title: 'Sketch' }));
            await titled('Another');
          })();
          await overtaken;
          return super.append(...given);
        }
      })(events, new Metrics());
      const late = repositoryOn(new LmdbReadModels(storage), new StoppedViews(), overtaking);
      const { state, isRepeat } = await late.transact(bookDecider, asked, 'a', change({ title: 'Sketch' }));
      expect({ title: state!.title, isRepeat }).toEqual({ title: 'Another', isRepeat: true });
      expect(typesOf(await events.read(streamOf('a')))).toEqual(['book.created', 'book.changed', 'book.changed', 'book.changed']);
    });
  });

  it('appends nothing once nobody waits for it, however late that turns out', async () => {
    const asked = { ...context() };
    const deciding = repository.transact(bookDecider, asked, 'a', (state, known) => {
      asked.deadline = 0;
      return create()(state, known);
    });
    await expect(deciding).rejects.toEqual(refused('service_unavailable'));
    expect(await events.read(streamOf('a'))).toEqual([]);
  });

  it('gives every aggregate of one command ids of its own', async () => {
    const asked = context();
    for (const key of ['a', 'b']) await repository.transact(bookDecider, asked, key, create());
    const [a, b] = await Promise.all(['a', 'b'].map((key) => events.last(streamOf(key))));
    expect([a!.id, b!.id]).toEqual([derivedId(asked.commandId, 0), derivedId(asked.commandId, 1024)]);
    expect(a!.public[0]!.id).not.toBe(b!.public[0]!.id);
  });

  it('decides on the row and what was recorded after it', async () => {
    await repository.transact(bookDecider, context(), 'a', create());
    await repository.transact(bookDecider, context(), 'a', change({ title: 'Sketch' }));
    // A row that fell behind, with a title that no event ever gave: it is where the fold begins.
    const readModels = new LmdbReadModels(storage);
    const behind = { id: 'book_1', title: 'From the row', isbn: null, created_at: '' };
    await readModels.table(tableOf(booksView)).clear();
    await readModels
      .table(tableOf(booksView))
      .write([{ environment: ENVIRONMENT, id: 'a', position: '0000000000000001', revision: 1, text: JSON.stringify(behind) }]);
    expect(await repositoryOn(readModels).load(bookDecider, ENVIRONMENT, 'a')).toEqual({ ...behind, title: 'Sketch' });
    // Without its row, the whole stream says it.
    await readModels.table(tableOf(booksView)).clear();
    expect(await repositoryOn(readModels).load(bookDecider, ENVIRONMENT, 'a')).toMatchObject({ title: 'Sketch', created_at: '2026-01-15T12:00:00.000Z' });
  });

  it('trusts no row of what the log, restored to an earlier state, does not say', async () => {
    const lost = { environment: ENVIRONMENT, id: 'a', position: '0000000000000009', revision: 3, text: JSON.stringify({ id: 'book_1', title: 'Lost' }) };
    const readModels = new LmdbReadModels(storage);
    await readModels.table(tableOf(booksView)).write([lost]);
    const stopped = new StoppedViews();
    stopped.set(tableOf(booksView).name, { halt: 'ahead', left: null });
    const { version, state } = await repositoryOn(readModels, stopped).transact(bookDecider, context(), 'a', create());
    expect({ version, title: state!.title }).toEqual({ version: 1, title: 'Notes' });
  });

  it('decides nothing on what a later release recorded in a shape that this one does not know: a replica of that release is asked', async () => {
    const { version } = await repository.transact(bookDecider, context(), 'a', create());
    const [created] = await events.read(streamOf('a'));
    await events.append(streamOf('a'), version, [
      { ...created!, id: newUlid(clock.now()), type: 'book.changed', shape: 2, data: { title: { en: 'Notes' } }, subject: null },
    ]);
    const early = repositoryOn(new LmdbReadModels(storage), new StoppedViews(), new UpcastingEventStore(events, {}));
    const change: Decide = () => [{ type: 'book.changed', data: { title: 'Sketch' } }];
    await expect(early.transact(bookDecider, context(), 'a', change)).rejects.toMatchObject({ code: 'service_unavailable', details: { retryAfter: 5 } });
    await expect(early.load(bookDecider, ENVIRONMENT, 'a')).rejects.toThrow(NeedsLaterRelease);
    expect((await events.last(streamOf('a')))!.version).toBe(version + 1);
    // Every other stream goes on.
    await early.transact(bookDecider, context(), 'b', create());
  });

  it('decides nothing on a fact that only a later release has: a replica of that release is asked', async () => {
    const { version } = await repository.transact(bookDecider, context(), 'a', create());
    const [created] = await events.read(streamOf('a'));
    await events.append(streamOf('a'), version, [{ ...created!, id: newUlid(clock.now()), type: 'book.lent', shape: 1, data: {}, subject: null }]);
    const change: Decide = () => [{ type: 'book.changed', data: { title: 'Sketch' } }];
    await expect(repository.transact(bookDecider, context(), 'a', change)).rejects.toThrow(NeedsLaterRelease);
    await expect(repository.load(bookDecider, ENVIRONMENT, 'a')).rejects.toThrow('book.lent has shape 1, and this one knows 0');
    expect((await events.last(streamOf('a')))!.version).toBe(version + 1);
  });

  it('writes an earlier shape than it folds, where the decider says so: whoever knows no other goes on', async () => {
    type Written = Fact<'pen.named', { readonly name: string }>;
    type Folded = Fact<'pen.named', { readonly first: string; readonly last: string }>;
    const split: Upcast = ({ data, subject }) => {
      const [first, last] = (data as Written['data']).name.split(' ');
      return { data: { first, last }, subject };
    };
    const penDecider: Decider<string, Folded, Written> = {
      category: 'pen',
      foldVersion: 1,
      initial: '',
      sealed: { 'pen.named': null },
      upcasts: { 'pen.named': [split] },
      writes: { 'pen.named': 1 },
      evolve: (_state, { data }) => `${data.last}, ${data.first}`,
      toPublicEvent: () => null,
    };
    const pens = repositoryOn(new LmdbReadModels(storage), new StoppedViews(), new UpcastingEventStore(events, penDecider));
    const name = (): readonly Written[] => [{ type: 'pen.named', data: { name: 'Ada King' } }];
    const { state, facts } = await pens.transact(penDecider, context(), 'a', name);
    expect({ state, facts }).toEqual({ state: 'King, Ada', facts: [{ type: 'pen.named', data: { first: 'Ada', last: 'King' } }] });
    expect(await events.read(streamName('pen', ENVIRONMENT, 'a'))).toMatchObject([{ shape: 1, data: { name: 'Ada King' } }]);
    expect(await pens.load(penDecider, ENVIRONMENT, 'a')).toBe('King, Ada');
    const folded = (): readonly Folded[] => [{ type: 'pen.named', data: { first: 'Ada', last: 'King' } }];
    // @ts-expect-error -- facts are yielded in the shape that is written
    await expect(pens.transact(penDecider, context(), 'b', folded)).rejects.toThrow(TypeError);
  });

  it('begins again when another was faster, until every one has its turn', async () => {
    await repository.transact(bookDecider, context(), 'a', create());
    const append = (): Decide => (state) => [{ type: 'book.changed', data: { title: `${state!.title}+` } }];
    await Promise.all(Array.from({ length: 20 }, () => repository.transact(bookDecider, context(), 'a', append())));
    expect(await repository.load(bookDecider, ENVIRONMENT, 'a')).toMatchObject({ title: `Notes${'+'.repeat(20)}` });
  });

  it('does nothing twice where a replica that had paused goes on with what another has done meanwhile', async () => {
    await repository.transact(bookDecider, context(), 'a', create());
    let resume = (): void => {};
    const paused = new Promise<void>((resolve) => (resume = resolve));
    /** Stands still before it appends. */
    class PausedEventStore extends MeasuredEventStore {
      override async append(...args: Parameters<EventStore['append']>): Promise<Appended> {
        await paused;
        return super.append(...args);
      }
    }
    const replica = new LogRepository(new PausedEventStore(events, new Metrics()), new LmdbReadModels(storage), naming, clock, log, new StoppedViews());
    const { commandId } = context();
    const first = replica.transact(bookDecider, context({ commandId }), 'a', change({ title: 'Asked twice' }));
    await repository.transact(bookDecider, context(), 'a', change({ title: 'Before' }));
    await repository.transact(bookDecider, context({ commandId }), 'a', change({ title: 'Asked twice' }));
    await repository.transact(bookDecider, context(), 'a', change({ title: 'Later' }));
    resume();
    expect((await first).state).toMatchObject({ title: 'Later' });
    expect((await events.read(streamOf('a'))).map(({ data }) => (data as { title: string }).title)).toEqual(['Notes', 'Before', 'Asked twice', 'Later']);
  });

  it('is given up at the deadline, and nothing happened', async () => {
    await expect(repository.transact(bookDecider, context({ deadline: clock.now() - 1 }), 'a', create())).rejects.toEqual(refused('service_unavailable'));
    expect(await events.read(streamOf('a'))).toEqual([]);
  });

  it('answers as it would have when its row cannot be written, and says so', async () => {
    class FailingReadModels extends ReadModels {
      table<Row>(): Table<Row> {
        return { get: async () => null, write: () => Promise.reject(new Error('disk on fire')) } as unknown as Table<Row>;
      }
      async drop(): Promise<void> {}
    }
    const { version } = await repositoryOn(new FailingReadModels()).transact(bookDecider, context(), 'a', create());
    expect(version).toBe(1);
    expect(lines.join()).toContain('disk on fire');
  });

  it('happens at the time in the id that it gives, unless it comes much later', async () => {
    const asked = context();
    clock.time += 1_500;
    const { state } = await repository.transact(bookDecider, asked, 'a', create());
    expect(state!.created_at).toBe('2026-01-15T12:00:00.000Z');
    clock.time += 120_000;
    const late = await repository.transact(bookDecider, { ...asked, deadline: clock.now() + 1, receipt: {} }, 'b', create());
    expect(late.state!.created_at).toBe('2026-01-15T12:02:01.500Z');
  });

  describe('that takes a value', () => {
    const claimStream = naming.claimStream(ENVIRONMENT, 'book.isbn', '978-1');

    it('is refused while another holds it, in this environment only', async () => {
      await repository.transact(bookDecider, context(), 'a', create('978-1'));
      await expect(repository.transact(bookDecider, context(), 'b', create('978-1'))).rejects.toEqual(refused('isbn_taken'));
      expect(await events.read(streamOf('b'))).toEqual([]);
      await repository.transact(bookDecider, context({ environment: OTHER_ENVIRONMENT }), 'b', create('978-1'));
    });

    it('is refused also where an operator had its claim go on without what somebody else wrote there', async () => {
      await repository.transact(bookDecider, context(), 'a', create('978-1'));
      const claim = naming.claimStream(ENVIRONMENT, 'book.isbn', '978-1');
      const taken = (await events.last(claim))!;
      await events.append(claim, taken.version, [{ ...taken, id: newUlid(clock.now()), type: SKIPPED, data: {} }]);
      await expect(repository.transact(bookDecider, context(), 'b', create('978-1'))).rejects.toEqual(refused('isbn_taken'));
      await repository.transact(bookDecider, context(), 'a', change({ isbn: null }));
      await repository.transact(bookDecider, context(), 'b', create('978-1'));
      expect((await events.last(claim))!).toMatchObject({ version: taken.version + 2, data: { key: 'b' } });
    });

    it('takes hundreds side by side, from one who dropped them and is fenced a few times for all', async () => {
      const shelf: Decider<readonly string[], Fact<'shelf.filled', readonly string[]>> = {
        category: 'shelf',
        foldVersion: 1,
        initial: [],
        sealed: { 'shelf.filled': null },
        evolve: (_before, { data }) => data,
        claims: (values) =>
          values.map((value) => ({ kind: 'shelf.value', value, refusal: () => new DomainError('conflict', 'isbn_taken', `${value} is taken.`) })),
        toPublicEvent: () => null,
      };
      const fill = (values: readonly string[]) => () => [{ type: 'shelf.filled' as const, data: values }];
      const all = Array.from({ length: 300 }, (_, number) => `value-${number}`);
      await repository.transact(shelf, context(), 'a', fill(all));
      await repository.transact(shelf, context(), 'a', fill(all.slice(0, 1)));
      clock.time += 31_000;
      const before = await events.last(streamName('shelf', ENVIRONMENT, 'a'));
      // What is still held refuses all, and nobody is fenced for it.
      await expect(repository.transact(shelf, context(), 'b', fill(all.slice(0, 50)))).rejects.toEqual(refused('isbn_taken'));
      expect(await events.last(streamName('shelf', ENVIRONMENT, 'a'))).toEqual(before);
      await repository.transact(shelf, context(), 'b', fill(all.slice(1)));
      const fences = await events.read(streamName('shelf', ENVIRONMENT, 'a'), before!.version + 1);
      expect(new Set(typesOf(fences))).toEqual(new Set(['claim.fenced']));
      expect(fences.length).toBeLessThan(10);
      for (const value of all.slice(1)) expect((await events.last(naming.claimStream(ENVIRONMENT, 'shelf.value', value)))!.data).toMatchObject({ key: 'b' });
    });

    it('claims it once, and nothing at later changes', async () => {
      await repository.transact(bookDecider, context(), 'a', create('978-1'));
      await repository.transact(bookDecider, context(), 'a', change({ title: 'Sketch' }));
      expect(typesOf(await events.read(claimStream))).toEqual(['claim.taken']);
    });

    it.each<[string, Decide]>([
      ['changed', change({ isbn: null })],
      ['deleted', remove],
    ])('gets it after the holder was %s, fences the holder, and is folded past the fence', async (_, dropping) => {
      await repository.transact(bookDecider, context(), 'a', create('978-1'));
      await repository.transact(bookDecider, context(), 'a', dropping);
      clock.time += 31_000;
      await repository.transact(bookDecider, context(), 'b', create('978-1'));
      expect((await events.last(streamOf('a')))!.type).toBe('claim.fenced');
      expect(typesOf(await events.read(claimStream))).toEqual(['claim.taken', 'claim.taken']);
      await expect(
        repository.transact(bookDecider, context(), 'a', (state) =>
          (state === null ? create('978-1') : change({ isbn: '978-1' }))(state, { environment: '', now: '', id: () => 'x' }),
        ),
      ).rejects.toEqual(refused('isbn_taken'));
    });

    it('waits a moment for a rival that may be about to have it', async () => {
      const meta = { environment: ENVIRONMENT, actor: { id: 'x', source: 'api', name: null }, requestId: 'x', commandId: 'x', at: clock.now() } as const;
      await events.append(claimStream, 0, [
        { id: newUlid(1), type: 'claim.taken', shape: 1, data: { category: 'book', key: 'a' }, subject: null, public: [], meta },
      ]);
      const rival = expect(repository.transact(bookDecider, context(), 'b', create('978-1'))).rejects.toEqual(refused('isbn_taken'));
      await events.append(streamOf('a'), 0, [
        { id: newUlid(1), type: 'book.created', shape: 1, data: { id: 'a', title: 'Notes', isbn: '978-1' }, subject: null, public: [], meta },
      ]);
      await rival;
    });

    it('has exactly one winner of many', async () => {
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_, index) => repository.transact(bookDecider, context(), `book${index}`, create('978-1'))),
      );
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const result of results) if (result.status === 'rejected') expect(result.reason).toEqual(refused('isbn_taken'));
    });

    it('shows no caller’s text in a name', async () => {
      await repository.transact(bookDecider, context(), 'a', create('a very private number'));
      expect(naming.claimStream(ENVIRONMENT, 'book.isbn', 'a very private number')).not.toContain('private');
      expect(naming.keyOf('ab', 'c')).not.toBe(naming.keyOf('a', 'bc'));
    });
  });
});
