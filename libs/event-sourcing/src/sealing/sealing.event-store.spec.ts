import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Id, ListOf, Nested, Optional, Text } from '#libs/contracts/src/fields';
import { WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import { unavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { givenKeys } from '#libs/testing/src/given-keys';
import { START, type NewEvent, type RecordedEvent } from '../log/event-store.ts';
import { LmdbKeyStore } from './lmdb.key-store.ts';
import { KeyMissing } from './key-store.ts';
import { sealedFieldsOf } from './sealed-fields.ts';
import { SealingEventStore } from './sealing.event-store.ts';
import { Vault } from './vault.ts';

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';

class Address {
  @Text({ doc: 'Where it is.', personal: true }) street!: string;
  @Text({ doc: 'Which country.' }) country!: string;
}

class Person {
  @Id('person', { doc: 'Identifies the person.' }) id!: string;
  @Text({ doc: 'The name.', personal: true, nullable: true }) name!: string | null;
  @Text({ doc: 'Shown to everybody.' }) nick!: string;
  @Optional() @Nested(() => Address, { doc: 'The first address.' }) home?: Address;
  @Optional() @ListOf(() => Address, { doc: 'All addresses.' }) addresses?: readonly Address[];
}

const ada = {
  id: 'person_1',
  name: 'Ada Lovelace',
  nick: 'countess',
  home: { street: 'Great Cumberland Place 10', country: 'gb' },
  addresses: [
    { street: 'Great Cumberland Place 10', country: 'gb' },
    { street: 'Fordhook Avenue 1', country: 'gb' },
  ],
};
const STREAM = `person-${ENVIRONMENT}-person_1`;

describe('the log', () => {
  let directory: string;
  let storage: LmdbStorage;
  let stored: LmdbEventStore;
  let keys: LmdbKeyStore;
  let events: SealingEventStore;
  const sealedFields = sealedFieldsOf({ person: Person, webhook_endpoint: WebhookEndpoint });

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealing-'));
    storage = await LmdbStorage.open({ directory });
    stored = new LmdbEventStore(storage);
    keys = await LmdbKeyStore.open(storage.keys, []);
    events = new SealingEventStore(stored, keys, sealedFields);
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  function event(type: string, data: unknown, subject: unknown = null): NewEvent {
    const id = newUlid(Date.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'spec', source: 'system', name: null }, requestId: id, commandId: id, at: Date.now() };
    return { id, type, shape: 1, data, subject, public: [], meta };
  }

  async function followed(store: SealingEventStore | LmdbEventStore): Promise<readonly RecordedEvent[]> {
    for await (const batch of store.subscribe(START, new AbortController().signal)) return batch;
    return [];
  }

  it('holds no personal field in clear, in facts or snapshot, and is read as it was written', async () => {
    await events.append(STREAM, 0, [event('person.created', ada, ada)]);
    const text = JSON.stringify(await stored.read(STREAM));
    for (const personal of ['Lovelace', 'Cumberland', 'Fordhook']) expect(text).not.toContain(personal);
    expect(text).toContain('countess');
    expect((await events.read(STREAM))[0]).toMatchObject({ data: ada, subject: ada });
    expect((await followed(events))[0]).toMatchObject({ data: ada, subject: ada });
  });

  it('gives all readers of a record the same object', async () => {
    await events.append(STREAM, 0, [event('person.created', ada)]);
    expect((await followed(events))[0]).toBe((await followed(events))[0]);
  });

  it('leaves absent and null fields, and every other type, as they are', async () => {
    await events.append(STREAM, 0, [event('person.updated', { name: null, nick: 'ada' })]);
    expect((await stored.read(STREAM))[0]!.data).toEqual({ name: null, nick: 'ada' });
    const other = event('thing.created', { name: 'open' });
    await events.append(`thing-${ENVIRONMENT}-1`, 0, [other]);
    const read = await events.read(`thing-${ENVIRONMENT}-1`);
    expect(read[0]).toBe((await stored.read(`thing-${ENVIRONMENT}-1`))[0]);
  });

  it('tells a repeat by its id, although the sealed text differs', async () => {
    const created = event('person.created', ada);
    const first = await events.append(STREAM, 0, [created]);
    expect(await events.append(STREAM, 0, [created])).toEqual(first);
  });

  it('does not open what was moved to another event, field or stream', async () => {
    await events.append(STREAM, 0, [event('person.created', ada)]);
    const [{ data, id }] = (await stored.read(STREAM)) as [RecordedEvent];
    const sealed = data as typeof ada;
    await stored.append(STREAM, 1, [event('person.updated', { name: sealed.name })]);
    await expect(events.read(STREAM, 2)).rejects.toThrow();
    await stored.append(`person-${ENVIRONMENT}-person_2`, 0, [{ ...event('person.created', { name: sealed.name }), id }]);
    await keys.obtain(`person.person-${ENVIRONMENT}-person_2`);
    await expect(events.read(`person-${ENVIRONMENT}-person_2`)).rejects.toThrow(KeyMissing);
    await stored.append(STREAM, 2, [{ ...event('person.updated', { name: sealed.home.street }), id }]);
    await expect(events.read(STREAM, 3)).rejects.toThrow();
  });

  it('forgets a person whose key is destroyed, and nobody else', async () => {
    const other = `person-${ENVIRONMENT}-person_2`;
    for (const stream of [STREAM, other]) await events.append(stream, 0, [event('person.created', { name: 'Ada', nick: 'a' })]);
    await keys.destroy(`person.${STREAM}`);
    const later = new SealingEventStore(stored, keys, sealedFields);
    expect((await later.read(STREAM))[0]!.data).toEqual({ name: null, nick: 'a' });
    expect((await later.read(other))[0]!.data).toEqual({ name: 'Ada', nick: 'a' });
    // Nothing personal is recorded of them any more, and everything else is.
    await expect(later.append(STREAM, 1, [event('person.updated', { name: 'Countess' })])).rejects.toThrow('was destroyed');
    await later.append(STREAM, 1, [event('person.updated', { name: null, nick: 'b' })]);
    expect((await later.read(STREAM)).map(({ data }) => data)).toEqual([
      { name: null, nick: 'a' },
      { name: null, nick: 'b' },
    ]);
  });

  describe('of whose keys one is missing, as after a restore of keys that are older', () => {
    const other = `person-${ENVIRONMENT}-person_2`;
    let restored: SealingEventStore;

    beforeEach(async () => {
      await events.append(STREAM, 0, [event('person.created', { name: 'Ada', nick: 'a' })]);
      await cp(join(directory, 'keys'), join(directory, 'older'), { recursive: true });
      await events.append(other, 0, [event('person.created', { name: 'Grace', nick: 'g' })]);
      restored = new SealingEventStore(stored, await givenKeys(join(directory, 'older')), sealedFields);
    });

    it('names it to whoever reads that person, and says nothing of them', async () => {
      expect((await restored.read(STREAM))[0]!.data).toEqual({ name: 'Ada', nick: 'a' });
      for (const read of [restored.read(other), restored.last(other)]) await expect(read).rejects.toThrow(`The data key person.${other} is missing`);
      await expect(restored.read(other)).rejects.toMatchObject({ kind: 'unavailable', purpose: `person.${other}` });
    });

    it('names it to those who look into the record, and to nobody else', async () => {
      const [ada, grace] = (await followed(restored)) as [RecordedEvent, RecordedEvent];
      expect(ada.data).toEqual({ name: 'Ada', nick: 'a' });
      expect(grace).toMatchObject({ type: 'person.created', stream: other, version: 1 });
      expect(() => grace.data).toThrow(`The data key person.${other} is missing`);
    });

    it('takes nothing more of that person under a new key, and everything of others', async () => {
      await expect(restored.append(other, 1, [event('person.updated', { name: 'Hopper' })])).rejects.toThrow(KeyMissing);
      await expect(restored.read(other)).rejects.toThrow(KeyMissing);
      await restored.append(STREAM, 1, [event('person.updated', { name: 'Countess' })]);
      await restored.append(`person-${ENVIRONMENT}-person_3`, 0, [event('person.created', { name: 'Edsger', nick: 'e' })]);
      await restored.append(`thing-${ENVIRONMENT}-1`, 0, [event('thing.created', { name: 'open' })]);
    });

    it('never takes another key for it', async () => {
      const older = await givenKeys(join(directory, 'older'));
      await older.obtain(`person.${other}`);
      const mixed = new SealingEventStore(stored, older, sealedFields);
      await expect(mixed.read(other)).rejects.toThrow('is another one than this log was sealed with');
    });
  });

  it('asks for the keys of a batch at once, and waits for keys that do not answer', async () => {
    const streams = Array.from({ length: 20 }, (_, index) => `person-${ENVIRONMENT}-person_${index}`);
    for (const stream of streams) await events.append(stream, 0, [event('person.created', { name: 'Ada', nick: 'a' })]);
    const questions: number[] = [];
    const counted = await LmdbKeyStore.open(storage.keys, []);
    const findMany = counted.findMany.bind(counted);
    counted.findMany = async (purposes) => {
      questions.push(purposes.length);
      if (questions.length === 1) throw unavailable('Nobody answers.');
      return findMany(purposes);
    };
    const later = new SealingEventStore(stored, counted, sealedFields);
    const [unread] = await followed(later);
    expect(() => unread!.data).toThrow('Nobody answers.');
    expect((await followed(later)).map(({ data }) => data)).toEqual(streams.map(() => ({ name: 'Ada', nick: 'a' })));
    expect(questions).toEqual([20, 20]);
  });

  it('takes secrets sealed only, and leaves them so', async () => {
    const stream = `webhook_endpoint-${ENVIRONMENT}-we_1`;
    const vault = new Vault(keys);
    await expect(events.append(stream, 0, [event('webhook_endpoint.created', { id: 'we_1', secret: 'whsec_open' })])).rejects.toThrow('data.secret in clear');
    const secret = await vault.seal('whsec_open', { stream, field: 'secret' });
    await events.append(stream, 0, [event('webhook_endpoint.created', { id: 'we_1', secret })]);
    const [{ data }] = (await events.read(stream)) as [RecordedEvent];
    expect((data as { secret: string }).secret).toBe(secret);
    expect(await vault.open(secret, { stream, field: 'secret' })).toBe('whsec_open');
    await expect(vault.open(secret, { stream: `${stream}2`, field: 'secret' })).rejects.toThrow();
  });
});
