import { setTimeout as pause } from 'node:timers/promises';
import {
  type ClientSession,
  type ClusterTime,
  type Collection,
  type Db,
  type Document,
  type MongoClient,
  type MongoClientOptions,
  MongoError,
  MongoInvalidArgumentError,
  MongoServerError,
  MongoServerSelectionError,
  type Timestamp,
  type TopologyDescription,
} from 'mongodb';
import { within } from '../deadline.ts';
import { unavailable } from '../domain-error.ts';
import type { Log } from '../log.ts';
import { StartRefused } from '../start-refused.ts';
import { causeOf } from '../unreachable.ts';
import { mongodbClient, namesDatabase, requireMongodbUrl } from './mongodb-client.ts';

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
const ENGINE_TIMEOUT_MS = 60_000;
const RETRY_MS = 1_000;
const MONGODB = 'MONGODB_URL';
const UNAUTHORIZED = 13;
const AUTHENTICATION_FAILED = 18;
/** What a server says to whom it knows no longer, or who may not do what was asked. */
const REFUSED_CODES: ReadonlySet<unknown> = new Set([UNAUTHORIZED, AUTHENTICATION_FAILED]);
/** That somebody is refused is said this often. */
const REFUSAL_SAID_MS = 60_000;
const DUPLICATE_KEY = 11_000;
const BAD_VALUE = 2;
/** A document of more than 16 MiB, as it came or as an update would leave it. */
const TOO_LARGE_CODES: ReadonlySet<unknown> = new Set([10_334, 17_419, 17_420]);
/** What a server says that is starting, stopping, overloaded or no longer primary, or that did not hear of its majority in time. */
const PASSING_CODES: ReadonlySet<unknown> = new Set([
  6, 7, 43, 50, 63, 64, 79, 89, 91, 100, 133, 134, 150, 175, 189, 237, 262, 365, 371, 402, 433, 449, 9_001, 10_058, 10_107, 11_600, 11_601, 11_602, 13_388,
  13_435, 13_436,
]);
/** What a set says of a time that it never had, or cannot have signed: it is another one than before, or was put back. */
const UNHEARD_OF = { invalid: 72, unsigned: 211 } as const;
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
/**
 * Connections to each server, where the connection string does not say. A process has rarely more than twenty questions under way at once, and each connection
 * costs a server a megabyte and a thread; what comes beyond waits for its turn.
 */
const CONNECTIONS = 32;

/** Given with a question that may go through many documents, or wait for them: the server ends it when nobody waits any more. */
export const WHILE_WAITED_FOR = { maxTimeMS: QUESTION_MS } as const;

/** What every question is asked with: the session that keeps its answer from being older than what was answered before. Empty where there are none. */
export type InSession = { readonly session?: ClientSession };

/** The members that answer within sessions. */
const CAUSAL_SERVERS: ReadonlySet<string> = new Set(['RSPrimary', 'RSSecondary', 'Mongos', 'LoadBalancer']);

interface Options {
  /** A connection string; its path names the database. */
  readonly url: string;
  /** The database where the path names none. */
  readonly database?: string;
  /** Which setting names it: MONGODB_URL where nothing else is said. */
  readonly setting?: string;
  /** A collection that every process may change: whether it may is tried at the start. */
  readonly changes?: string;
  readonly log: Log;
  /** How long the start waits for it: a cluster starts in any order. */
  readonly patience?: number;
  /** After how long without a look at a server the driver is replaced. */
  readonly looked?: number;
}

