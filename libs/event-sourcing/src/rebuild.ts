import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import { START, type EventStore } from './event-store.ts';
import { skippedOf } from './projector.ts';
import { ViewFold } from './view-fold.ts';
import { tableOf, type View } from './view.ts';

/** Rows that are compared again before they count as different: what was written meanwhile is no difference. */
const ATTEMPTS = 5;

interface RowAddress {
  readonly environment: string;
  readonly id: string;
}

interface DumpedRow extends RowAddress {
  readonly text: string | null;
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
      const rebuilt = readModels.table({ ...definition, name: `${definition.name}.rebuilt` });
      await rebuilt.clear();
      return { view, served: readModels.table(definition), rebuilt, fold: new ViewFold(view, rebuilt, await skippedOf(events, view.name)) };
    }),
  );
  let position = START;
  const catchUp = async (): Promise<void> => {
    const head = await events.head();
    const reading = new AbortController();
    if (position < head)
      for await (const batch of events.subscribe(position, reading.signal)) {
        for (const { fold } of rebuilds) if (batch.some((event) => fold.concerns(event))) await fold.apply(batch);
        position = batch.at(-1)!.position;
        if (position >= head) break;
      }
    reading.abort();
  };

  await catchUp();
  for (const { view, served, rebuilt } of rebuilds) {
    const suspects = await suspectsOf(served, rebuilt);
    for (let attempt = 1; suspects.size > 0; attempt++) {
      await catchUp();
      for (const [key, { environment, id }] of suspects) {
        const [stored, made] = await Promise.all([textOf(served, environment, id), textOf(rebuilt, environment, id)]);
        if (canonical(stored) === canonical(made)) suspects.delete(key);
        else if (attempt === ATTEMPTS) {
          suspects.delete(key);
          yield { view: view.name, environment, id, stored, rebuilt: made };
        }
      }
    }
    await rebuilt.clear();
  }
  for (const { view } of rebuilds) await readModels.dropOthers(`${tableOf(view).name}.rebuilt`, []);
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

async function textOf(table: Table<unknown>, environment: string, id: string): Promise<string | null> {
  return (await table.get(environment, id))?.text ?? null;
}

/** The same for values that are the same, whatever the order of their keys. */
function canonical(text: string | null): string | null {
  return text === null ? null : JSON.stringify(sorted(JSON.parse(text)));
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
