import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import type { ReadModels, Table, Write } from '#libs/read-models/src/read-models';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import type { Fact } from '../deciding/decider.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import type { NewEvent, Position, RecordedEvent, SealedPart } from '../log/event-store.ts';
import { streamKeyOf } from '../log/naming.ts';
import { ERASURE_FINISHED } from '../log/protocol.ts';
import { purposeOf } from '../sealing/holders.ts';
import { LmdbKeyStore } from '../sealing/lmdb.key-store.ts';
import { SealingEventStore } from '../sealing/sealing.event-store.ts';
import { ViewFold } from '../views/view-fold.ts';
import { tableOf, type View } from '../views/view.ts';
import { ERASED } from './erasing.ts';

export interface RowsOfErased {
  readonly readModels: ReadModels;
  close(): Promise<void>;
}

type Told = Fact<'person.told', { readonly name: string | null }>;
type Visited = Fact<'visit.made', { readonly host: string; readonly guest: string; readonly by_host: string | null; readonly by_guest: string | null }>;

interface Person {
  readonly id: string;
  readonly times: number;
  readonly name: string | null;
  readonly folded: string | null;
  readonly words: readonly string[] | null;
}

interface Visit {
  readonly host: string;
  readonly guest: string;
  readonly said: { readonly host: string | null; readonly guest: string | null };
  readonly times: number;
}

const holderOf = (user: string): string => `user.${user}`;

/** Rows of one holder each, by their ids, with what derives from what is personal. */
const people = (name: string): View<Person, Told> => ({
  name: `${name}-people`,
  version: 1,
  handles: ['person.told'],
  indexes: [
    { name: 'folded', keys: ({ folded }) => (folded === null ? [] : [folded]) },
    { name: 'word', keys: ({ words }) => words ?? [] },
  ],
  personal: { holders: ({ id }) => [holderOf(id)], columns: () => ['name', 'folded', 'words'], idsOf: (holder) => [holder.slice(holderOf('').length)] },
  idsOf: ({ stream }) => [streamKeyOf(stream)],
  evolve: (row, { data: { name: told } }, id) => ({
    id,
    times: (row?.times ?? 0) + 1,
    name: told,
    folded: told?.toLowerCase() ?? null,
    words: told?.split(' ') ?? null,
  }),
});

/** Rows of two holders each, which an index finds. */
const visits = (name: string): View<Visit, Visited> => ({
  name: `${name}-visits`,
  version: 1,
  handles: ['visit.made'],
  indexes: [{ name: 'said', keys: ({ said }) => Object.values(said).filter((each) => each !== null) }],
  personal: {
    holders: ({ host, guest }) => [holderOf(host), holderOf(guest)],
    columns: ({ host, guest }, holder) => [...(holderOf(host) === holder ? ['said.host'] : []), ...(holderOf(guest) === holder ? ['said.guest'] : [])],
  },
  idsOf: ({ stream }) => [streamKeyOf(stream)],
  evolve: (row, { data: { host, guest, by_host, by_guest } }) => ({ host, guest, said: { host: by_host, guest: by_guest }, times: (row?.times ?? 0) + 1 }),
});

type AnyView = View<object>;

