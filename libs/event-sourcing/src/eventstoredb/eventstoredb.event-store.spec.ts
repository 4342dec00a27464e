import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EventStoreDBClient } from '@eventstore/db-client';
import { ServerCredentials } from '@grpc/grpc-js';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { StartRefused } from '#libs/platform/src/start-refused';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { givenAuthority } from '#libs/testing/src/certificates';
import type { Engine } from '#libs/testing/src/engines/engine';
import { eventstore, startEventstore, startEventstoreServer } from '#libs/testing/src/engines/eventstore';
import { Access } from '#libs/testing/src/engines/eventstore-server/access';
import { Members, REFUSALS } from '#libs/testing/src/engines/eventstore-server/members';
import { serverOf } from '#libs/testing/src/engines/eventstore-server/server';
import { Streams } from '#libs/testing/src/engines/eventstore-server/streams';
import { eventstoreCommand } from '#libs/testing/src/engines/eventstore-command';
import { freePort } from '#libs/testing/src/engines/free-port';
import { givenEngine, givenEventstore } from '#libs/testing/src/engines/given';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { ROOT } from '#libs/testing/src/process';
import { until } from '#libs/testing/src/until';
import { eventStoreContract, newEvent, take } from '../log/event-store.contract.ts';
import { type Appended, type NewEvent, type RecordedEvent, START, WrongVersion } from '../log/event-store.ts';
import { EventstoredbEventStore } from './eventstoredb.event-store.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';

const printed: string[] = [];
const log = new PinoLog({ level: 'debug', readable: false, destination: { write: (line) => void printed.push(line) } });
const opened: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** A log of its own, empty: of EventStoreDB itself where `EVENTSTORE_COMMAND` names it. */
async function givenServer(options: Parameters<typeof startEventstore>[1] = {}): Promise<Engine> {
  return givenStarted((directory) => startEventstore(directory, options));
}

/** For what EventStoreDB itself cannot be made to do. */
async function givenSmallServer(...flags: string[]): Promise<Engine> {
  return givenStarted((directory) => startEventstoreServer(directory, { flags }));
}

async function givenStarted(start: (directory: WatchedDirectory) => Promise<Engine>): Promise<Engine> {
  const directory = WatchedDirectory.create('eventstore');
  opened.push(() => directory.remove());
  const engine = await start(directory);
  opened.push(() => engine.close());
  return engine;
}

async function givenStore(url: string, installation = 'gatehouse'): Promise<EventstoredbEventStore> {
  const store = await EventstoredbEventStore.connect({ url, installation, log, patience: 10_000 });
  opened.push(() => store.close());
  return store;
}

const hostOf = ({ address }: Engine): string => new URL(address).host;

/** The same in this process, for what needs an empty log and no server that fails: a process for each test costs more than most of the tests. */
async function givenServerHere(
  access?: Access,
  credentials = ServerCredentials.createInsecure(),
): Promise<{ readonly url: string; readonly members: Members; readonly streams: Streams }> {
  const directory = WatchedDirectory.create('eventstore');
  opened.push(() => directory.remove());
  const storage = await LmdbStorage.open({ directory: directory.path, minFree: 0 });
  opened.push(() => storage.close());
  const port = await freePort();
  const members = new Members({ self: `127.0.0.1:${port}`, ...(access && { access }) });
  const streams = new Streams(new LmdbEventStore(storage, Infinity), members);
  const server = serverOf(members, streams);
  opened.push(() => server.forceShutdown());
  await new Promise<void>((resolve, reject) => server.bindAsync(`127.0.0.1:${port}`, credentials, (error) => (error === null ? resolve() : reject(error))));
  return { url: eventstore.addressAt(port), members, streams };
}

/** A real one takes seconds to start: the tests share it, as installations do. */
const real = eventstoreCommand() === null ? null : await givenEngine(eventstore);
let installations = 0;

eventStoreContract('EventStoreDB', async () => {
  const url = real?.address ?? (await givenServerHere()).url;
  const installation = `installation-${++installations}`;
  return async () => {
    const store = await EventstoredbEventStore.connect({ url, installation, log });
    return { store, close: () => store.close() };
  };
});

/** The server of `EVENTSTORE_URL`, or a container of the real one, where there is either. */
const shared = await givenEventstore();

