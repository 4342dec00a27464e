import type { CommandStartedEvent, Document } from 'mongodb';
import type { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';

/** What MongoDB merges; for more it sorts. */
const MERGED_VALUES = 200;
const RANGES = ['$gt', '$gte', '$lt', '$lte'];
const BY_ID: Keys = { _id: 1 };
type Keys = Readonly<Record<string, number>>;

/** A question as far as an index has to serve it. */
interface Question {
  readonly collection: string;
  readonly filter: Document;
  readonly sort?: Keys;
  readonly hint?: Keys;
}

/**
 * What the driver asks, and whether MongoDB could answer each question from an index, going through hardly more than it answers: the server of the specs has
 * no such indexes, so nothing else tells.
 */
export class MongodbQuestions {
  /** Those that were asked since they were taken. */
  private asked: Question[] = [];
  /** By collection; each by its text, since replicas make the same ones. */
  private readonly indexes = new Map<string, Map<string, Keys>>();

  /** The connection string that tells of what is asked. */
  static of(url: string): string {
    return `${url}${url.includes('?') ? '&' : '?'}monitorCommands=true`;
  }

  /** Of a storage that was connected by that string. */
  watch(storage: MongodbStorage): void {
    storage.collection('any').db.client.on('commandStarted', (event) => this.hear(event));
  }

  take(): readonly Question[] {
    return this.asked.splice(0);
  }

  /** The ones among them that are answered from no index, as text; empty where all is well. */
  unserved(questions: readonly Question[]): readonly string[] {
    return questions.filter((question) => !this.isServed(question)).map((question) => JSON.stringify(question));
  }

  private hear({ commandName, command }: CommandStartedEvent): void {
    const collection = command[commandName] as string;
    if (commandName === 'createIndexes') {
      const known = this.indexes.get(collection) ?? new Map<string, Keys>();
      for (const { key } of command['indexes'] as readonly { readonly key: unknown }[]) known.set(JSON.stringify(plain(key)), plain(key));
      this.indexes.set(collection, known);
    }
    const add = (asked: Document, filter: unknown): void => {
      this.asked.push({
        collection,
        filter: plain(filter),
        sort: asked['sort'] && plain(asked['sort']),
        hint: asked['hint'] && plain(asked['hint']),
      });
    };
    if (commandName === 'find') add(command, command['filter']);
    if (commandName === 'findAndModify') add(command, command['query']);
    for (const part of [...((command['updates'] ?? []) as Document[]), ...((command['deletes'] ?? []) as Document[])]) add(part, part['q']);
    if (['aggregate', 'count', 'distinct'].includes(commandName)) this.asked.push({ collection, filter: {} });
  }

  private isServed({ collection, filter, sort = {}, hint }: Question): boolean {
    const all = [BY_ID, ...(this.indexes.get(collection)?.values() ?? [])];
    const predicates = predicatesOf(filter);
    // A few documents by their ids: whatever else is asked of them is looked at in these.
    if (hint === undefined && isPoints(predicates.get('_id')) && Object.keys(sort).length === 0) return true;
    const isConsidered = (index: Keys): boolean => {
      const [first] = Object.keys(index);
      return hint === undefined ? predicates.has(first!) || first! in sort : JSON.stringify(index) === JSON.stringify(hint);
    };
    const usable = all.filter(isConsidered);
    // Where several could serve, MongoDB chooses, and not always well.
    return usable.length === 1 && serves(usable[0]!, predicates, sort);
  }
}

/** Points first, then what orders the answer, and no bound on anything behind that. */
function serves(index: Keys, predicates: ReadonlyMap<string, Document>, sort: Keys): boolean {
  const fields = Object.keys(index);
  let points = 0;
  let scans = 1;
  for (; points < fields.length && isPoints(predicates.get(fields[points]!)); points++) scans *= valuesOf(predicates.get(fields[points]!)!);
  const bounded = fields.slice(0, points + 1);
  const rest = fields.slice(points);
  const isBounded = [...predicates.keys()].every((field) => bounded.includes(field));
  const sorted = Object.keys(sort);
  const isSorted = sorted.every((field, place) => rest[place] === field) && new Set(Object.values(sort)).size <= 1;
  return isBounded && predicates.has(fields[0]!) && isSorted && (sorted.length === 0 || scans <= MERGED_VALUES);
}

/** By field, every condition on it. */
function predicatesOf(filter: Document): ReadonlyMap<string, Document> {
  const predicates = new Map<string, Document>();
  for (const [field, condition] of Object.entries(filter)) {
    const parts: readonly (readonly [string, Document])[] =
      field === '$and'
        ? (condition as Document[]).flatMap((part) => [...predicatesOf(part)])
        : [[field, typeof condition === 'object' && condition !== null ? (condition as Document) : { $eq: condition as unknown }]];
    for (const [name, operators] of parts) predicates.set(name, { ...predicates.get(name), ...operators });
  }
  for (const operators of predicates.values())
    for (const operator of Object.keys(operators)) if (!['$eq', '$in', ...RANGES].includes(operator)) predicates.set(operator, {});
  return predicates;
}

function isPoints(condition: Document | undefined): boolean {
  return condition !== undefined && ('$eq' in condition || '$in' in condition);
}

function valuesOf(condition: Document): number {
  return '$in' in condition ? (condition['$in'] as readonly unknown[]).length : 1;
}

/** Maps of the driver as objects, dates as texts. */
function plain(value: unknown): Document {
  const entries = value instanceof Map ? Object.fromEntries(value) : value;
  return JSON.parse(JSON.stringify(entries)) as Document;
}
