import { START, type EventStore, type Position, type RecordedEvent } from '../log/event-store.ts';
import { UnreadableRecord } from '../log/lazy-record.ts';
import { environmentOf } from '../log/naming.ts';
import { KeyMissing, type FoundKey, type KeyPurpose, type KeyStore } from './key-store.ts';
import { sealedIn } from './former-sealing.ts';
import { purposeOf } from './holders.ts';
import type { MarkedFieldsOf } from './marked-fields.ts';
import { originPurpose } from './origins.ts';
import { replacedAt } from './sealed-paths.ts';
import { isSealed, isSealedWith } from './vault.ts';

/** Made before the first record. */
const ALWAYS = ['naming', 'passwords'] as const;

/** A record that holds what no key opens. */
interface KeyProblem {
  readonly position: Position;
  readonly stream: string;
  readonly detail: string;
}

/** The key that a record needs beside those of what is sealed in it as facts declare; null for none. */
export type NeededKeyOf = (record: RecordedEvent) => KeyPurpose | null;

/** What is looked for. */
interface Needed {
  readonly keys: KeyStore;
  readonly marked: MarkedFieldsOf;
  readonly alsoNeeded: NeededKeyOf;
}

/**
 * Looks, for everything sealed in the log as it lies on disk, whether its key is there, or its tombstone; yields the first record of each key that is not, up to the end of
 * the log as it is at the call. What keys seal elsewhere (answers, excerpts) has no need of them to be whole.
 */
export async function* keyProblems(
  stored: EventStore,
  needed: Needed,
  onRecords: (records: readonly RecordedEvent[]) => Promise<void> = async () => {},
): AsyncIterable<KeyProblem> {
  const head = await stored.head();
  if (head === START) return;
  const check = new KeyCheck(needed);
  const reading = new AbortController();
  for await (const batch of stored.subscribe(START, reading.signal)) {
    yield* await check.problemsIn(batch);
    await onRecords(batch);
    if (batch.at(-1)!.position >= head) return;
  }
}

/** The same for whoever reads the log from its beginning anyway. */
export class KeyCheck {
  private readonly told = new Set<KeyPurpose>();

  constructor(private readonly needed: Needed) {}

  /** In the next records. One that cannot be read seals nothing. */
  async problemsIn(records: readonly RecordedEvent[]): Promise<readonly KeyProblem[]> {
    const { told } = this;
    const { keys, marked, alsoNeeded } = this.needed;
    if (records.length === 0) return [];
    const valuesOf = (record: RecordedEvent): readonly SealedValue[] => {
      const purpose = alsoNeeded(record);
      const values = sealedValues(record, marked);
      return purpose === null ? values : [...values, { purpose, text: null }];
    };
    const sealed = records.map((record) => ({ record, values: record instanceof UnreadableRecord ? [] : valuesOf(record) }));
    const purposes = new Set<KeyPurpose>([...ALWAYS, ...sealed.flatMap(({ values }) => values.map(({ purpose }) => purpose))]);
    const found = await answersOf(
      keys,
      [...purposes].filter((purpose) => !told.has(purpose)),
    );
    const problems: KeyProblem[] = [];
    for (const { record, values } of sealed) {
      for (const { purpose, text } of [...ALWAYS.map((each) => ({ purpose: each, text: null })), ...values]) {
        const problem = told.has(purpose) ? null : problemOf(purpose, found.get(purpose), text);
        if (problem === null) continue;
        told.add(purpose);
        problems.push({ position: record.position, stream: record.stream, detail: `cannot be read: ${problem}` });
      }
    }
    return problems;
  }
}

interface SealedValue {
  readonly purpose: KeyPurpose;
  /** Null where only the key matters. */
  readonly text: string | null;
}

function sealedValues(record: RecordedEvent, marked: MarkedFieldsOf): readonly SealedValue[] {
  const { type, stream, data, subject } = record;
  const values: SealedValue[] = [];
  const look = (paths: readonly string[], purpose: KeyPurpose): void =>
    void replacedAt({ data, subject }, paths, (value) => {
      if (isSealed(value)) values.push({ purpose, text: value });
      return value;
    });
  for (const { of, fields } of sealedIn(record)) look(fields, purposeOf(of, environmentOf(stream)));
  if (isSealed(record.meta.origin)) values.push({ purpose: originPurpose(stream, record.meta.at), text: record.meta.origin });
  const { secret } = marked(type);
  if (secret.length > 0)
    look(
      secret.flatMap((path) => [`data.${path}`, `subject.${path}`]),
      `environment.${environmentOf(stream)}`,
    );
  return values;
}

/** What the store says of each: a damaged key says nothing of the others. */
async function answersOf(keys: KeyStore, purposes: readonly KeyPurpose[]): Promise<ReadonlyMap<KeyPurpose, FoundKey | Error>> {
  try {
    return await keys.findMany(purposes);
  } catch {
    return new Map(await Promise.all(purposes.map(async (purpose) => [purpose, await keys.find(purpose).catch((error: Error) => error)] as const)));
  }
}

function problemOf(purpose: KeyPurpose, answer: FoundKey | Error | undefined, text: string | null): string | null {
  if (answer === undefined) return new KeyMissing(purpose).message;
  if (answer instanceof Error) return answer.message;
  if (answer === 'erased' || text === null || isSealedWith(answer, text)) return null;
  return new KeyMissing(purpose, 'is another one than this log was sealed with').message;
}