describe('an EventStoreDB that others write to as well', () => {
  it('keeps the promises of the log', async () => {
    const [store, other] = [await givenStore(shared!), await givenStore(shared!)];
    const stream = `thing-${newUlid(Date.now())}`;
    const before = await store.head();
    expect(await store.read(stream)).toEqual([]);
    expect(await store.last(stream)).toBeNull();
    const events = [newEvent({ text: 'Zoë 日本 😀 \u0000' }), newEvent()];
    const first = await store.append(stream, 0, events);
    expect(first.version).toBe(2);
    expect(first.position > before).toBe(true);
    expect((await other.head()) >= first.position).toBe(true);
    expect(await other.append(stream, 0, events)).toEqual(first);
    await expect(other.append(stream, 0, [newEvent()])).rejects.toThrow(WrongVersion);
    await expect(other.append(stream, 1, [events[0]!])).rejects.toThrow(WrongVersion);
    const third = await other.append(stream, 2, [newEvent()]);
    expect(third.position > first.position).toBe(true);
    expect(await store.append(stream, 0, events)).toEqual(first);
    const records = await store.read(stream);
    expect(records.map(({ version }) => version)).toEqual([1, 2, 3]);
    expect(records[0]).toMatchObject(events[0]!);
    expect(records.map(({ position }) => position).slice(1)).toEqual([first.position, third.position]);
    expect(await store.last(stream)).toEqual(records[2]);
    expect(await store.read(stream, 3)).toEqual([records[2]]);
    const followed: RecordedEvent[] = [];
    for await (const batch of store.subscribe(before, AbortSignal.timeout(10_000))) {
      followed.push(...batch.filter((record) => record.stream === stream));
      if (followed.length === 3) break;
    }
    expect(followed).toEqual(records);
  }, 30_000);
});

