import { setTimeout as pause } from 'node:timers/promises';
import {
  type Collection,
  type Db,
  type Document,
  type MongoClient,
  type MongoClientOptions,
  MongoError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import { within } from '../deadline.ts';
import { unavailable } from '../domain-error.ts';
import type { Log } from '../log.ts';
import { StartRefused } from '../start-refused.ts';
import { causeOf } from '../unreachable.ts';
import { mongodbClient, requireMongodbUrl } from './mongodb-client.ts';

/** Whoever asks learns within this time that nobody answers: early enough for a request to be refused within 5 s. */
const ANSWER_MS = 4_000;
/** Finding a server, and waiting for a connection to it, end before the answer is due. */
const SELECTION_MS = 3_000;
const QUESTION_MS = 3_500;
/**
 * A connection outlives a question that nobody waits for any more. Otherwise a server that is slow under load would lose all connections, and would have to
 * welcome new ones beside the questions that it still works on: it would not recover from that.
 */
const SOCKET_MS = 15_000;
const CONNECT_MS = 10_000;
/** The driver looks at a server this often. After it lost one, it looks all the time. */
const LOOK_MS = 5_000;
/** Where it has not told of a look for so long, it no longer looks. */
const LOOKED_MS = CONNECT_MS + 2 * LOOK_MS;
const PATIENCE_MS = 60_000;
const RETRY_MS = 1_000;
const MONGODB = 'MONGODB_URL';
const AUTHENTICATION_FAILED = 18;
/** What a server says to whom it knows no longer, or who may not do what was asked. */
const REFUSED_CODES: ReadonlySet<unknown> = new Set([13, AUTHENTICATION_FAILED]);
/** That somebody is refused is said this often. */
const REFUSAL_SAID_MS = 60_000;
const DUPLICATE_KEY = 11_000;
/** What a server says that is starting, stopping, overloaded or no longer primary, or that did not hear of its majority in time. */
const PASSING_CODES: ReadonlySet<unknown> = new Set([
  6, 7, 43, 50, 63, 64, 79, 89, 91, 100, 133, 134, 150, 175, 189, 237, 262, 365, 371, 402, 433, 449, 9_001, 10_058, 10_107, 11_600, 11_601, 11_602, 13_388,
  13_435, 13_436,
]);
/** How servers mark what will pass, whichever code they have for it. */
const PASSING_LABELS = ['RetryableError', 'RetryableWriteError', 'SystemOverloadedError'];
/** What the driver says when no server answers, or a connection was lost. */
const PASSING_NAMES = /Network|ServerSelection|Timeout|PoolCleared|PoolClosed|NotConnected|TopologyClosed|ClientClosed|ServerClosed|ExpiredSession/;

const OWN_OPTIONS: MongoClientOptions = {
  appName: 'gatehouse',
  writeConcern: { w: 'majority', journal: true, wtimeoutMS: QUESTION_MS },
  readConcern: { level: 'majority' },
  readPreference: 'primary',
  serverSelectionTimeoutMS: SELECTION_MS,
  connectTimeoutMS: CONNECT_MS,
  waitQueueTimeoutMS: SELECTION_MS,
  socketTimeoutMS: SOCKET_MS,
  heartbeatFrequencyMS: LOOK_MS,
};

/** Given with a question that may go through many documents: the server ends it when nobody waits any more. */
export const WHILE_WAITED_FOR = { maxTimeMS: QUESTION_MS } as const;

interface Options {
  /** A connection string; its path names the database. */
  readonly url: string;
  /** The database where the path names none. */
  readonly database?: string;
  /** Which setting names it: MONGODB_URL where nothing else is said. */
  readonly setting?: string;
  readonly log: Log;
  /** How long the start waits for it: a cluster starts in any order. */
  readonly patience?: number;
  /** After how long without a look at a server the driver is replaced. */
  readonly looked?: number;
}

/**
 * The database that all processes of a cluster share. What is acknowledged is on disk at a majority of its members; reads go to the primary, and see what a
 * majority has: whatever was acknowledged to anybody is seen by everybody.
 */
export class MongodbStorage {
  private readonly collections = new Map<string, Collection>();
  private refusalSaidAt = -Infinity;

  private constructor(
    private readonly options: Options,
    private driver: Driver,
  ) {}

  /** @throws StartRefused when the connection string is none, or nobody answers there */
  static async connect(options: Options): Promise<MongodbStorage> {
    const { url, log, setting = MONGODB, patience = PATIENCE_MS } = options;
    requireMongodbUrl(url, setting);
    const driver = new Driver(options);
    const { client, database } = driver;
    for (const deadline = Date.now() + patience; ; await pause(RETRY_MS)) {
      try {
        await client.connect();
        await database.command({ ping: 1 });
        return new MongodbStorage(options, driver);
      } catch (error) {
        if (isOf(error, AUTHENTICATION_FAILED)) throw await refused(client, `MongoDB refuses the name and password in ${setting}: ${usersOf(client)}`);
        const cause = causeOf(error);
        // The look-up of mongodb+srv:// fails with an error of Node.
        if (cause === '' && !isPassing(error)) throw error;
        if (Date.now() > deadline) throw await refused(client, `MongoDB has not answered for ${patience / 1_000} s at the hosts of ${setting}${cause}.`);
        log.warn(`MongoDB does not answer yet, and is asked again${cause}.`, { error });
      }
    }
  }

  /** What the database is called there. */
  get name(): string {
    return this.driver.database.databaseName;
  }

  /** To be asked for each time: another driver may have taken the place of the first. */
  collection<Stored extends Document>(name: string): Collection<Stored> {
    const collection = this.collections.get(name) ?? this.driver.database.collection(name);
    this.collections.set(name, collection);
    return collection as unknown as Collection<Stored>;
  }

  async collectionNames(): Promise<readonly string[]> {
    const collections = await this.answer(() => this.driver.database.listCollections({}, { nameOnly: true, ...WHILE_WAITED_FOR }).toArray());
    return collections.map(({ name }) => name);
  }

  async drop(collection: string): Promise<void> {
    await this.answer(() => this.driver.database.dropCollection(collection));
  }

  /**
   * What the database answers. What it is asked has to bear being asked again, since nobody knows what became of a question without an answer.
   * @throws DomainError `service_unavailable` within 5 s, when nobody answers
   */
  async answer<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    const { driver } = this;
    try {
      return await within(ask(), ANSWER_MS, () => unavailable('The database did not answer in time.'));
    } catch (error) {
      if (error instanceof MongoServerSelectionError && driver === this.driver) this.replaceBlind();
      throw this.translated(error);
    }
  }

  /** The same for answers that come in parts. */
  async *answers<Answer>(parts: AsyncIterable<Answer>): AsyncGenerator<Answer> {
    try {
      yield* parts;
    } catch (error) {
      throw this.translated(error);
    }
  }

  close(): Promise<void> {
    return this.driver.client.close();
  }

  /** An error of the driver that is no mistake of ours, as everybody else calls it. */
  private translated(error: unknown): unknown {
    if (isPassing(error)) return withCause(unavailable('The database does not answer.'), error);
    if (!(error instanceof MongoServerError) || !REFUSED_CODES.has(error.code)) return error;
    const { log, setting = MONGODB } = this.options;
    if (performance.now() - this.refusalSaidAt > REFUSAL_SAID_MS) {
      this.refusalSaidAt = performance.now();
      log.error(`MongoDB does not let the user in ${setting} do what was asked of it. What a user has to be allowed stands in docs/operations.md.`, { error });
    }
    return withCause(unavailable('The database refuses this server.'), error);
  }

  /** Driver 7.9 was seen to stop looking for a server that went away under load: whatever it was asked was refused from then on. */
  private replaceBlind(): void {
    const { log, looked = LOOKED_MS } = this.options;
    const { client } = this.driver;
    if (!this.driver.isBlind(looked)) return;
    log.warn('The driver of MongoDB no longer looks for its server, and is replaced.');
    this.driver = new Driver(this.options);
    this.collections.clear();
    client.close().catch((error: unknown) => log.warn('A driver of MongoDB that was replaced did not close.', { error }));
  }
}