/** The same for rows of every adapter: what serves, whoever wrote it when, is what the log gives back once the keys are gone. */
export function erasureContract(open: (directory: string) => Promise<RowsOfErased>, { histories }: { readonly histories: number }): void {
  const clock = new SystemClock();
  let directory: string;
  let storage: LmdbStorage;
  let rows: RowsOfErased;
  let events: SealingEventStore;
  let keys: LmdbKeyStore;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'erasure-'));
    storage = await LmdbStorage.open({ directory: join(directory, 'log') });
    keys = await LmdbKeyStore.open(storage.keys, []);
    events = new SealingEventStore(new LmdbEventStore(storage), keys, () => ({ personal: [], secret: [] }));
    rows = await open(directory);
  });
  afterAll(async () => {
    await rows.close();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  async function append(environment: string, stream: string, type: string, data: object, sealed: readonly SealedPart[] = []): Promise<RecordedEvent> {
    const id = newUlid(clock.now());
    const meta = { environment, actor: { id: 'test', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() } as const;
    const event: NewEvent = { id, type, shape: 1, data, subject: null, public: [], meta, ...(sealed.length > 0 && { sealed }) };
    const before = await events.read(stream);
    await events.append(stream, before.length, [event]);
    return (await events.last(stream))!;
  }

  /** The next of the log, at most so many. */
  async function next(after: Position, limit: number): Promise<readonly RecordedEvent[]> {
    if ((await events.head()) <= after) return [];
    const reading = new AbortController();
    try {
      for await (const batch of events.subscribe(after, reading.signal)) return batch.slice(0, limit);
      return [];
    } finally {
      reading.abort();
    }
  }

  async function textsOf(table: Table<never>): Promise<Readonly<Record<string, unknown>>> {
    const found: Record<string, unknown> = {};
    for await (const { environment, id, text } of table.dump()) found[`${environment} ${id}`] = text === null ? null : JSON.parse(text);
    return found;
  }

  async function expectOneHistory(seed: number): Promise<void> {
    const any = seededNumbers(seed);
    const environment = `environment_${newUlid(clock.now())}`;
    const begun = await events.head();
    const views = [people(`h${seed}`), visits(`h${seed}`)] as unknown as readonly AnyView[];
    const tables = views.map((view) => rows.readModels.table(tableOf(view)));
    const folds = views.map((view, index) => new ViewFold(view, tables[index]!));
    const users = ['user_a', 'user_b', 'user_c', 'user_d'];
    const erased: { readonly user: string; state: 'recorded' | 'destroyed' | 'finished' }[] = [];
    let folded = begun;
    let words = 0;
    /** Rows that commands have decided on and still write. */
    const late: (() => Promise<void>)[] = [];
    const isGone = (user: string): boolean => erased.some((each) => each.user === user && each.state !== 'recorded');
    const anyone = (): string => users[any(users.length)]!;
    const said = (user: string): string | null => (isGone(user) ? null : `Secret${++words} of ${user}`);

    /** As a command does: from all that is recorded, at once or later. */
    const writeRow = async (which: number, { stream, position, version }: RecordedEvent): Promise<void> => {
      const [view, table] = [views[which]!, tables[which]!];
      const id = streamKeyOf(stream);
      const row = (await events.read(stream)).reduce<object | null>((state, event) => view.evolve(state, event, id), null);
      const write: Write = { environment, id, position, revision: version, text: JSON.stringify(row), row };
      if (any(2) === 0) late.push(() => table.write([write]));
      else await table.write([write]);
    };
    const steps: readonly (readonly [weight: number, () => Promise<unknown>])[] = [
      [
        4,
        async () => {
          const user = anyone();
          const sealed = [{ of: holderOf(user), fields: ['data.name'] }];
          await writeRow(0, await append(environment, `person-${environment}-${user}`, 'person.told', { name: said(user) }, sealed));
        },
      ],
      [
        4,
        async () => {
          const visit = any(3);
          const [host, guest] = [users[visit]!, users[visit + 1]!];
          const sealed = [host, guest].map((user, index) => ({ of: holderOf(user), fields: [['data.by_host', 'data.by_guest'][index]!] }));
          const data = { host, guest, by_host: said(host), by_guest: said(guest) };
          await writeRow(1, await append(environment, `visit-${environment}-visit_${visit}`, 'visit.made', data, sealed));
        },
      ],
      [
        1,
        async () => {
          const user = anyone();
          if (erased.some((each) => each.user === user)) return;
          await append(environment, `user-${environment}-${user}`, ERASED, { holders: [holderOf(user)] });
          erased.push({ user, state: 'recorded' });
        },
      ],
      [1, () => destroy()],
      [2, async () => late.splice(any(late.length + 1), 1)[0]?.()],
      [
        3,
        async () => {
          const batch = await next(folded, 1 + any(6));
          if (batch.length === 0) return;
          for (const fold of folds) await fold.apply(batch);
          folded = batch.at(-1)!.position;
        },
      ],
    ];
    const destroy = async (): Promise<void> => {
      for (const each of erased.filter(({ state }) => state === 'recorded')) {
        await keys.destroy(purposeOf(holderOf(each.user), environment));
        each.state = 'destroyed';
      }
    };
    const all = steps.flatMap(([weight, step]) => Array.from({ length: weight }, () => step));
    for (let count = 0; count < 60; count++) await all[any(all.length)]!();
    if (erased.length === 0)
      await append(environment, `user-${environment}-user_a`, ERASED, { holders: [holderOf('user_a')] }).then(() =>
        erased.push({ user: 'user_a', state: 'recorded' }),
      );
    await destroy();
    // Nothing is written any more by who had the keys.
    for (const write of late.splice(0)) await write();
    for (const { user } of erased) await append(environment, `erasure-${environment}-${user}`, ERASURE_FINISHED, { holders: [holderOf(user)] });
    for (let batch = await next(folded, 7); batch.length > 0; batch = await next((folded = batch.at(-1)!.position), 7))
      for (const fold of folds) await fold.apply(batch);

    for (const [index, view] of views.entries()) {
      const rebuilt = rows.readModels.table({ ...tableOf(view), name: `${tableOf(view).name}.rebuilt` });
      const fold = new ViewFold(view, rebuilt);
      let from = begun;
      for (let batch = await next(from, 100); batch.length > 0; batch = await next((from = batch.at(-1)!.position), 100)) await fold.apply(batch);
      const served = await textsOf(tables[index] as unknown as Table<never>);
      expect([seed, served]).toEqual([seed, await textsOf(rebuilt as unknown as Table<never>)]);
      for (const { user } of erased) expect([seed, JSON.stringify(served)]).toEqual([seed, expect.not.stringContaining(`of ${user}"`)]);
    }
  }

  it('leaves rows that are those of a rebuild, whoever wrote what when, and nothing in them of who was erased', async () => {
    const seed = seedOf('erasure');
    for (let history = 0; history < histories; history++) await expectOneHistory(seed + history);
  });

  it.each([
    ['folded', false],
    ['written with its event', true],
  ])(
    'forgets what a process that still had the keys decided on, as soon as its event is met, and not with the end of the keys alone (%s)',
    async (_, isWrittenWithIt) => {
      const environment = `environment_${newUlid(clock.now())}`;
      const name = `again${String(isWrittenWithIt)}`;
      const [stream, visit] = [`person-${environment}-user_b`, `visit-${environment}-visit_1`];
      const begun = await events.head();
      const of = holderOf('user_b');
      const folds = [people(name), visits(name)].map((view) => {
        const table = rows.readModels.table(tableOf(view as unknown as AnyView));
        return { table, fold: new ViewFold(view as unknown as AnyView, table) };
      });
      const tell = async (): Promise<readonly RecordedEvent[]> => [
        await append(environment, stream, 'person.told', { name: 'Bea' }, [{ of, fields: ['data.name'] }]),
        await append(environment, visit, 'visit.made', { host: 'user_b', guest: 'user_c', by_host: 'Bea', by_guest: 'Cem' }, [
          { of, fields: ['data.by_host'] },
        ]),
      ];
      const texts = async (): Promise<string> => JSON.stringify(await Promise.all(folds.map(({ table }) => textsOf(table as unknown as Table<never>))));
      const follow = async (from: Position): Promise<Position> => {
        const batch = await next(from, 100);
        for (const { fold } of folds) await fold.apply(batch);
        return batch.at(-1)!.position;
      };

      await tell();
      const shown = await follow(begun);
      expect(await texts()).toContain('"name":"Bea"');
      const before = await Promise.all([folds[0]!.table.get(environment, 'user_b'), folds[1]!.table.get(environment, 'visit_1')]);
      await append(environment, `user-${environment}-user_b`, ERASED, { holders: [of] });
      const forgotten = await follow(shown);
      expect(await texts()).not.toContain('Bea');

      const told = await tell();
      if (isWrittenWithIt)
        for (const [index, { table }] of folds.entries()) {
          const { id, text } = before[index]!;
          await table.write([{ environment, id, position: told[index]!.position, revision: told[index]!.version, text }]);
          expect(await texts()).toContain('Bea');
        }
      await follow(forgotten);
      expect(await texts()).not.toContain('Bea');
      expect(await texts()).toContain('Cem');
    },
  );
}