describe('a server with users', () => {
  const userOf = (name: string, ...groups: string[]) => ({ name, password: `password of ${name}`, groups });
  const admin = userOf('admin', '$admins');
  const users = [admin, userOf('service', 'gatehouse'), userOf('reader', 'gatehouse-readers'), userOf('other', 'others')];
  let url: string;
  let streams: Streams;
  const as = (name: string): string => url.replace('//', `//${name}:${encodeURIComponent(`password of ${name}`)}@`);
  const warnings = (): readonly string[] =>
    printed
      .map((line) => JSON.parse(line) as { readonly level: string; readonly message: string })
      .flatMap(({ level, message }) => (level === 'warn' ? message : []));
  const OPEN = 'EventStoreDB lets whoever comes without a password append to the log: set its access lists as docs/operations.md says.';
  const setRights = (name = 'admin') =>
    promisify(execFile)(process.execPath, ['docker/eventstore-rights.mjs'], { env: { EVENTSTORE_URL: as(name) }, cwd: ROOT });
  const folder = WatchedDirectory.create('eventstore-users');
  let credentials: ServerCredentials;
  beforeAll(async () => {
    const authority = await givenAuthority('Authority');
    const { cert, key } = await authority.certify('localhost', ['localhost']);
    writeFileSync(join(folder.path, 'ca'), authority.ca);
    credentials = ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }]);
  });
  afterAll(() => folder.remove());
  const given = async (letsInAnybody: boolean): Promise<void> => {
    const server = await givenServerHere(new Access(users, letsInAnybody), credentials);
    ({ streams } = server);
    // Without TLS the driver sends no password.
    url = `esdb://localhost:${new URL(server.url).port}?tlsCAFile=${encodeURIComponent(join(folder.path, 'ca'))}`;
    printed.length = 0;
  };

  it('is told to be open where it takes appends without a password; nothing is appended', async () => {
    await given(true);
    await givenStore(as('admin'));
    expect(warnings()).toEqual([OPEN]);
    expect(await streams.log.head()).toBe(START);
    // Who comes without a password knows that it takes those.
    printed.length = 0;
    await streams.log.append('$$$all', 0, [newEvent({ data: '{"$acl":{"$r":"$all"}}', metadata: '', contentType: 'application/json' })]);
    await givenStore(url);
    expect(warnings()).toEqual([]);
  });

  it('is not, where it refuses them by default', async () => {
    await given(false);
    await givenStore(as('admin'));
    expect(warnings()).toEqual([]);
  });

  it.each([
    ['22.10', true],
    ['24.10', false],
  ])('lets in who has to be let in, and nobody else, once its lists are set as documented: %s', async (_version, letsInAnybody) => {
    await given(letsInAnybody);
    const { stdout } = await setRights();
    expect(stdout).toBe(
      '$$$all {"$acl":{"$r":["gatehouse","gatehouse-readers","$admins"]}}\n' +
        '$settings {"$userStreamAcl":{"$r":["gatehouse","gatehouse-readers","$admins"],"$w":["gatehouse","$admins"],"$d":"$admins","$mr":["gatehouse","gatehouse-readers","$admins"],"$mw":"$admins"}}\n',
    );
    const service = await givenStore(as('service'));
    expect(warnings()).toEqual([]);
    expect(await service.append('thing-1', 0, [newEvent('one')])).toMatchObject({ version: 1 });
    const identity = await service.identity();
    const reader = await givenStore(as('reader'));
    expect([await reader.identity(), await reader.head(), (await take(reader, 1)).length]).toEqual([identity, await service.head(), 1]);
    await expect(reader.append('thing-1', 1, [newEvent('two')])).rejects.toThrow('The event store refuses this server.');
    for (const others of [as('other'), url, as('reader').replace('password', 'passwort')])
      await expect(givenStore(others)).rejects.toThrow('EventStoreDB refuses the name and password in EVENTSTORE_URL, or does not let them read $all.');
    expect(await service.read('thing-1')).toHaveLength(1);
  });

  it('lets services see in metadata what hides events, so that these are not taken for gone, and nobody but administrators write them', async () => {
    await given(false);
    await setRights();
    const service = await givenStore(as('service'));
    for (const version of [0, 1]) await service.append('thing-1', version, [newEvent('one')]);
    const asService = EventStoreDBClient.connectionString(as('service'));
    const asAdmin = EventStoreDBClient.connectionString(as('admin'));
    try {
      await expect(asService.setStreamMetadata('gatehouse.thing-1', { truncateBefore: 1 })).rejects.toMatchObject({ type: 'access-denied' });
      await asAdmin.setStreamMetadata('gatehouse.thing-1', { truncateBefore: 1 });
    } finally {
      await asService.dispose();
      await asAdmin.dispose();
    }
    const next = await givenStore(as('service'));
    expect((await next.damage.inspect('thing-1')).map(({ cause }) => cause)).toContain('truncated');
  });

  it('keeps what else is in its lists, also where they are set again, which only an administrator may', async () => {
    await given(true);
    const before = newEvent({ data: '{"$maxAge":1,"$acl":{"$mr":"ops","$r":"ops"}}', metadata: '', contentType: 'application/json' });
    await streams.log.append('$$$all', 0, [before]);
    await setRights();
    const { stdout } = await setRights();
    expect(stdout).toContain('$$$all {"$maxAge":1,"$acl":{"$mr":"ops","$r":["gatehouse","gatehouse-readers","$admins"]}}\n');
    await expect(setRights('service')).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^The access lists cannot be set: /) });
  });
});