/**
 * The database that all processes of a cluster share. What is acknowledged is on disk at a majority of its members. Reads go to the primary and see what it
 * knows a majority to have, which after an election may be less than was acknowledged: so nothing that is answered here is older than what was answered here
 * before, rows or acknowledgements alike. What another process was told may be newer for a moment; whoever counts on it waits for a position of the log.
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
    const { url, log, setting = MONGODB, patience = ENGINE_TIMEOUT_MS, changes } = options;
    requireMongodbUrl(url, setting);
    const driver = new Driver(options);
    const { client, database } = driver;
    for (const deadline = Date.now() + patience; ; await pause(RETRY_MS)) {
      try {
        await client.connect();
        await database.command({ ping: 1 });
        // It finds nothing to change.
        if (changes !== undefined) await database.collection<{ _id: string }>(changes).updateOne({ _id: 'start' }, { $set: { at: null } }, WHILE_WAITED_FOR);
        return new MongodbStorage(options, driver);
      } catch (error) {
        if (isOf(error, AUTHENTICATION_FAILED)) throw await refused(client, `MongoDB refuses the name and password in ${setting}: ${usersOf(client)}`);
        if (isOf(error, UNAUTHORIZED))
          throw await refused(
            client,
            `MongoDB does not let the user in ${setting} change anything in the database ${database.databaseName}: it needs the role readWrite there, or what docs/operations.md says of the gateway's.`,
          );
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
    const collections = await this.answer((inSession) =>
      this.driver.database.listCollections({}, { nameOnly: true, ...inSession, ...WHILE_WAITED_FOR }).toArray(),
    );
    return collections.map(({ name }) => name);
  }

  async drop(collection: string): Promise<void> {
    await this.answer((inSession) => this.driver.database.dropCollection(collection, inSession));
  }

  /**
   * What the database answers. What it is asked has to bear being asked again, since nobody knows what became of a question without an answer.
   * @throws DomainError `service_unavailable` within 5 s, when nobody answers
   */
  async answer<Answer>(ask: (inSession: InSession) => Promise<Answer>): Promise<Answer> {
    const { driver } = this;
    try {
      return await within(this.askInSession(driver, ask), ANSWER_MS, () => unavailable('The database did not answer in time.'));
    } catch (error) {
      if (error instanceof MongoServerSelectionError && driver === this.driver) this.replaceBlind();
      throw this.failureOf(driver, error);
    }
  }

  /** The same for answers that come in parts. */
  async *answers<Answer>(ask: (inSession: InSession) => AsyncIterable<Answer>): AsyncGenerator<Answer> {
    const { driver } = this;
    const session = driver.session();
    try {
      yield* ask(session === null ? {} : { session });
      if (session !== null) driver.known.learn(session);
    } catch (error) {
      throw this.failureOf(driver, error);
    } finally {
      await session?.endSession();
    }
  }

  close(): Promise<void> {
    return this.driver.client.close();
  }

  /** Each question has a session of its own, since one session takes one question at a time; they all begin where the answers before have come to. */
  private async askInSession<Answer>(driver: Driver, ask: (inSession: InSession) => Promise<Answer>): Promise<Answer> {
    const session = driver.session();
    if (session === null) return ask({});
    try {
      const answer = await ask({ session });
      driver.known.learn(session);
      return answer;
    } catch (error) {
      // What a majority did not hear of may never be: nobody waits for that.
      if (!isPassing(error)) driver.known.learn(session);
      throw error;
    } finally {
      await session.endSession();
    }
  }

  private failureOf(driver: Driver, error: unknown): unknown {
    if (!isOfAnotherTime(error)) return this.translated(error);
    // What was known of the time holds for nothing any more, and the driver remembers it too.
    if (driver === this.driver)
      this.replace(
        new Driver(this.options),
        'MongoDB was put back to an earlier state, or is another one: a process that worked meanwhile has to be started again.',
      );
    return withCause(unavailable('The database does not answer.'), error);
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
    const { looked = LOOKED_MS } = this.options;
    if (!this.driver.isBlind(looked)) return;
    this.replace(new Driver(this.options, this.driver.known), 'The driver of MongoDB no longer looks for its server, and is replaced.');
  }

  private replace(driver: Driver, why: string): void {
    const { log } = this.options;
    const { client } = this.driver;
    log.warn(why);
    this.driver = driver;
    this.collections.clear();
    client.close().catch((error: unknown) => log.warn('A driver of MongoDB that was replaced did not close.', { error }));
  }
}

/** Up to when the answers of this process know what was stored, by the clock of the replica set. Outlives a driver. */
class KnownTime {
  /** Once a server was seen to be a member of a set, as it is before the first question is sent. A server that stands alone has no time, and nobody who could be behind it. */
  isKept = false;
  private operation: Timestamp | null = null;
  private cluster: ClusterTime | null = null;

