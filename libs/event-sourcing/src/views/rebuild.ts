import { setTimeout as pause } from 'node:timers/promises';
import type { DumpedRow, ReadModels, Table } from '#libs/read-models/src/read-models';
import { START, type EventStore, type Position } from '../log/event-store.ts';
import { ViewFold } from './view-fold.ts';
import { skippedOf } from './view-skips.ts';
import { tableOf, type View, type ViewRetention } from './view.ts';

/** How long the served rows may take to catch up with an event; what they have not seen by then, they lack. */
const REBUILD_TIMEOUT_MS = 10_000;
const POLL = 20;
const REBUILT = '.rebuilt';
/** Sorts after every position. */
const END: Position = '\uffff';

interface RowAddress {
  readonly environment: string;
  readonly id: string;
}

type Dump = AsyncIterable<DumpedRow>;

/** A row that is not what the log says. */
export interface Difference extends RowAddress {
  readonly view: string;
  /** As JSON text; null where there is none. */
  readonly stored: string | null;
  readonly rebuilt: string | null;
}

interface Needs {
  readonly events: EventStore;
  readonly readModels: ReadModels;
}

/** Folds the whole log once more, beside the rows that serve, and yields every row that differs. Requests and writes go on meanwhile. */
export async function* differences(views: readonly View<never>[], { events, readModels }: Needs): AsyncIterable<Difference> {
  const rebuilds = await Promise.all(
    (views as unknown as readonly View<unknown>[]).map(async (view) => {
      const definition = tableOf(view);
      const rebuilt = readModels.table({ ...definition, name: rebuiltNameOf(definition.name) });
      await rebuilt.clear();
      return { view, served: readModels.table(definition), rebuilt, fold: new ViewFold(view, rebuilt, await skippedOf(events, view.name)) };
    }),
  );
  const log = new Refolding(
    events,
    rebuilds.map(({ fold }) => fold),
  );
  await log.foldUpTo(await events.head());
  for (const { view, served, rebuilt } of rebuilds)
    for (const row of (await suspectsOf(served, rebuilt)).values()) {
      const difference = await differenceOf(row, view, { served, rebuilt }, log);
      if (difference !== null) yield { view: view.name, ...row, ...difference };
    }
  for (const { rebuilt } of rebuilds) await readModels.drop(rebuilt.definition.name);
}

/** Where `differences` folds what a table holds. What it leaves behind when it is broken off stays there until it is called again. */
export function rebuiltNameOf(table: string): string {
  return table + REBUILT;
}

export function isRebuilt(table: string): boolean {
  return table.endsWith(REBUILT);
}

/** The log on its second way through the views: goes exactly as far as it is told. */
class Refolding {
  private position: Position = START;

  constructor(
    private readonly events: EventStore,
    private readonly folds: readonly ViewFold<unknown>[],
  ) {}

  get reached(): Position {
    return this.position;
  }

  async foldUpTo(wanted: Position): Promise<void> {
    const head = await this.events.head();
    const end = wanted < head ? wanted : head;
    if (this.position >= end) return;
    const reading = new AbortController();
    for await (const batch of this.events.subscribe(this.position, reading.signal)) {
      const events = batch.filter(({ position }) => position <= end);
      for (const fold of this.folds) if (events.some((event) => fold.concerns(event))) await fold.apply(events);
      this.position = events.at(-1)!.position;
      if (this.position >= end) break;
    }
    reading.abort();
  }
}

/**
 * Looks again at a row that differed, since it may have been written meanwhile. The refolded row is brought to the position of the stored one, where the two
 * have to be the same; where it is further already, the stored one is given time to catch up.
 */
async function differenceOf(
  { environment, id }: RowAddress,
  { retention }: View<unknown>,
  { served, rebuilt }: { readonly served: Table<unknown>; readonly rebuilt: Table<unknown> },
  log: Refolding,
): Promise<Pick<Difference, 'stored' | 'rebuilt'> | null> {
  for (const deadline = Date.now() + REBUILD_TIMEOUT_MS; ; await pause(POLL)) {
    const seen = await served.checkpoint();
    const stored = await served.get(environment, id);
    await log.foldUpTo(stored?.position ?? END);
    const made = await rebuilt.get(environment, id);
    const texts = { stored: stored?.text ?? null, made: made?.text ?? null };
    if (canonical(texts.stored) === canonical(texts.made) || isTaken(texts, retention) || (await isOver(environment, texts, { served, retention })))
      return null;
    if ((made?.position ?? log.reached) <= seen || Date.now() > deadline) return { stored: stored?.text ?? null, rebuilt: made?.text ?? null };
  }
}

interface Texts {
  readonly stored: string | null;
  readonly made: string | null;
}

/** Whether it went with what it belonged to. */
async function isOver(
  environment: string,
  { stored, made }: Texts,
  { served, retention }: { readonly served: Table<unknown>; readonly retention: ViewRetention | undefined },
): Promise<boolean> {
  if (stored !== null || made === null || retention?.owner === undefined) return false;
  const owner = await served.get(environment, retention.owner.idOf(made));
  return owner !== null && retention.owner.isOver(owner.text, made, Date.now());
}

/** Whether retention made the difference. */
function isTaken({ stored, made }: Texts, retention: ViewRetention | undefined): boolean {
  if (retention === undefined || made === null) return false;
  return stored === null ? retention.mayBeGone(made, Date.now()) : canonical(stored) === canonical(retention.shortened(made));
}

/** What differs at first sight. */
async function suspectsOf(served: Table<unknown>, rebuilt: Table<unknown>): Promise<Map<string, RowAddress>> {
  const suspects = new Map<string, RowAddress>();
  for await (const { environment, id, texts } of joined(served.dump(), rebuilt.dump()))
    if (canonical(texts[0]) !== canonical(texts[1])) suspects.set(`${environment} ${id}`, { environment, id });
  return suspects;
}

/** Goes through two dumps, which have one order, side by side. A row that only one of them has is null in the other. */
async function* joined(one: Dump, other: Dump): AsyncIterable<RowAddress & { readonly texts: readonly [string | null, string | null] }> {
  const [left, right] = [one[Symbol.asyncIterator](), other[Symbol.asyncIterator]()];
  let [a, b] = await Promise.all([left.next(), right.next()]);
  while (!a.done || !b.done) {
    const order = a.done ? 1 : b.done ? -1 : compare(a.value, b.value);
    const { environment, id } = (order <= 0 ? a : b).value as RowAddress;
    yield { environment, id, texts: [order <= 0 ? (a.value as DumpedRow).text : null, order >= 0 ? (b.value as DumpedRow).text : null] };
    [a, b] = await Promise.all([order <= 0 ? left.next() : a, order >= 0 ? right.next() : b]);
  }
}

function compare(one: RowAddress, other: RowAddress): number {
  const [a, b] = one.environment === other.environment ? [one.id, other.id] : [one.environment, other.environment];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The same for values that are the same, whatever the order of their keys. */
function canonical(text: string | null | undefined): string | null {
  return text == null ? null : JSON.stringify(sorted(JSON.parse(text)));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}
