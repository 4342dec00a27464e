import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setImmediate as answered } from 'node:timers/promises';
import { Binary, type ClientSession, Long, MongoClient, MongoServerError, ObjectId, Timestamp, type Document } from 'mongodb';
import { WireMessages, replyTo, type WireCommand } from './wire.ts';

const SET = 'small';
const NOT_PRIMARY = { ok: 0, code: 10_107, codeName: 'NotWritablePrimary', errmsg: 'not primary' } as const;
const BEYOND = {
  ok: 0,
  code: 72,
  codeName: 'InvalidOptions',
  errmsg: 'readConcern afterClusterTime value must not be greater than the current clusterTime',
} as const;
const UNHEARD = { code: 64, codeName: 'WriteConcernFailed', errmsg: 'waiting for replication timed out' } as const;
const WRITES: ReadonlySet<string> = new Set(['insert', 'update', 'delete', 'findAndModify', 'create', 'createIndexes', 'drop', 'dropIndexes']);
/** What is between driver and member only. */
const OF_THE_WAY = ['$db', '$clusterTime', '$readPreference', 'lsid', 'txnNumber', 'readConcern'];
/** Of the database in which a member behind keeps what it knows. */
const BEHIND = '_behind';

/** A command as a member was asked it. */
export interface SeenCommand {
  readonly name: string;
  readonly collection: string;
  /** Hexadecimal; null: in no session. */
  readonly session: string | null;
  readonly level: string | null;
  /** What it must know at least; null: nothing was said. */
  readonly after: number | null;
}

interface Held {
  readonly isMeant: (command: SeenCommand) => boolean;
  readonly passed: Promise<void>;
}

/**
 * Two members of a replica set, of which one is primary, in front of a server that knows nothing of such: sessions, times and elections are what they are in
 * MongoDB, as far as a driver can see. After an election the new primary may know less of what is committed than the one before told: then it answers
 * old rows, unless it is asked for what came after.
 */
