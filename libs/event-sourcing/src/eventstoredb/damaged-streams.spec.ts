import { setTimeout as pause } from 'node:timers/promises';
import { binaryEvent, EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { type DomainError, isUnavailable } from '#libs/platform/src/domain-error';
import { PinoLog } from '#libs/platform/src/pino.log';
import { givenServerHere } from '#libs/testing/src/engines/eventstore-server/given-server-here';
import { until } from '#libs/testing/src/until';
import { newEvent, take } from '../log/event-store.contract.ts';
import { type Position, type RecordedEvent, START, WrongVersion } from '../log/event-store.ts';
import { UnreadableRecord } from '../log/lazy-record.ts';
import type { DamageCause } from '../log/log-damage.ts';
import { SKIPPED } from '../log/protocol.ts';
import { EventstoredbEventStore } from './eventstoredb.event-store.ts';

const printed: string[] = [];
const log = new PinoLog({ level: 'info', readable: false, destination: { write: (line) => void printed.push(line) } });

describe('a stream of ours in EventStoreDB that others have changed', () => {
  const opened: (() => Promise<unknown> | void)[] = [];
  let url: string;
  let server: Awaited<ReturnType<typeof givenServerHere>>;
  /** Another program, or the server's own pages. */
  let others: EventStoreDBClient;
  let store: EventstoredbEventStore;

  beforeEach(async () => {
    printed.length = 0;
    server = await givenServerHere();
    ({ url } = server);
    opened.push(() => server.close());
    others = EventStoreDBClient.connectionString(url);
    opened.push(() => others.dispose());
    store = await givenStore();
  });
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  async function givenStore(): Promise<EventstoredbEventStore> {
    const connected = await EventstoredbEventStore.connect({ url, installation: 'gatehouse', log, timeoutMs: 10_000 });
    opened.push(() => connected.close());
    return connected;
  }

  /** So many events, one after the other. */
  async function append(stream: string, count: number, from = 0): Promise<Position> {
    let position = START;
    for (let version = from; version < from + count; version++) ({ position } = await store.append(stream, version, [newEvent(version + 1)]));
    return position;
  }

  function follow(by = store): { readonly seen: RecordedEvent[]; readonly failed: () => unknown } {
    const stopping = new AbortController();
    const seen: RecordedEvent[] = [];
    let failure: unknown = null;
    const following = (async () => {
      try {
        for await (const batch of by.subscribe(START, stopping.signal)) seen.push(...batch);
      } catch (error) {
        failure = error;
      }
    })();
    opened.push(() => (stopping.abort(), following));
    return { seen, failed: () => failure };
  }

  async function expectDamaged(ask: () => Promise<unknown>): Promise<DomainError> {
    const error: unknown = await ask().then(
      (answer) => new Error(`It was answered: ${JSON.stringify(answer)}`),
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ kind: 'unavailable', code: 'event_log_damaged', details: {} });
    // Waiting does not help: a reaction sets aside what it would wait for otherwise.
    expect(isUnavailable(error)).toBe(false);
    return error as DomainError;
  }

  async function expectAllDamaged(stream: string, by = store): Promise<void> {
    await expectDamaged(() => by.read(stream));
    await expectDamaged(() => by.last(stream));
    await expectDamaged(() => by.readBackwards(stream, 10));
    await expectDamaged(() => by.append(stream, 3, [newEvent()]));
  }

  const skipRecord = (type: string) => ({ ...newEvent(), type });
  const causesOf = (stream: string, by = store): readonly DamageCause[] =>
    by.damage
      .list()
      .filter((damage) => damage.stream === stream)
      .map(({ cause }) => cause);
  const STORED = 'gatehouse.thing-1';

  const KINDS: readonly (readonly [string, DamageCause, () => Promise<unknown>])[] = [
    ['an event of another program', 'foreign', () => others.appendToStream(STORED, jsonEvent({ type: 'order', data: { shape: 1, public: [] } }))],
    ['an empty event', 'foreign', () => others.appendToStream(STORED, jsonEvent({ type: 'nothing', data: null as never }))],
    ['bytes that are no text', 'foreign', () => others.appendToStream(STORED, binaryEvent({ type: 'bytes', data: Buffer.from([0xff, 0xfe, 0]) }))],
    ['an event that is called a deletion', 'foreign', () => others.appendToStream(STORED, jsonEvent({ type: '$streamDeleted', data: {} }))],
    ['metadata that keep so many', 'truncated', () => others.setStreamMetadata(STORED, { maxCount: 1 })],
    ['metadata that keep so many, and hide nothing yet', 'truncated', () => others.setStreamMetadata(STORED, { maxCount: 100 })],
    ['metadata that keep so long', 'truncated', () => others.setStreamMetadata(STORED, { maxAge: 3_600 })],
    ['metadata that cut it', 'truncated', () => others.setStreamMetadata(STORED, { truncateBefore: 2 })],
    ['a deletion', 'truncated', () => others.deleteStream(STORED)],
    ['a deletion for good', 'deleted', () => others.tombstoneStream(STORED)],
  ];

  it.each(KINDS)('is damaged, and nothing else is: %s', async (_what, cause, change) => {
    await append('thing-1', 3);
    const followers = [follow(), follow()];
    await until(() => followers.every(({ seen }) => seen.length === 3));
    await change();
    // While it is the last in the log.
    const head = await store.head();
    expect(head).toBe(followers[0]!.seen.at(-1)!.position);
    const fresh = await givenStore();
    expect(await fresh.head()).toBe(head);
    await until(() => causesOf('thing-1').includes(cause));
    await expectAllDamaged('thing-1');

    const last = await append('thing-2', 2);
    await until(() => followers.every(({ seen }) => seen.at(-1)?.position === last));
    for (const { seen, failed } of followers) {
      expect(seen.map(({ stream, version }) => [stream, version])).toEqual(
        [1, 2, 3]
          .map((version) => ['thing-1', version])
          .concat([
            ['thing-2', 1],
            ['thing-2', 2],
          ]),
      );
      expect(failed()).toBeNull();
    }
    expect(await store.head()).toBe(last);
    expect(await store.read('thing-2')).toHaveLength(2);
    expect(await take(fresh, 5)).toHaveLength(5);
    expect(printed.filter((line) => line.includes('A stream of the log is damaged')).length).toBeGreaterThan(0);

    // Whoever starts later knows it without having followed the log.
    await until(async () => (await givenStore()).damage.list().some((damage) => damage.stream === 'thing-1' && damage.cause === cause));
    const later = await givenStore();
    expect(later.damage.list().find((damage) => damage.cause === cause)).toEqual(store.damage.list().find((damage) => damage.cause === cause));
    await expectAllDamaged('thing-1', later);
  });

  it('is noticed where the end of the log was looked for before anybody followed it', async () => {
    await append('thing-1', 2);
    await append('thing-2', 1);
    await others.appendToStream(STORED, jsonEvent({ type: 'order', data: {} }));
    await others.setStreamMetadata('gatehouse.thing-2', { maxCount: 100 });
    const following = follow(await givenStore());
    await until(() => following.seen.length === 3);
    const later = await givenStore();
    await until(() => causesOf('thing-1', later).includes('foreign') && causesOf('thing-2', later).includes('truncated'));
    await store.damage.skip({ stream: 'thing-1', revision: 2, reason: 'spec' }, skipRecord);
    await others.setStreamMetadata('gatehouse.thing-2', {});
    await store.damage.inspect('thing-2');
    printed.length = 0;
    expect((await givenStore()).damage.list()).toEqual([]);
    expect(printed.filter((line) => line.includes('is damaged'))).toEqual([]);
  });

  it('says where: stream, revision, position and cause', async () => {
    await append('thing-1', 2);
    await others.appendToStream(STORED, jsonEvent({ type: 'order', data: {} }));
    const following = follow();
    const last = await append('thing-2', 1);
    await until(() => following.seen.at(-1)?.position === last);
    const [{ position, ...damage }] = store.damage.list() as unknown as [{ readonly position: Position }];
    expect(damage).toEqual({ stream: 'thing-1', revision: 2, cause: 'foreign' });
    expect(position > following.seen[1]!.position && position < last).toBe(true);
    const lines = printed.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ cause }) => cause === 'foreign');
    expect(lines).toEqual([expect.objectContaining({ stream: 'thing-1', revision: 2, position })]);
  });

  it('is not damaged by metadata that hide nothing', async () => {
    await append('thing-1', 1);
    await others.setStreamMetadata(STORED, { acl: { readRoles: ['$admins'] }, cacheControl: 5 });
    await others.setStreamMetadata(STORED, { truncateBefore: 0 });
    const following = follow();
    const last = await append('thing-1', 1, 1);
    await until(() => following.seen.at(-1)?.position === last);
    expect(await store.read('thing-1')).toHaveLength(2);
    expect(store.damage.list()).toEqual([]);
  });

  it.each<readonly [string, DamageCause, () => Promise<unknown>]>([
    ['what it has was deleted', 'truncated', () => others.deleteStream(STORED)],
    ['all of it became too old', 'truncated', () => others.setStreamMetadata(STORED, { maxAge: 1 }).then(() => pause(1_100))],
  ])('is not taken for one that never was by a process that follows nothing: %s', async (_what, cause, change) => {
    await append('thing-1', 3);
    await change();
    await expectDamaged(() => store.read('thing-1'));
    await expectDamaged(() => store.last('thing-1'));
    expect(causesOf('thing-1')).toEqual([cause]);
    expect(await store.read('thing-9')).toEqual([]);
  });

  it('is not folded from a part of it, whoever reads it first', async () => {
    await append('thing-1', 5);
    await others.setStreamMetadata(STORED, { maxCount: 2 });
    await expectDamaged(() => store.read('thing-1'));
    await until(() => causesOf('thing-1').includes('missing'));
    expect(store.damage.list()).toContainEqual(expect.objectContaining({ stream: 'thing-1', cause: 'missing', from: 0, revision: 2 }));
    const other = await givenStore();
    await expectDamaged(() => other.readBackwards('thing-1', 10));
    const third = await givenStore();
    await expectDamaged(() => third.read('thing-1', 3));
  });

  it('says that an append was stored elsewhere than where it was decided for; nobody takes it for something that happened', async () => {
    await append('thing-1', 2);
    const following = follow();
    await until(() => following.seen.length === 2);
    // Between the look of a command and its append.
    Object.assign(store.damage, { require: async () => {} });
    await others.deleteStream(STORED);
    const error = await expectDamaged(() => store.append('thing-1', 0, [newEvent('again')]));
    expect(error.message).toContain('was stored');
    await until(async () => causesOf('thing-1', await givenStore()).includes('misplaced'));
    const fresh = await givenStore();
    await expectDamaged(() => fresh.last('thing-1'));
    const last = await append('thing-2', 1);
    await until(() => following.seen.at(-1)?.position === last);
    expect(following.seen.map(({ data }) => data)).toEqual([1, 2, 1]);
    expect((await take(fresh, 3)).map(({ data }) => data)).toEqual([1, 2, 1]);
  });

  it('answers damage, and no conflict without an end, where what it has is hidden from who appends', async () => {
    await append('thing-1', 2);
    await others.setStreamMetadata(STORED, { maxAge: 1 });
    await pause(1_100);
    await expectDamaged(() => store.append('thing-1', 0, [newEvent()]));
    await expect(store.append('thing-2', 1, [newEvent()])).rejects.toThrow(WrongVersion);
  });

  it('has data of ours that cannot be read: whoever handles their type meets that, and nobody else', async () => {
    await append('thing-1', 1);
    const { meta } = newEvent();
    await others.appendToStream(STORED, binaryEvent({ type: 'thing.happened', data: Buffer.from('{"shape":1,'), metadata: Buffer.from(JSON.stringify(meta)) }));
    const behind = await store.append('thing-2', 0, [newEvent()]);
    const records = await take(store, 3);
    expect(records.map(({ stream, version }) => [stream, version])).toEqual([
      ['thing-1', 1],
      ['thing-1', 2],
      ['thing-2', 1],
    ]);
    expect(records[1]).toBeInstanceOf(UnreadableRecord);
    expect(records[1]).toMatchObject({ type: 'thing.happened', meta });
    expect(() => records[1]!.data).toThrow(expect.objectContaining({ code: 'event_log_damaged' }));
    expect(await store.head()).toBe(behind.position);
    expect(causesOf('thing-1')).toEqual(['unreadable']);
    await expectAllDamaged('thing-1');
    await store.damage.skip({ stream: 'thing-1', revision: 1, reason: 'spec' }, skipRecord);
    expect((await store.read('thing-1')).map(({ type }) => type)).toEqual(['thing.happened', SKIPPED]);
    // Its place stays: nobody who has read so far is ahead of the log.
    expect((await take(store, 3)).map(({ position, type }) => [position, type])).toEqual([
      [records[0]!.position, 'thing.happened'],
      [records[1]!.position, SKIPPED],
      [records[2]!.position, 'thing.happened'],
    ]);
  });

  it('is not damaged by an event of a newer shape', async () => {
    await store.append('thing-1', 0, [{ ...newEvent(), shape: 99 }]);
    expect((await take(store, 1))[0]).toMatchObject({ shape: 99 });
    expect(await store.read('thing-1')).toHaveLength(1);
    expect(store.damage.list()).toEqual([]);
  });

  it('is one of very many, and not all of them are remembered: whoever reads it meets it all the same', async () => {
    for (let count = 0; count < 20_000; count++) store.damage.report({ stream: `other-${count}`, revision: 0, position: START, cause: 'foreign' });
    expect(store.damage.list()).toHaveLength(10_000);
    await append('thing-1', 1);
    await others.appendToStream(STORED, jsonEvent({ type: 'order', data: {} }));
    await expectDamaged(() => store.read('thing-1'));
    await expectDamaged(() => store.append('thing-1', 1, [newEvent()]));
    expect(store.damage.list()).toHaveLength(10_000);
  });

  describe('is told of in a stream', () => {
    const NOTES = 'gatehouse.damage';
    const note = (type: string, data: unknown) => jsonEvent({ type, data: { shape: 1, data, subject: null, public: [] } as never });

    it('that shows nothing of what it has: who decides is told, and nobody asks without an end', async () => {
      await append('thing-1', 1);
      await others.appendToStream(STORED, jsonEvent({ type: 'order', data: {} }));
      await expectDamaged(() => store.read('thing-1'));
      await until(async () => (await server.streams.log.read(NOTES)).length === 1);
      await others.setStreamMetadata(NOTES, { truncateBefore: 1 });
      // Behind it nobody looks for the end of the log.
      await append('thing-2', 1);
      const fresh = await givenStore();
      await expect(fresh.damage.skip({ stream: 'thing-1', revision: 1, reason: 'spec' }, skipRecord)).rejects.toThrow('gatehouse.damage does not show');
      await others.setStreamMetadata(NOTES, {});
      await fresh.damage.skip({ stream: 'thing-1', revision: 1, reason: 'spec' }, skipRecord);
      expect(await fresh.read('thing-1')).toHaveLength(2);
    }, 30_000);

    it('into which others write: that is passed over', async () => {
      await append('thing-1', 2);
      for (const data of [
        null,
        5,
        { stream: 'thing-1' },
        { stream: 'thing-1', cause: 'missing', revision: 1, position: null },
        { stream: 'thing-1', cause: 'order' },
      ])
        for (const type of ['damage.skipped', 'damage.mended', 'order', 'damage.found']) await others.appendToStream(NOTES, note(type, data));
      await others.appendToStream(NOTES, binaryEvent({ type: 'bytes', data: Buffer.from([0xff, 0xfe, 0]) }));
      const fresh = await givenStore();
      expect(fresh.damage.list()).toEqual([]);
      expect(await fresh.read('thing-1')).toHaveLength(2);
      await others.appendToStream(STORED, jsonEvent({ type: 'order', data: {} }));
      await expectDamaged(() => fresh.read('thing-1'));
      await until(async () => causesOf('thing-1', await givenStore()).includes('foreign'));
    });

    it('of a log that was put back to an earlier state, and went on: what was decided since is heard', async () => {
      await append('thing-1', 1);
      await others.appendToStream(STORED, jsonEvent({ type: 'order', data: {} }));
      await expectDamaged(() => store.read('thing-1'));
      await others.appendToStream(NOTES, note('order', null));
      await others.appendToStream(NOTES, note('order', null));
      await until(async () => (await server.streams.log.read(NOTES)).length === 3);
      await store.damage.refresh();
      const other = await givenServerHere();
      opened.push(() => other.close());
      // The same streams, of which it has less, and elsewhere.
      await other.streams.log.append('orders', 0, [newEvent({ data: '', metadata: '', contentType: '' })]);
      for (const record of await server.streams.log.read(STORED)) await other.streams.log.append(STORED, record.version - 1, [record]);
      server.streams.log = other.streams.log;
      await store.head();
      follow();
      await (await givenStore()).damage.skip({ stream: 'thing-1', revision: 1, reason: 'spec' }, skipRecord);
      await until(() => store.damage.list().length === 0);
      expect(await store.read('thing-1')).toHaveLength(2);
    });
  });

  describe('goes on', () => {
    it('where others cannot be told that it was repaired', async () => {
      await append('thing-1', 3);
      await others.setStreamMetadata(STORED, { maxCount: 1 });
      await expectDamaged(() => store.read('thing-1'));
      await others.setStreamMetadata(STORED, {});
      await until(async () => (await server.streams.log.read('gatehouse.damage')).length === 1);
      await pause(1_100);
      server.streams.answers.push('AccessDenied');
      expect(await store.read('thing-1')).toHaveLength(3);
      expect(store.damage.list()).toEqual([]);
    });

    it('once metadata that were set are taken away while they are looked at, without being asked for', async () => {
      await append('thing-1', 3);
      const following = follow();
      await until(() => following.seen.length === 3);
      const { log } = server.streams;
      const last = log.last.bind(log);
      let [isHeld, release] = [false, (): void => {}];
      const held = new Promise<void>((resolve) => (release = resolve));
      Object.assign(log, {
        last: async (stream: string) => {
          const found = await last(stream);
          if (stream === `$$${STORED}` && found !== null && !isHeld) {
            isHeld = true;
            await held;
          }
          return found;
        },
      });
      await others.setStreamMetadata(STORED, { maxCount: 1 });
      await until(() => isHeld);
      await others.setStreamMetadata(STORED, {});
      const { position } = await store.append('thing-2', 0, [newEvent()]);
      await until(() => following.seen.at(-1)?.position === position);
      release();
      await until(() => printed.some((line) => line.includes('no longer damaged')));
      await until(() => store.damage.list().length === 0);
      await pause(500);
      expect(store.damage.list()).toEqual([]);
      expect((await givenStore()).damage.list()).toEqual([]);
    }, 30_000);

    it('once an operator has skipped what is none of ours: its revision counts, for every process', async () => {
      await append('thing-1', 2);
      await others.appendToStream(STORED, jsonEvent({ type: 'order', data: {} }));
      const other = await givenStore();
      const following = follow(other);
      await until(() => causesOf('thing-1', other).includes('foreign'));
      await expectAllDamaged('thing-1', other);
      await expect(store.damage.skip({ stream: 'thing-1', revision: 1, reason: 'wrong' }, skipRecord)).rejects.toThrow(
        'Revision 1 of thing-1 cannot be skipped',
      );
      await expect(store.damage.skip({ stream: 'thing-2', revision: 0, reason: 'wrong' }, skipRecord)).rejects.toThrow("There is no stream 'thing-2'");
      await store.damage.skip({ stream: 'thing-1', revision: 2, reason: 'An order got there by mistake.' }, skipRecord);

      const records = await store.read('thing-1');
      expect(records.map(({ version, type }) => [version, type])).toEqual([
        [1, 'thing.happened'],
        [2, 'thing.happened'],
        [3, SKIPPED],
      ]);
      expect(Math.abs(Date.now() - records[2]!.meta.at)).toBeLessThan(60_000);
      await until(() => causesOf('thing-1', other).length === 0);
      const appended = await other.append('thing-1', 3, [newEvent(4)]);
      expect(appended.version).toBe(4);
      await until(() => following.seen.at(-1)?.position === appended.position);
      expect(following.seen.map(({ version }) => version)).toEqual([1, 2, 4]);
      const later = await givenStore();
      expect((await later.readBackwards('thing-1', 2)).map(({ version, type }) => [version, type])).toEqual([
        [4, 'thing.happened'],
        [3, SKIPPED],
      ]);
      expect([store, other, later].map(({ damage }) => damage.list())).toEqual([[], [], []]);
      const [decision] = (await server.streams.log.read('gatehouse.damage')).filter(({ type }) => type === 'damage.skipped');
      expect(JSON.parse((decision!.data as { readonly data: string }).data)).toMatchObject({
        data: { stream: 'thing-1', revision: 2, reason: 'An order got there by mistake.' },
      });
    });

    it('once its metadata no longer hide anything, with all that it has', async () => {
      await append('thing-1', 3);
      await others.deleteStream(STORED);
      const following = follow();
      await until(() => causesOf('thing-1').includes('truncated'));
      await expectAllDamaged('thing-1');
      await expect(store.damage.skip({ stream: 'thing-1', revision: 2, reason: 'no' }, skipRecord)).rejects.toThrow('its metadata set');
      await others.setStreamMetadata(STORED, { truncateBefore: 0 });
      await until(() => store.damage.list().length === 0);
      expect(await store.read('thing-1')).toHaveLength(3);
      expect((await append('thing-1', 1, 3)) > following.seen.at(-1)!.position).toBe(true);
      expect((await givenStore()).damage.list()).toEqual([]);
    });

    it('without what is gone for good, once an operator has given it up', async () => {
      await append('thing-1', 4);
      await others.setStreamMetadata(STORED, { maxCount: 2 });
      await server.streams.scavenge(STORED);
      await expectDamaged(() => store.read('thing-1'));
      await expect(store.damage.skip({ stream: 'thing-1', revision: 1, reason: 'no' }, skipRecord)).rejects.toThrow('its metadata set');
      await others.setStreamMetadata(STORED, {});
      await expectDamaged(() => store.read('thing-1'));
      expect(await store.damage.inspect('thing-1')).toEqual([expect.objectContaining({ cause: 'missing', from: 0, revision: 1 })]);
      await store.damage.skip({ stream: 'thing-1', revision: 1, reason: 'Scavenged.' }, skipRecord);
      expect((await store.read('thing-1')).map(({ version }) => version)).toEqual([3, 4]);
      expect((await store.append('thing-1', 4, [newEvent()])).version).toBe(5);
    });

    it('never, once it was deleted for good', async () => {
      await append('thing-1', 1);
      await others.tombstoneStream(STORED);
      await expectDamaged(() => store.append('thing-1', 1, [newEvent()]));
      await expect(store.damage.skip({ stream: 'thing-1', revision: 0, reason: 'no' }, skipRecord)).rejects.toThrow('deleted for good');
    });
  });
});
