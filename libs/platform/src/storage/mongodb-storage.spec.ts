import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { BSON, MongoBulkWriteError, MongoServerError } from 'mongodb';
import { givenMongodb } from '#libs/testing/src/engines/given';
import { mayTake } from '#libs/testing/src/until';
import { DomainError } from '../domain-error.ts';
import { PinoLog } from '../pino.log.ts';
import { StartRefused } from '../start-refused.ts';
import { MongodbStorage } from './mongodb-storage.ts';

const url = await givenMongodb();
const log = new PinoLog({ level: 'silent', readable: false });

describe('a connection to MongoDB', () => {
  it.each(['mongodb://', 'mongodb://user:hu:sh@host@other/', 'postgres://host', 'mongodb://user:hu/sh@host'])(
    'is refused for %s, and nothing is quoted of it',
    async (wrong) => {
      const refusal = await MongodbStorage.connect({ url: wrong, log, patience: 0 }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(StartRefused);
      expect((refusal as StartRefused).message).not.toMatch(/hu|sh/);
    },
  );

  it('is given up at the start, where nobody answers', async () => {
    const refusal = MongodbStorage.connect({ url: 'mongodb://user:password@127.0.0.1:1/', log, patience: 100 });
    await expect(refusal).rejects.toThrow(
      new StartRefused('MongoDB has not answered for 0.1 s at the hosts of MONGODB_URL: nobody listens there (ECONNREFUSED).'),
    );
  }, 10_000);
});

(url === null ? describe.skip : describe)('a database on the way to which something happens', () => {
  let way: Way;
  let storage: MongodbStorage;

  beforeEach(async () => {
    way = await Way.to(url!);
    storage = await MongodbStorage.connect({ url: way.url, log });
  });
  afterEach(async () => {
    way.hold(false);
    await storage.close();
    await way.close();
  });

  const ask = (): Promise<unknown> => storage.answer(() => storage.collection('things').findOne({ name: 'thing' }));
  const store = (): Promise<unknown> => storage.answer(() => storage.collection('things').insertOne({ name: 'thing' }));

  async function expectRefused(): Promise<void> {
    const start = performance.now();
    for (const refusal of await Promise.all([ask, store, () => storage.collectionNames()].map((each) => each().catch((error: unknown) => error)))) {
      expect(refusal).toBeInstanceOf(DomainError);
      expect(refusal).toMatchObject({ kind: 'unavailable', code: 'service_unavailable', details: { retryAfter: 1 } });
    }
    expect(performance.now() - start).toBeLessThan(mayTake(5_000));
  }

  it('is tried at the start by a change that finds nothing: who may only read is told so at once, and nothing is written', async () => {
    await storage.close();
    way.refuses = 'update';
    const reading = await MongodbStorage.connect({ url: way.url, log, patience: 10_000 });
    await reading.close();
    const refusal = await MongodbStorage.connect({ url: way.url, changes: 'short_lived', log, patience: 10_000 }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StartRefused);
    expect((refusal as Error).message).toMatch(
      /^MongoDB does not let the user in MONGODB_URL change anything in the database test_\w+: it needs the role readWrite/,
    );
    way.refuses = null;
    storage = await MongodbStorage.connect({ url: way.url, changes: 'short_lived', log });
    expect(await storage.answer(() => storage.collection('short_lived').findOne())).toBeNull();
  });

  it('is asked again at the start until it answers', async () => {
    await way.close();
    const starting = MongodbStorage.connect({ url: way.url, log });
    await pause(1_500);
    await way.open();
    await (await starting).close();
  });

  it('is unavailable while nobody answers there, and available again at once', async () => {
    await store();
    await way.close();
    await expectRefused();
    await expectRefused();
    await way.open();
    await expect(ask()).resolves.toMatchObject({ name: 'thing' });
    await store();
  });

  it('is unavailable while it does not answer, and available again at once', async () => {
    await store();
    way.hold(true);
    await expectRefused();
    await expectRefused();
    way.hold(false);
    await expect(ask()).resolves.toMatchObject({ name: 'thing' });
    await store();
  });

  it('keeps its connections when it answers after nobody waits any more', async () => {
    await Promise.all([ask(), store()]);
    way.hold(true);
    await expectRefused();
    await pause(3_000);
    way.hold(false);
    await Promise.all([ask(), store()]);
    expect(way.ended).toBe(0);
  }, 15_000);

  it('is asked by another driver, where one no longer looks for it', async () => {
    await storage.close();
    storage = await MongodbStorage.connect({ url: way.url, log, looked: 0 });
    await store();
    const before = storage.collection('things');
    await way.close();
    await expectRefused();
    expect(storage.collection('things')).not.toBe(before);
    await way.open();
    await expect(ask()).resolves.toMatchObject({ name: 'thing' });
    await store();
  });

  describe('and which answers', () => {
    const lines: string[] = [];
    const wrote = { isOk: () => false } as never;
    beforeEach(async () => {
      lines.length = 0;
      await storage.close();
      const telling = new PinoLog({ level: 'error', readable: false, destination: { write: (line) => void lines.push(line) } });
      storage = await MongodbStorage.connect({ url: way.url, log: telling });
    });

    /** What becomes of an answer of the server, as the driver throws it. */
    const told = async (answer: object): Promise<unknown> => {
      const errors = [new MongoServerError(answer), new MongoBulkWriteError(new MongoServerError(answer), wrote)];
      const failing = async function* (error: Error) {
        yield 1;
        throw error;
      };
      const asked = errors.flatMap((error) => [
        () => storage.answer(() => Promise.reject(error)),
        async () => {
          for await (const part of storage.answers(() => failing(error))) expect(part).toBe(1);
        },
      ]);
      const kinds = await Promise.all(asked.map((ask) => ask().catch((error: unknown) => (error instanceof DomainError ? error.kind : 'a bug'))));
      expect(new Set(kinds).size).toBe(1);
      return kinds[0];
    };

    it.each([175, 237, 365, 371, 402, 433, 449, 10_107])('with code %d, is unavailable', async (code) => {
      expect(await told({ code, errmsg: 'passing' })).toBe('unavailable');
    });

    it.each(['RetryableError', 'RetryableWriteError', 'SystemOverloadedError'])('with the label %s, is unavailable, whatever the code', async (label) => {
      expect(await told({ code: 99_999, errmsg: 'passing', errorLabels: [label] })).toBe('unavailable');
    });

    it.each([9, 2, 11_000, 99_999])('with code %d, tells of a mistake of ours', async (code) => {
      expect(await told({ code, errmsg: 'wrong', errorLabels: ['NoWritesPerformed'] })).toBe('a bug');
      expect(lines).toEqual([]);
    });

    it.each([13, 18])('with code %d, does not let us: what to allow is said, and not each time', async (code) => {
      expect(await told({ code, errmsg: 'not allowed' })).toBe('unavailable');
      expect(lines.map((line) => (JSON.parse(line) as { readonly message: string }).message)).toEqual([
        'MongoDB does not let the user in MONGODB_URL do what was asked of it. What a user has to be allowed stands in docs/operations.md.',
      ]);
    });
  });

  it('is unavailable to whoever asks after the end', async () => {
    await storage.close();
    await expectRefused();
  });
});

/** A way to a server on which nothing may come through. */
class Way {
  /** How many connections have come to an end. */
  ended = 0;
  /** A command that the user has no right to: it is answered on the way. */
  refuses: string | null = null;
  private readonly sockets = new Set<Socket>();
  private isHeld = false;
  private port = 0;

  private constructor(
    private readonly server: Server,
    private readonly target: URL,
  ) {}

  static async to(address: string): Promise<Way> {
    const way: Way = new Way(
      createServer((socket) => way.lead(socket)),
      new URL(address),
    );
    await way.open();
    return way;
  }

  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${this.port}`;
    url.searchParams.set('directConnection', 'true');
    return url.href;
  }

  async open(): Promise<void> {
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
  }

  /** Connections end, and there are no new ones. */
  async close(): Promise<void> {
    if (!this.server.listening) return;
    const closed = once(this.server, 'close');
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  /** Connections stay and come about, and nothing passes. */
  hold(isHeld: boolean): void {
    this.isHeld = isHeld;
    for (const socket of this.sockets) this.pass(socket);
  }

  private lead(near: Socket): void {
    const far = connect(Number(this.target.port), this.target.hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(one);
      one.on('data', (bytes: Buffer) => {
        const refusal = one === near ? this.refusalOf(bytes) : null;
        if (refusal === null) other.write(bytes);
        else near.write(refusal);
      });
      one.on('error', () => {});
      one.on('close', () => {
        this.sockets.delete(one);
        if (one === near) this.ended++;
        other.destroy();
      });
      this.pass(one);
    }
  }

  /** In the protocol's own words: a message of commands has the code 2013, and a document behind four bytes of flags and one of its kind. */
  private refusalOf(bytes: Buffer): Buffer | null {
    if (this.refuses === null || bytes.length < 21 || bytes.readInt32LE(12) !== 2013) return null;
    const [command] = Object.keys(BSON.deserialize(bytes.subarray(21, 21 + bytes.readInt32LE(21))));
    if (command !== this.refuses) return null;
    const document = BSON.serialize({ ok: 0, code: 13, codeName: 'Unauthorized', errmsg: 'not authorized on test to execute command' });
    const head = Buffer.alloc(21);
    for (const [at, value] of [head.length + document.length, 1, bytes.readInt32LE(4), 2013, 0].entries()) head.writeInt32LE(value, 4 * at);
    return Buffer.concat([head, document]);
  }

  private pass(socket: Socket): void {
    if (this.isHeld) socket.pause();
    else socket.resume();
  }
}