/** A driver, and when it looked at each server last. */
class Driver {
  readonly client: MongoClient;
  readonly database: Db;
  private readonly looks = new Map<string, number>();

  constructor({ url, database, setting = MONGODB }: Pick<Options, 'url' | 'database' | 'setting'>) {
    this.client = mongodbClient(url, setting, OWN_OPTIONS);
    this.database = this.client.db(namesDatabase(url) ? undefined : database);
    this.client.on('serverOpening', ({ address }) => this.looks.set(address, performance.now()));
    this.client.on('serverHeartbeatSucceeded', ({ connectionId }) => this.looks.set(connectionId, performance.now()));
    this.client.on('serverHeartbeatFailed', ({ connectionId }) => this.looks.set(connectionId, performance.now()));
    this.client.on('serverClosed', ({ address }) => this.looks.delete(address));
  }

  isBlind(looked: number): boolean {
    return [...this.looks.values()].some((at) => performance.now() - at > looked);
  }
}

/** Another was faster to store something under the same id. */
export function isDuplicate(error: unknown): boolean {
  return isOf(error, DUPLICATE_KEY);
}

/** Users are usually made in `admin`, while a path that names a database has them looked for there. */
function usersOf({ options }: MongoClient): string {
  return `the user is looked for in the database ${options.credentials?.source ?? 'admin'}, and authSource names another one.`;
}

async function refused(client: MongoClient, sentence: string): Promise<StartRefused> {
  await client.close();
  return new StartRefused(sentence);
}

/** The driver reads a path that is missing as the database `test`. */
function namesDatabase(url: string): boolean {
  return /^[^:]+:\/\/[^/?]+\/[^?]/.test(url);
}

function isOf(error: unknown, code: number): boolean {
  return error instanceof MongoServerError && error.code === code;
}

function isPassing(error: unknown): boolean {
  if (!(error instanceof MongoError)) return false;
  // What a bulk write met on its way looks like an answer of the server.
  if (error instanceof MongoServerError && error.errorResponse instanceof Error) return isPassing(error.errorResponse);
  if (PASSING_LABELS.some((label) => error.hasErrorLabel(label))) return true;
  return error instanceof MongoServerSelectionError || PASSING_NAMES.test(error.name) || PASSING_CODES.has(error.code);
}

function withCause(error: Error, cause: unknown): Error {
  return Object.assign(error, { cause });
}
