import { type Filter, MongoServerError } from 'mongodb';
import { StartRefused } from '../start-refused.ts';
import { type InSession, isDuplicate, type MongodbStorage } from './mongodb-storage.ts';

/** Which log it is: the installation, and the random id that it was begun with. */
export interface LogIdentity {
  readonly installation: string;
  readonly id: string;
}

interface StoredDocument {
  readonly _id: string;
}

/** What belongs to one log, and notes which. */
export interface Belonging {
  readonly storage: MongodbStorage;
  /** Begins sentences. */
  readonly title: string;
  /** Where its note lies. */
  readonly collection: string;
  readonly _id: string;
  /** What is there as soon as any of it is used. */
  readonly used: { readonly collection: string; readonly filter: Filter<StoredDocument> };
  /** Ends the refusal. */
  readonly wayOut: string;
}

const UNAUTHORIZED = 13;

/**
 * Has each of them note the log, where it notes none and is not used yet. Of several processes that are first, one notes. Where one of them is refused, none notes anything.
 * @throws StartRefused that says of each which belongs to another log, or does not say to which
 */
export async function requireSameLog(log: LogIdentity, belongings: readonly Belonging[]): Promise<void> {
  const unnoted: Belonging[] = [];
  await requireEach(belongings, async (belonging) => {
    const noted = await noteIn(belonging);
    if (noted !== null) return refusalOf(belonging, noted, log);
    const isUsed = await isUsedNow(belonging);
    // Another process may have noted it and used it since it was looked for.
    const since = isUsed ? await noteIn(belonging) : null;
    if (!isUsed) unnoted.push(belonging);
    return isUsed ? refusalOf(belonging, since, log) : null;
  });
  await requireEach(unnoted, async (belonging) => refusalOf(belonging, await noteFirst(belonging, log), log));
}

async function requireEach(belongings: readonly Belonging[], check: (belonging: Belonging) => Promise<string | null>): Promise<void> {
  const refusals = await Promise.all(belongings.map(check));
  const told = refusals.filter((refusal) => refusal !== null);
  if (told.length > 0) throw new StartRefused(told.join(' '));
}

function refusalOf({ title, wayOut }: Belonging, noted: LogIdentity | null, log: LogIdentity): string | null {
  if (noted?.id === log.id) return null;
  const what = noted === null ? 'holds something and does not say of which log' : `belongs to ${titleOf(noted)}`;
  return `${title} ${what}, and EVENTSTORE_URL with INSTALLATION names ${titleOf(log)}. ${wayOut}`;
}

function titleOf({ installation, id }: LogIdentity): string {
  return `the log ${id} of the installation ${installation}`;
}

function noteIn(belonging: Belonging): Promise<LogIdentity | null> {
  const { storage, collection, _id } = belonging;
  return asked(belonging, (inSession) => storage.collection<LogIdentity & StoredDocument>(collection).findOne({ _id }, inSession));
}

async function isUsedNow(belonging: Belonging): Promise<boolean> {
  const { storage, used } = belonging;
  return (await asked(belonging, (inSession) => storage.collection<StoredDocument>(used.collection).findOne(used.filter, inSession))) !== null;
}

/** Answers what is noted in the end: of two, the first stays. */
async function noteFirst(belonging: Belonging, { installation, id }: LogIdentity): Promise<LogIdentity | null> {
  const { storage, collection, _id } = belonging;
  try {
    await asked(belonging, (inSession) => storage.collection<LogIdentity & StoredDocument>(collection).insertOne({ _id, installation, id }, inSession));
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
  return noteIn(belonging);
}

async function asked<Answer>({ storage, title, collection, used }: Belonging, ask: (inSession: InSession) => Promise<Answer>): Promise<Answer> {
  try {
    return await storage.answer(ask);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!(cause instanceof MongoServerError) || cause.code !== UNAUTHORIZED) throw error;
    const rights = `to find and insert in ${collection}, and to find in ${used.collection}`;
    throw new StartRefused(`${title} cannot note its log: the user has to be allowed ${rights}. docs/operations.md says how.`);
  }
}
