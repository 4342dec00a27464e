import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Upcasts } from '#libs/contracts/src/shapes';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { START, type NewEvent, type RecordedEvent } from './event-store.ts';
import { isFromLaterRelease, requireKnown, shapesOf, UpcastingEventStore } from './upcasts.ts';

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const STREAM = `person-${ENVIRONMENT}-1`;

/** First one name, then two, then an object. */
const person: Upcasts = {
  'person.named': [
    ({ data, subject }) => {
      const [first, last] = (data as { name: string }).name.split(' ');
      return { data: { first, last }, subject };
    },
    ({ data, subject }) => ({ data: { name: data }, subject: { ...(subject as object), isNamed: true } }),
  ],
};

describe('an event of an older shape', () => {
  let directory: string;
  let storage: LmdbStorage;
  let stored: LmdbEventStore;
  let events: UpcastingEventStore;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'upcasts-'));
    storage = await LmdbStorage.open({ directory });
    stored = new LmdbEventStore(storage);
    events = new UpcastingEventStore(stored, shapesOf([{ upcasts: person }, {}]));
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  function event(type: string, shape: number, data: unknown): NewEvent {
    const id = newUlid(Date.now());
    const meta = {
      environment: ENVIRONMENT,
      actor: { id: 'spec', source: 'system', name: null },
      requestId: id,
      commandId: id,
      at: Date.now(),
    } as const;
    return { id, type, shape, data, subject: {}, public: [], meta };
  }

  it('is read as this release writes it, by whichever way it is read', async () => {
    await stored.append(STREAM, 0, [
      event('person.named', 1, { name: 'Ada Lovelace' }),
      event('person.named', 2, { first: 'Ada', last: 'King' }),
      event('person.seen', 1, 'as it is'),
    ]);
    const expected = [
      { shape: 3, data: { name: { first: 'Ada', last: 'Lovelace' } }, subject: { isNamed: true } },
      { shape: 3, data: { name: { first: 'Ada', last: 'King' } }, subject: { isNamed: true } },
      { shape: 1, data: 'as it is', subject: {} },
    ];
    const read = await events.read(STREAM);
    expect(read).toMatchObject(expected);
    for await (const batch of events.subscribe(START, new AbortController().signal)) {
      // One object for all readers, so that what is derived from it is derived once.
      expect(batch.every((record, index) => record === read[index])).toBe(true);
      break;
    }
  });

  it('is not written any more', async () => {
    await events.append(STREAM, 0, [event('person.named', 1, { name: { first: 'Ada', last: 'King' } }), event('person.seen', 1, null)]);
    expect((await stored.read(STREAM)).map(({ shape }) => shape)).toEqual([3, 1]);
  });

  it('is written where the release that brings the last shape does not write it yet, and read as the last one all the same', async () => {
    const careful = new UpcastingEventStore(stored, shapesOf([{ upcasts: person, writes: { 'person.named': 2 } }]));
    await careful.append(STREAM, 0, [event('person.named', 1, { first: 'Ada', last: 'King' })]);
    expect((await stored.read(STREAM)).map(({ shape }) => shape)).toEqual([2]);
    expect(await careful.read(STREAM)).toMatchObject([{ shape: 3, data: { name: { first: 'Ada', last: 'King' } } }]);
  });

  it('is what every service knows of it, or the process does not start', () => {
    const known = shapesOf([{ upcasts: person, writes: { 'person.named': 2 } }]);
    requireKnown([{}, { upcasts: person, writes: { 'person.named': 2 } }], known);
    expect(() => requireKnown([{ upcasts: { 'person.named': [...person['person.named']!] } }], known)).toThrow('not among SHAPES');
    expect(() => requireKnown([{ upcasts: person, writes: { 'person.named': 1 } }], known)).toThrow('not among SHAPES');
    expect(() => shapesOf([{ upcasts: person }, { upcasts: person }])).toThrow('declared twice');
    for (const shape of [0, 4]) expect(() => shapesOf([{ upcasts: person, writes: { 'person.named': shape } }])).toThrow('which is not read');
  });

  it('keeps nobody who follows from what comes after it where it cannot be brought up to date; whoever looks into it meets why', async () => {
    await stored.append(STREAM, 0, [event('person.named', 1, null), event('person.seen', 1, 'behind it')]);
    for (const [broken, behind] of await read()) {
      expect(() => broken!.data).toThrow(TypeError);
      expect(() => broken!.subject).toThrow(TypeError);
      expect(behind!.data).toBe('behind it');
    }
  });

  it('is told from one that a later release wrote, which keeps nobody from what comes after it either', async () => {
    await stored.append(STREAM, 0, [event('person.named', 4, null), event('person.seen', 2, null), event('person.seen', 1, 'behind them')]);
    for (const [named, seen, behind] of await read()) {
      expect([named, seen, behind].map((record) => isFromLaterRelease(record!))).toEqual([true, true, false]);
      expect([named!.type, named!.shape, named!.version, named!.meta.environment]).toEqual(['person.named', 4, 1, ENVIRONMENT]);
      for (const later of [named, seen]) for (const content of [() => later!.data, () => later!.subject]) expect(content).toThrow(NeedsLaterRelease);
      expect(behind!.data).toBe('behind them');
    }
  });

  /** By every way of reading. */
  async function read(): Promise<readonly (readonly RecordedEvent[])[]> {
    const followed: RecordedEvent[] = [];
    for await (const batch of events.subscribe(START, new AbortController().signal)) {
      followed.push(...batch);
      if (batch.at(-1)!.position === (await stored.head())) break;
    }
    return [await events.read(STREAM), (await events.readBackwards(STREAM, 10)).toReversed(), followed];
  }
});