  learn({ operationTime, clusterTime }: ClientSession): void {
    if (operationTime && (this.operation === null || operationTime.greaterThan(this.operation))) this.operation = operationTime;
    if (clusterTime && (this.cluster === null || clusterTime.clusterTime.greaterThan(this.cluster.clusterTime))) this.cluster = clusterTime;
  }

  tell(session: ClientSession): void {
    if (this.operation !== null) session.advanceOperationTime(this.operation);
    // A driver that is new has not heard of it, and a server refuses to wait for a time that it never heard of.
    if (this.cluster !== null) session.advanceClusterTime(this.cluster);
  }
}

/** A driver, and when it looked at each server last. */
class Driver {
  readonly client: MongoClient;
  readonly database: Db;
  private readonly looks = new Map<string, number>();

  constructor(
    { url, database, setting = MONGODB }: Pick<Options, 'url' | 'database' | 'setting'>,
    readonly known = new KnownTime(),
  ) {
    this.client = mongodbClient(url, setting, { ...OWN_OPTIONS, ...connectionsOf(url) });
    this.database = this.client.db(namesDatabase(url) ? undefined : database);
    this.client.on('serverOpening', ({ address }) => this.looks.set(address, performance.now()));
    this.client.on('serverHeartbeatSucceeded', ({ connectionId }) => this.looks.set(connectionId, performance.now()));
    this.client.on('serverHeartbeatFailed', ({ connectionId }) => this.looks.set(connectionId, performance.now()));
    this.client.on('serverClosed', ({ address }) => this.looks.delete(address));
    this.client.on('topologyDescriptionChanged', ({ newDescription }) => (this.known.isKept ||= isCausal(newDescription)));
  }

  /** Null where the server stands alone. */
  session(): ClientSession | null {
    if (!this.known.isKept) return null;
    const session = this.client.startSession({ causalConsistency: true });
    this.known.tell(session);
    return session;
  }

  isBlind(looked: number): boolean {
    return [...this.looks.values()].some((at) => performance.now() - at > looked);
  }
}

function isCausal({ servers }: TopologyDescription): boolean {
  return [...servers.values()].some(({ type }) => CAUSAL_SERVERS.has(type));
}

/** Another was faster to store something under the same id. */
export function isDuplicate(error: unknown): boolean {
  return isOf(error, DUPLICATE_KEY);
}

/** A question named an index that is not there. */
export function isIndexMissing(error: unknown): boolean {
  return isOf(error, BAD_VALUE) && /\bhint\b/.test((error as MongoServerError).message);
}

/** A document is larger than MongoDB takes: mostly the driver says so, with an error of its own in a bulk and with one of JavaScript's otherwise. */
export function isTooLarge(error: unknown): boolean {
  if (error instanceof MongoServerError) return TOO_LARGE_CODES.has(error.code);
  if (error instanceof MongoInvalidArgumentError) return /larger than the maximum size/.test(error.message);
  // By its name: Node's own code throws it.
  return (error as Partial<Error> | null)?.name === 'RangeError';
}

/** Users are usually made in `admin`, while a path that names a database has them looked for there. */
function usersOf({ options }: MongoClient): string {
  return `the user is looked for in the database ${options.credentials?.source ?? 'admin'}, and authSource names another one.`;
}

async function refused(client: MongoClient, sentence: string): Promise<StartRefused> {
  await client.close();
  return new StartRefused(sentence);
}

/** The driver takes what it is given in code for more than what is in the connection string. */
function connectionsOf(url: string): MongoClientOptions {
  return /[?&]maxPoolSize=/i.test(url) ? {} : { maxPoolSize: CONNECTIONS };
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

/** Of a bulk write too, as `isPassing`. */
function isOfAnotherTime(error: unknown): boolean {
  if (!(error instanceof MongoServerError)) return false;
  if (error.errorResponse instanceof Error) return isOfAnotherTime(error.errorResponse);
  return error.code === UNHEARD_OF.unsigned || (error.code === UNHEARD_OF.invalid && error.message.includes('afterClusterTime'));
}

function withCause(error: Error, cause: unknown): Error {
  return Object.assign(error, { cause });
}