export class SmallReplicaSet {
  /** What was asked, without what drivers ask by themselves. */
  readonly commands: SeenCommand[] = [];
  /** It answers old rows whatever it is asked for, so often. */
  forgetful = 0;
  /** Nobody can be reached. */
  isAway = false;
  /** What is written reaches no majority in time. */
  isAlone = false;
  /** Commands that were not answered yet. */
  underWay = 0;
  private readonly held = new Set<Held>();
  private readonly members: Member[] = [];
  private readonly cursors = new Map<string, string>();
  private primary = 0;
  private elections = 1;
  /** The number of the last write; what every member knows of it is told in time. */
  private time = 1;
  /** What a member behind does not know yet. Null: it knows all. */
  private unknown: { readonly since: number; readonly writes: (() => Promise<unknown>)[] } | null = null;
  private isPrimaryBehind = false;
  /** What a primary that is behind was told by drivers of the time. */
  private heard = 0;
  private writing: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly server: MongoClient,
    private readonly database: string,
    private readonly inSession: { readonly session?: ClientSession },
  ) {}

  /** @param address of the server that stores, with a database of its own */
  static async over(address: string): Promise<SmallReplicaSet> {
    const server = await new MongoClient(address).connect();
    const { logicalSessionTimeoutMinutes } = await server.db('admin').command({ isMaster: 1 });
    // A server that knows sessions goes on with a cursor in the one that it began in.
    const set = new SmallReplicaSet(server, server.options.dbName, logicalSessionTimeoutMinutes == null ? {} : { session: server.startSession() });
    for (let number = 0; number < 2; number++) set.members.push(await Member.listening((command) => set.answer(number, command)));
    return set;
  }

  get url(): string {
    return `mongodb://${this.members.map(({ host }) => host).join(',')}/${this.database}?replicaSet=${SET}`;
  }

  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
    await this.server.close();
  }

  /** What was asked without saying how much has to be known, although something was answered before: drivers have no place for it in the others. */
  get careless(): readonly SeenCommand[] {
    return this.commands.filter(({ name, after }) => after === null && !/^(listCollections|getMore)$/.test(name));
  }

  /** What is written from here on is committed, and the other member does not know that. */
  fallBehind(): void {
    this.unknown ??= { since: this.time, writes: [] };
  }

  /** As with members that were put back from a backup: none of them has heard of the time that drivers know. */
  putBack(): void {
    this.time = 1;
  }

  /** The other member is primary from now on, with what it knows. */
  stepDown(): void {
    this.isPrimaryBehind = this.unknown !== null;
    this.heard = 0;
    this.primary = 1 - this.primary;
    this.elections++;
  }

  /** The primary knows everything. */
  async catchUp(): Promise<void> {
    const { unknown } = this;
    this.unknown = null;
    this.isPrimaryBehind = false;
    for (const write of unknown?.writes ?? []) await write();
  }

  /** What is asked from here on passes at once; what is held back stays so. */
  passNew(): void {
    this.held.clear();
  }

  /** Holds commands back, as a network or a server that is overloaded would. What it answers lets them through, and resolves when they were carried out. */
  hold(isMeant: (command: SeenCommand) => boolean): () => Promise<void> {
    let pass!: () => void;
    const held: Held = { isMeant, passed: new Promise<void>((resolve) => (pass = resolve)) };
    this.held.add(held);
    return async () => {
      this.held.delete(held);
      pass();
      await answered();
      await this.writing;
    };
  }

  /** @throws Error where the connection ends instead */
  private async answer(member: number, { document }: WireCommand): Promise<Document> {
    if (this.isAway) throw new Error('Nobody is there.');
    const name = Object.keys(document)[0]!;
    if (/^(hello|isMaster|ismaster)$/.test(name)) return this.told(this.hello(member));
    if (/^(ping|endSessions|killCursors)$/.test(name)) return this.told({ ok: 1 });
    const seen = seenOf(name, document);
    this.commands.push(seen);
    this.underWay++;
    try {
      for (const { isMeant, passed } of this.held) if (isMeant(seen)) await passed;
      // Of what it knew before, nothing is told.
      if (member !== this.primary) return NOT_PRIMARY;
      this.heard = Math.max(this.heard, timeIn(document));
      if (seen.after !== null && seen.after > this.clusterTime) return BEYOND;
      return await (WRITES.has(name) ? this.write(document) : this.read(document, seen));
    } finally {
      this.underWay--;
    }
  }

  /** One after the other, as in an oplog. */
  private write(document: Document): Promise<Document> {
    const written = this.writing.then(async () => {
      if (this.isPrimaryBehind) await this.catchUp();
      const answer = await this.ask(document, this.database);
      this.time++;
      const again = (): Promise<unknown> => this.ask(document, this.database + BEHIND);
      if (this.unknown === null) await again();
      else this.unknown.writes.push(again);
      return this.told(this.isAlone ? { ...answer, writeConcernError: UNHEARD } : answer);
    });
    this.writing = written;
    return written;
  }

  private async read(document: Document, { after }: SeenCommand): Promise<Document> {
    const cursor = document['getMore'] === undefined ? undefined : this.cursors.get(String(document['getMore']));
    const isForgotten = this.forgetful > 0 && this.forgetful--;
    if (this.isPrimaryBehind && !isForgotten && after !== null && after > this.unknown!.since) await this.catchUp();
    const isOld = isForgotten ? this.unknown !== null : this.isPrimaryBehind;
    const database = cursor ?? (isOld ? this.database + BEHIND : this.database);
    const answer = await this.ask(document, database);
    const found = answer['cursor'] as { readonly id: Long; ns: string } | undefined;
    if (found !== undefined) {
      this.cursors.set(found.id.toString(), database);
      // A driver asks on in the database that it is told.
      found.ns = found.ns.replace(`${this.database}${BEHIND}.`, `${this.database}.`);
    }
    return this.told(answer, isOld ? this.unknown!.since : this.time);
  }

  private async ask(document: Document, database: string): Promise<Document> {
    const command = Object.fromEntries(Object.entries(document).filter(([name]) => !OF_THE_WAY.includes(name)));
    try {
      return await this.server.db(database).command(command, { promoteValues: false, promoteLongs: false, ...this.inSession });
    } catch (error) {
      if (error instanceof MongoServerError) return { ...error.errorResponse };
      throw error;
    }
  }

  private get clusterTime(): number {
    return this.isPrimaryBehind ? Math.max(this.unknown!.since, this.heard) : this.time;
  }

  private told(answer: Document, time = this.isPrimaryBehind ? this.unknown!.since : this.time): Document {
    const signature = { hash: new Binary(Buffer.alloc(20)), keyId: Long.ZERO };
    return { ...answer, operationTime: timestamp(time), $clusterTime: { clusterTime: timestamp(this.clusterTime), signature } };
  }

  private hello(member: number): Document {
    const isPrimary = member === this.primary;
    const hosts = this.members.map(({ host }) => host);
    return {
      helloOk: true,
      isWritablePrimary: isPrimary,
      ismaster: isPrimary,
      secondary: !isPrimary,
      hosts,
      setName: SET,
      setVersion: 1,
      me: hosts[member],
      primary: hosts[this.primary],
      ...(isPrimary && { electionId: new ObjectId(String(this.elections).padStart(24, '0')) }),
      maxBsonObjectSize: 16 * 2 ** 20,
      maxMessageSizeBytes: 48_000_000,
      maxWriteBatchSize: 100_000,
      localTime: new Date(),
      logicalSessionTimeoutMinutes: 30,
      minWireVersion: 0,
      maxWireVersion: 17,
      readOnly: false,
      ok: 1,
    };
  }
}

/** Where drivers reach one of them. */
class Member {
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly server: Server) {}

  static async listening(answer: (command: WireCommand) => Promise<Document>): Promise<Member> {
    const member: Member = new Member(createServer((socket) => member.serve(socket, answer)));
    member.server.listen(0, '127.0.0.1');
    await once(member.server, 'listening');
    return member;
  }

  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private serve(socket: Socket, answer: (command: WireCommand) => Promise<Document>): void {
    const messages = new WireMessages();
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      for (const command of messages.add(bytes))
        answer(command).then(
          (document) => socket.write(replyTo(command, document)),
          () => socket.destroy(),
        );
    });
  }
}

function seenOf(name: string, document: Document): SeenCommand {
  const { lsid, readConcern } = document as { readonly lsid?: { readonly id: Binary }; readonly readConcern?: Document };
  const after = readConcern?.['afterClusterTime'] as Timestamp | undefined;
  return {
    name,
    collection: String(document[name === 'getMore' ? 'collection' : name]),
    session: lsid === undefined ? null : lsid.id.toString('hex'),
    level: (readConcern?.['level'] as string | undefined) ?? null,
    after: after === undefined ? null : after.getLowBits(),
  };
}

function timeIn({ $clusterTime }: Document): number {
  return ($clusterTime as { readonly clusterTime: Timestamp } | undefined)?.clusterTime.getLowBits() ?? 0;
}

/** All in one second, and counted in it. */
function timestamp(number: number): Timestamp {
  return new Timestamp({ t: 1_700_000_000, i: number });
}