describe('an event store in EventStoreDB', () => {
  async function refusedWithin(milliseconds: number, ask: () => Promise<unknown>): Promise<void> {
    const askedAt = Date.now();
    const error = await ask().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(isUnavailable(error)).toBe(true);
    expect(Date.now() - askedAt).toBeLessThan(milliseconds);
  }

  /** As a client that repeats its command until it is told what became of it. */
  async function insistent(store: EventstoredbEventStore, stream: string, place: { version: number; events: readonly NewEvent[] }): Promise<Appended> {
    for (;;) {
      try {
        return await store.append(stream, place.version, place.events);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        await pause(50);
      }
    }
  }

  it('loses nothing, and appends nothing twice, when the server is killed in the middle of appends', async () => {
    const server = await givenServer();
    const store = await givenStore(server.address);
    const acknowledged = new Map<string, Appended>();
    const signal = { isOver: false };
    const writers = Array.from({ length: 32 }, async (_, writer) => {
      let version = 0;
      for (; !signal.isOver; version += 2) {
        const events = [newEvent(writer), newEvent(writer)];
        acknowledged.set(events[1]!.id, await insistent(store, `thing-${writer}`, { version, events }));
      }
      return version;
    });
    for (let round = 0; round < 3; round++) {
      await pause(500);
      await server.kill();
      await pause(round * 700);
      await server.restart();
    }
    await pause(1_000);
    signal.isOver = true;
    const versions = await Promise.all(writers);
    const total = versions.reduce((sum, version) => sum + version, 0);
    const all = await take(store, total);
    expect(new Set(all.map(({ id }) => id)).size).toBe(total);
    expect(await store.head()).toBe(all.at(-1)!.position);
    for (const [writer, version] of versions.entries()) {
      const records = await store.read(`thing-${writer}`);
      expect(records.map((record) => record.version)).toEqual(Array.from({ length: version }, (_, index) => index + 1));
      for (const { id, version: at, position } of records.filter((_, index) => index % 2 === 1))
        expect(acknowledged.get(id)).toEqual({ version: at, position });
    }
  }, 60_000);

  it('has its subscribers go on from where each was, when the server is killed', async () => {
    const server = await givenServer();
    const store = await givenStore(server.address);
    const stop = new AbortController();
    const seen: readonly RecordedEvent[][] = Array.from({ length: 6 }, () => []);
    const followers = seen.map(async (records, number) => {
      while (!stop.signal.aborted)
        try {
          for await (const batch of store.subscribe(records.at(-1)?.position ?? START, stop.signal, number % 2 === 0 ? 'prompt' : undefined)) {
            records.push(...batch);
            if (number > 3) await pause(20);
          }
        } catch (error) {
          expect(isUnavailable(error)).toBe(true);
          await pause(50);
        }
    });
    let version = 0;
    for (let round = 0; round < 3; round++) {
      for (let count = 0; count < 40; count++) ({ version } = await insistent(store, 'thing-1', { version, events: [newEvent(), newEvent()] }));
      await server.kill();
      await server.restart();
    }
    const ids = (await take(store, version)).map(({ id }) => id);
    expect(new Set(ids).size).toBe(240);
    await until(() => seen.every((records) => records.length >= ids.length));
    stop.abort();
    await Promise.all(followers);
    for (const records of seen) expect(records.map(({ id }) => id)).toEqual(ids);
  }, 60_000);

  it('answers within 5 s while nobody does, and goes on afterwards', async () => {
    const server = await givenServer();
    const store = await givenStore(server.address);
    await store.append('thing-1', 0, [newEvent()]);
    const [event, stop] = [newEvent(), new AbortController()];
    const following = (async () => {
      for await (const batch of store.subscribe(START, AbortSignal.timeout(60_000))) expect(batch).toHaveLength(1);
    })();
    const aborted = (async () => {
      for await (const batch of store.subscribe(START, stop.signal)) expect(batch).toHaveLength(1);
    })();
    await pause(500);
    await server.pause();
    const noticed = refusedWithin(12_000, () => following);
    await pause(100);
    stop.abort();
    await aborted;
    await Promise.all([
      refusedWithin(5_000, () => store.append('thing-1', 1, [event])),
      refusedWithin(5_000, () => store.read('thing-1')),
      refusedWithin(5_000, () => store.last('thing-1')),
      refusedWithin(5_000, () => store.head()),
      // Many at once: what waits to be written is given up as well.
      ...Array.from({ length: 300 }, (_, number) => refusedWithin(5_000, () => store.append(`other-${number}`, 0, [newEvent({ text: 'x'.repeat(10_000) })]))),
    ]);
    await noticed;
    await refusedWithin(5_000, () => store.append('thing-1', 1, [event]));
    await server.resume();
    const answered = Date.now();
    const { version } = await insistent(store, 'thing-1', { version: 1, events: [event] });
    expect(version).toBe(2);
    expect(Date.now() - answered).toBeLessThan(5_000);
    expect((await store.read('thing-1')).map(({ id }) => id)).toHaveLength(2);
  }, 60_000);

  it('is there again soon after the server is, however long it was away', async () => {
    const server = await givenServer();
    const store = await givenStore(server.address);
    await store.append('thing-1', 0, [newEvent()]);
    await server.kill();
    const stop = new AbortController();
    const following = (async () => {
      for (let records: readonly RecordedEvent[] = []; !stop.signal.aborted; await pause(100))
        try {
          for await (const batch of store.subscribe(START, stop.signal)) {
            records = batch;
            stop.abort();
          }
          return records;
        } catch (error) {
          expect(isUnavailable(error)).toBe(true);
        }
      return [];
    })();
    for (let attempt = 0; attempt < 3; attempt++) await refusedWithin(5_000, () => store.head());
    await server.restart();
    const restarted = Date.now();
    expect(await following).toHaveLength(1);
    expect(await store.read('thing-1')).toHaveLength(1);
    expect(Date.now() - restarted).toBeLessThan(4_000);
  }, 60_000);

  it('sees nothing of what the server writes for itself', async () => {
    const { address } = await givenServer({ systemEvents: true });
    const store = await givenStore(address);
    await pause(1_000);
    expect(await store.head()).toBe(START);
    const appended: Appended[] = [];
    for (let number = 0; number < 5; number++) {
      appended.push(await store.append(`thing-${number}`, 0, [newEvent(number)]));
      await pause(500);
      expect(await store.head()).toBe(appended.at(-1)!.position);
    }
    const fresh = await givenStore(address);
    expect(await fresh.head()).toBe(appended.at(-1)!.position);
    const records = await take(store, 5);
    expect(records.map(({ position }) => position)).toEqual(appended.map(({ position }) => position));
    // They were in between.
    const driver = EventStoreDBClient.connectionString(address);
    opened.push(() => driver.dispose());
    const seen: boolean[] = [];
    for await (const { event } of driver.readAll()) seen.push(event!.streamId.startsWith('$'));
    expect(seen.slice(seen.indexOf(false), seen.lastIndexOf(false))).toContain(true);
  }, 30_000);

  it('sees nothing of another installation, nor of another product, on the same server', async () => {
    const { url, streams } = await givenServerHere();
    const [store, other] = [await givenStore(url, 'gatehouse'), await givenStore(url, 'gatehouse-2')];
    const foreign = [newEvent({ data: '{"id":1}', metadata: '', contentType: 'application/json' })];
    // Neither a prefix without its dot, nor the name of a stream of ours without the prefix.
    for (const stream of ['gatehouse', 'gatehousething-1', 'thing-1', 'orders.gatehouse.thing-1']) await streams.log.append(stream, 0, foreign);
    expect(await other.append('thing-1', 0, [newEvent('other'), newEvent('other')])).toMatchObject({ version: 2 });
    expect([await store.head(), await store.read('thing-1'), await store.last('thing-1')]).toEqual([START, [], null]);
    expect(await store.readBackwards('thing-1', 10)).toEqual([]);

    const appended = [await store.append('thing-1', 0, [newEvent('ours')])];
    const followed = take(store, 2);
    await other.append('thing-1', 2, [newEvent('other')]);
    expect(await store.head()).toBe(appended[0]!.position);
    appended.push(await store.append('thing-1', 1, [newEvent('ours')]));
    await streams.log.append('orders', 0, foreign);
    expect(await store.head()).toBe(appended[1]!.position);
    expect((await followed).map(({ stream, data }) => [stream, data])).toEqual(Array.from({ length: 2 }, () => ['thing-1', 'ours']));
    expect((await take(other, 3)).map(({ stream, data }) => [stream, data])).toEqual(Array.from({ length: 3 }, () => ['thing-1', 'other']));
    expect((await streams.log.read('gatehouse-2.thing-1')).map(({ version }) => version)).toEqual([1, 2, 3]);
    const fresh = await givenStore(url, 'gatehouse-2');
    expect(await fresh.head()).toBe((await fresh.last('thing-1'))!.position);
  });

  describe('says which log it is', () => {
    const STREAM = 'gatehouse.installation';

    it('by a random id of each installation, which the first of several writes and all of them read, and no reader of the log meets', async () => {
      const { url, streams } = await givenServerHere();
      const stores = await Promise.all(Array.from({ length: 5 }, () => givenStore(url)));
      const identities = await Promise.all(stores.map((store) => store.identity()));
      expect(identities[0]).toEqual({ installation: 'gatehouse', id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
      expect(new Set(identities.map(({ id }) => id)).size).toBe(1);
      expect(await streams.log.read(STREAM)).toHaveLength(1);
      const [store] = stores as [EventstoredbEventStore];
      expect(await store.head()).toBe(START);
      const { position } = await store.append('thing-1', 0, [newEvent()]);
      expect((await take(store, 1)).map(({ stream }) => stream)).toEqual(['thing-1']);
      const later = await givenStore(url);
      expect([await later.identity(), await later.head()]).toEqual([identities[0], position]);
      const other = await (await givenStore(url, 'gatehouse-2')).identity();
      expect([other.installation, other.id === identities[0]!.id]).toEqual(['gatehouse-2', false]);
      for (const ask of [() => store.append('installation', 0, [newEvent()]), () => store.read('installation')])
        await expect(ask()).rejects.toThrow(RangeError);
    });

    it('once, when the answer to the first append was lost', async () => {
      const { url, streams } = await givenServerHere();
      streams.answers.push('Timeout');
      const { id } = await (await givenStore(url)).identity();
      expect(await (await givenStore(url)).identity()).toMatchObject({ id });
      expect(await streams.log.read(STREAM)).toHaveLength(1);
    });

    it('later, when the server answers only after the time of a request', async () => {
      const { url, members } = await givenServerHere();
      const store = await givenStore(url);
      members.refusals.push(...Array.from({ length: 50 }, () => REFUSALS.noLeader));
      expect(await store.identity()).toMatchObject({ installation: 'gatehouse' });
      expect(members.refusals).toEqual([]);
    }, 15_000);

    it('to whom may only read, once somebody else has said it', async () => {
      const { url, streams } = await givenServerHere();
      const [reader, writer] = [await givenStore(url), await givenStore(url)];
      streams.answers.push('AccessDenied');
      const waiting = reader.identity();
      await until(() => streams.answers.length === 0);
      const { id } = await writer.identity();
      expect(await waiting).toMatchObject({ id });
    });

    it('or refuses the start when nobody says it in time', async () => {
      const { url, streams } = await givenServerHere();
      const store = await EventstoredbEventStore.connect({ url, installation: 'gatehouse', log, patience: 100 });
      opened.push(() => store.close());
      streams.answers.push('AccessDenied', 'AccessDenied');
      await expect(store.identity()).rejects.toThrow(
        new StartRefused(
          'EventStoreDB holds no log of the installation gatehouse yet, and does not let the user in EVENTSTORE_URL begin one: start a service first, whose user may append.',
        ),
      );
    });

    it('or refuses it when the user may not read that', async () => {
      const { url, members } = await givenServerHere();
      const store = await givenStore(url);
      members.refusals.push(REFUSALS.denied);
      await expect(store.identity()).rejects.toThrow(
        new StartRefused(`EventStoreDB does not let the user in EVENTSTORE_URL read ${STREAM}. What a user has to be allowed stands in docs/operations.md.`),
      );
    });

    it.each([['no JSON'], ['{"data":{"id":7}}'], ['{}']])('or refuses it when somebody else wrote there: %s', async (data) => {
      const { url, streams } = await givenServerHere();
      await streams.log.append(STREAM, 0, [newEvent({ data, metadata: '', contentType: 'application/json' })]);
      await expect((await givenStore(url)).identity()).rejects.toThrow(
        new StartRefused(
          `The stream ${STREAM} in EventStoreDB does not begin with what it was begun with: it was cut, deleted, or written by somebody else. Put the log back from a backup.`,
        ),
      );
    });
  });

  it('takes up to 1 MiB at once, and refuses more without harm to others', async () => {
    const store = await givenStore((await givenServer()).address);
    const neighbours = Array.from({ length: 20 }, (_, number) => store.append(`neighbour-${number}`, 0, [newEvent()]));
    await expect(store.append('thing-1', 0, [newEvent('x'.repeat(1024 * 1024))])).rejects.toThrow(
      /^An append to gatehouse\.thing-1 has 10\d{5} bytes, and the log takes 1048576 at once\.$/,
    );
    expect(await store.append('thing-1', 0, [newEvent('x'.repeat(1024 * 1024 - 1_000))])).toMatchObject({ version: 1 });
    await Promise.all(neighbours);
    expect((await store.last('thing-1'))!.data).toHaveLength(1024 * 1024 - 1_000);
  });

  it('finds the leader, by any member of the cluster', async () => {
    const leader = await givenSmallServer();
    const follower = await givenSmallServer('--leader', hostOf(leader));
    const [event, other] = [newEvent(), newEvent()];
    await (await givenStore(follower.address)).append('thing-1', 0, [event]);
    await (await givenStore(`esdb://${hostOf(follower)},${hostOf(leader)}?tls=false`)).append('thing-1', 1, [other]);
    expect((await take(await givenStore(leader.address), 2)).map(({ id }) => id)).toEqual([event.id, other.id]);
  });

  it('answers in time while no member of the cluster can be found', async () => {
    const [one, two] = [await givenServer(), await givenServer()];
    const store = await givenStore(`esdb://${hostOf(one)},${hostOf(two)}?tls=false`);
    await Promise.all([one.kill(), two.kill()]);
    await refusedWithin(5_000, () => store.read('thing-1'));
    await refusedWithin(5_000, () => store.append('thing-1', 0, [newEvent()]));
    await Promise.all([one.restart(), two.restart()]);
    // Another stream: what became of the append above, nobody knows.
    await insistent(store, 'thing-2', { version: 0, events: [newEvent()] });
  }, 30_000);

  describe('that does not do what it is asked', () => {
    let members: Members;
    let streams: Streams;
    let url: string;
    let store: EventstoredbEventStore;

    beforeEach(async () => {
      ({ url, members, streams } = await givenServerHere());
      store = await givenStore(url);
      await store.append('thing-1', 0, [newEvent()]);
      printed.length = 0;
    });

    /** At once: it is not asked again. */
    const refusedAtOnce = (ask: () => Promise<unknown>): Promise<void> => refusedWithin(2_000, ask);
    const told = (): readonly string[] => printed.map((line) => (JSON.parse(line) as { readonly message: string }).message);

    it.each(['notReady', 'tooBusy', 'noLeader', 'timedOut', 'brokenStream'] as const)(
      'is asked again: %s',
      async (refusal) => {
        const refused = (count = 2): void => void members.refusals.push(...Array.from({ length: count }, () => REFUSALS[refusal]));
        refused();
        expect(await store.read('thing-1')).toHaveLength(1);
        refused();
        expect(await store.append('thing-2', 0, [newEvent()])).toMatchObject({ version: 1 });
        refused();
        const head = await store.head();
        expect((await store.last('thing-2'))!.position).toBe(head);
        expect(await take(store, 2)).toHaveLength(2);
        expect(told()).toEqual([]);
      },
      20_000,
    );

    it('is away in the end, with the cause in the log: no mistake of ours, for which an event would be passed over', async () => {
      members.refusals.push(...Array.from({ length: 100 }, () => REFUSALS.brokenStream));
      await refusedWithin(5_000, () => store.read('thing-1'));
      expect(told()).toEqual(['EventStoreDB does not do what it is asked.']);
      expect(printed.join()).toContain('RST_STREAM');
    }, 10_000);

    it('is waited for at the start while it is not ready', async () => {
      members.refusals.push(REFUSALS.notReady, REFUSALS.noLeader);
      expect(await (await givenStore(url)).read('thing-1')).toHaveLength(1);
    });

    it('has appended once what it says timed out', async () => {
      streams.answers.push('Timeout');
      const events = [newEvent(), newEvent()];
      const appended = await store.append('thing-1', 1, events);
      expect(appended).toMatchObject({ version: 3 });
      expect((await store.read('thing-1', 2)).map(({ id }) => id)).toEqual(events.map(({ id }) => id));
      expect((await store.last('thing-1'))!.position).toBe(appended.position);
    });

    it.each(['denied', 'deniedByProxy', 'unknownUser'] as const)(
      'because it does not let us is not asked again, and says once what to allow: %s',
      async (refusal) => {
        for (const ask of [() => store.read('thing-1'), () => store.head(), () => take(store, 1)]) {
          members.refusals.push(REFUSALS[refusal]);
          await refusedAtOnce(ask);
        }
        expect(members.refusals).toEqual([]);
        expect(told()).toEqual([
          'EventStoreDB does not let the user in EVENTSTORE_URL do what was asked of it. What a user has to be allowed stands in docs/operations.md.',
        ]);
        expect(await store.read('thing-1')).toHaveLength(1);
        // A start reads what is noted of damage, which it may do without, and looks for the end of the log.
        members.refusals.push(REFUSALS[refusal], REFUSALS[refusal]);
        await expect(givenStore(url)).rejects.toThrow('EventStoreDB refuses the name and password in EVENTSTORE_URL, or does not let them read $all.');
      },
    );

    it('because it lets us read, and not append, says so at once too', async () => {
      streams.answers.push('AccessDenied');
      await refusedAtOnce(() => store.append('thing-1', 1, [newEvent()]));
      expect(told()).toHaveLength(1);
      expect(printed.join()).toContain('EventStoreDB does not let the user append to thing-1.');
      expect(await store.append('thing-1', 1, [newEvent()])).toMatchObject({ version: 2 });
    });

    it('because of a mistake of ours tells of that, and is not asked again', async () => {
      const askedAt = Date.now();
      await expect(store.append('thing-1', 1, [newEvent({ count: 1n })])).rejects.toThrow(TypeError);
      expect(Date.now() - askedAt).toBeLessThan(2_000);
    });
  });

  describe('with TLS and a password', () => {
    const password = 'pa%3Ass-canary';
    let server: Engine;
    let ca: string;
    const warned: unknown[][] = [];
    const { warn } = console;

    beforeEach(async () => {
      const folder = WatchedDirectory.create('eventstore-tls');
      opened.push(() => folder.remove());
      const authority = await givenAuthority('Authority');
      const { cert, key } = await authority.certify('localhost');
      const authorities = join(folder.path, 'authorities');
      mkdirSync(authorities);
      const files = { 'authorities/ca.crt': authority.ca, cert, key };
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
      ca = encodeURIComponent(join(authorities, 'ca.crt'));
      server = await givenServer({
        secured: {
          certificate: join(folder.path, 'cert'),
          key: join(folder.path, 'key'),
          authorities,
          user: { name: 'admin', password: 'pa:ss-canary' },
          addressAt: (port) => `esdb://admin:${password}@localhost:${port}?tlsCAFile=${ca}`,
        },
      });
      printed.length = 0;
      warned.length = 0;
      console.warn = (...words) => void warned.push(words);
    });
    afterEach(() => {
      console.warn = warn;
    });

    const expectNothingTold = (error: unknown): void => {
      expect(error).toBeInstanceOf(StartRefused);
      const told = JSON.stringify([printed, warned, (error as Error).message, (error as Error).stack, (error as Error).cause]);
      for (const part of ['ss-canary', 'wrong-canary', Buffer.from('admin:pa:ss-canary').toString('base64')]) expect(told).not.toContain(part);
    };

    it('is used', async () => {
      const store = await givenStore(server.address);
      await store.append('thing-1', 0, [newEvent()]);
      expect(await store.read('thing-1')).toHaveLength(1);
      expect(await take(store, 1)).toHaveLength(1);
    });

    it('says that a password is wrong, and never which', async () => {
      const refused = await givenStore(server.address.replace(password, 'wrong-canary')).catch((error: unknown) => error);
      expect((refused as Error).message).toContain('refuses the name and password');
      expectNothingTold(refused);
    });

    it('does not tell a connection string that it cannot use', async () => {
      const { address } = server;
      const cannot = [
        `${address}&keepAliveInterval=5`,
        `${address}&unknown=1`,
        `${address}&tlsVerifyCert=false`,
        `${address}&tls=maybe`,
        `${address}&defaultDeadline=soon`,
        address.replace('ca.crt', 'nowhere'),
        address.replace('esdb:', 'http:'),
        address.replace('pa%3Ass', 'pa@ss'),
        address.replace('pa%3Ass', 'pa?ss'),
        address.replace('pa%3Ass', 'pa:ss'),
        'wrong-canary',
        '',
      ];
      for (const url of cannot) expectNothingTold(await givenStore(url).catch((error: unknown) => error));
      expect(warned).toEqual([]);
    });

    const connectAt = (url: string): Promise<unknown> =>
      EventstoredbEventStore.connect({ url, installation: 'gatehouse', log, patience: 100 }).catch((error: unknown) => error);

    it('does not tell it either when nobody answers, or who answers is not trusted', async () => {
      const { address } = server;
      const untrusted = await connectAt(address.replace(/\?.*/, ''));
      expectNothingTold(untrusted);
      expect((untrusted as Error).message).toContain(': its certificate is not signed by an authority that is trusted (');
      await server.kill();
      const away = await connectAt(address);
      expectNothingTold(away);
      expect((away as Error).message).toContain(': nobody listens there (ECONNREFUSED).');
      expect(printed.join('')).toContain('EventStoreDB does not answer yet');
    }, 30_000);
  });
});
