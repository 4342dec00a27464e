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
import { type LooksInto, START, type NewEvent, type RecordedEvent } from '../log/event-store.ts';
import { UnopenedRecord } from '../log/lazy-record.ts';
import { JustSealed } from './just-sealed.ts';
import { LmdbKeyStore } from './lmdb.key-store.ts';
import { KeyMissing } from './key-store.ts';
import { markedFieldsOf } from './marked-fields.ts';
import { SealingEventStore } from './sealing.event-store.ts';
import { Vault } from './vault.ts';

const { jest } = import.meta;
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
  const marked = markedFieldsOf({ person: Person, webhook_endpoint: WebhookEndpoint });

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealing-'));
    storage = await LmdbStorage.open({ directory });
    stored = new LmdbEventStore(storage);
    keys = await LmdbKeyStore.open(storage.keys, []);
    events = new SealingEventStore(stored, keys, marked);
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

  const fieldsOf = (...names: readonly string[]): readonly string[] => ['data', 'subject'].flatMap((part) => names.map((name) => `${part}.${name}`));

  /** As the decider of a person declares it: all of them, whatever is there. */
  function personal(type: string, data: unknown, subject: unknown = null, id = '1'): NewEvent {
    return { ...event(type, data, subject), sealed: [{ of: `person.person_${id}`, fields: fieldsOf('name', 'home.street', 'addresses.*.street') }] };
  }

  async function followed(store: SealingEventStore | LmdbEventStore): Promise<readonly RecordedEvent[]> {
    for await (const batch of store.subscribe(START, new AbortController().signal)) return batch;
    return [];
  }

  it('holds no personal field in clear, in facts or snapshot, and is read as it was written', async () => {
    await events.append(STREAM, 0, [personal('person.created', ada, ada)]);
    const text = JSON.stringify(await stored.read(STREAM));
    for (const personal of ['Lovelace', 'Cumberland', 'Fordhook']) expect(text).not.toContain(personal);
    expect(text).toContain('countess');
    expect((await events.read(STREAM))[0]).toMatchObject({ data: ada, subject: ada });
    expect((await followed(events))[0]).toMatchObject({ data: ada, subject: ada });
  });

  it('gives all readers of a record the same object', async () => {
    await events.append(STREAM, 0, [personal('person.created', ada)]);
    expect((await followed(events))[0]).toBe((await followed(events))[0]);
  });

  it('deciphers nothing that it has sealed a moment ago, and forgets it with the key', async () => {
    const justSealed = new JustSealed();
    const own = new SealingEventStore(stored, keys, marked, justSealed);
    await own.append(STREAM, 0, [personal('person.created', ada, ada)]);
    expect(justSealed.size).toBe(1);
    expect((await own.read(STREAM))[0]).toMatchObject({ data: ada, subject: ada });
    expect(justSealed.size).toBe(0);
    await own.append(STREAM, 1, [personal('person.updated', ada)]);
    await keys.destroy(`person.person-${ENVIRONMENT}-person_1`);
    expect((await own.read(STREAM, 2))[0]).toMatchObject({ data: { name: null, nick: 'countess' } });
  });

  it('leaves absent and null fields, and every other type, as they are', async () => {
    await events.append(STREAM, 0, [personal('person.updated', { name: null, nick: 'ada' })]);
    expect((await stored.read(STREAM))[0]!.data).toEqual({ name: null, nick: 'ada' });
    const other = event('thing.created', { name: 'open' });
    await events.append(`thing-${ENVIRONMENT}-1`, 0, [other]);
    const read = await events.read(`thing-${ENVIRONMENT}-1`);
    expect(read[0]).toBe((await stored.read(`thing-${ENVIRONMENT}-1`))[0]);
  });

  it('asks once for the key of a stream that begins: nothing can have been sealed there', async () => {
    const asked = jest.spyOn(storage.keys, 'getMany');
    await events.append(STREAM, 0, [personal('person.created', ada)]);
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('tells a repeat by its id, although the sealed text differs', async () => {
    const created = personal('person.created', ada);
    const first = await events.append(STREAM, 0, [created]);
    expect(await events.append(STREAM, 0, [created])).toEqual(first);
  });

  it('does not open what was moved to another event, field or stream', async () => {
    await events.append(STREAM, 0, [personal('person.created', ada)]);
    const [{ data, id }] = (await stored.read(STREAM)) as [RecordedEvent];
    const sealed = data as typeof ada;
    await stored.append(STREAM, 1, [personal('person.updated', { name: sealed.name })]);
    await expect(events.read(STREAM, 2)).rejects.toThrow();
    await stored.append(`person-${ENVIRONMENT}-person_2`, 0, [{ ...personal('person.created', { name: sealed.name }, null, '2'), id }]);
    await keys.obtain(`person.person-${ENVIRONMENT}-person_2`);
    await expect(events.read(`person-${ENVIRONMENT}-person_2`)).rejects.toThrow(KeyMissing);
    await stored.append(STREAM, 2, [{ ...personal('person.updated', { name: sealed.home.street }), id }]);
    await expect(events.read(STREAM, 3)).rejects.toThrow();
  });

  it('forgets a person whose key is destroyed, and nobody else', async () => {
    const other = `person-${ENVIRONMENT}-person_2`;
    for (const [id, stream] of [
      ['1', STREAM],
      ['2', other],
    ] as const)
      await events.append(stream, 0, [personal('person.created', { name: 'Ada', nick: 'a' }, null, id)]);
    await keys.destroy(`person.${STREAM}`);
    const later = new SealingEventStore(stored, keys, marked);
    expect((await later.read(STREAM))[0]!.data).toEqual({ name: null, nick: 'a' });
    expect((await later.read(other))[0]!.data).toEqual({ name: 'Ada', nick: 'a' });
    // Nothing personal is recorded of them any more, and everything else is.
    await expect(later.append(STREAM, 1, [personal('person.updated', { name: 'Countess' })])).rejects.toMatchObject({ code: 'entity_not_found' });
    await later.append(STREAM, 1, [personal('person.updated', { name: null, nick: 'b' })]);
    expect((await later.read(STREAM)).map(({ data }) => data)).toEqual([
      { name: null, nick: 'a' },
      { name: null, nick: 'b' },
    ]);
  });

  describe('of whose keys one is missing, as after a restore of keys that are older', () => {
    const other = `person-${ENVIRONMENT}-person_2`;
    let restored: SealingEventStore;

    beforeEach(async () => {
      await events.append(STREAM, 0, [personal('person.created', { name: 'Ada', nick: 'a' })]);
      await cp(join(directory, 'keys'), join(directory, 'older'), { recursive: true });
      await events.append(other, 0, [personal('person.created', { name: 'Grace', nick: 'g' }, null, '2')]);
      restored = new SealingEventStore(stored, await givenKeys(join(directory, 'older')), marked);
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
      await expect(restored.append(other, 1, [personal('person.updated', { name: 'Hopper' }, null, '2')])).rejects.toThrow(KeyMissing);
      await expect(restored.read(other)).rejects.toThrow(KeyMissing);
      await restored.append(STREAM, 1, [personal('person.updated', { name: 'Countess' })]);
      await restored.append(`person-${ENVIRONMENT}-person_3`, 0, [personal('person.created', { name: 'Edsger', nick: 'e' }, null, '3')]);
      await restored.append(`thing-${ENVIRONMENT}-1`, 0, [event('thing.created', { name: 'open' })]);
    });

    it('never takes another key for it', async () => {
      const older = await givenKeys(join(directory, 'older'));
      await older.obtain(`person.${other}`);
      const mixed = new SealingEventStore(stored, older, marked);
      await expect(mixed.read(other)).rejects.toThrow('is another one than this log was sealed with');
    });
  });

  it('asks for the keys of a batch at once, and waits for keys that do not answer', async () => {
    const streams = Array.from({ length: 20 }, (_, index) => `person-${ENVIRONMENT}-person_${index}`);
    for (const [index, stream] of streams.entries())
      await events.append(stream, 0, [personal('person.created', { name: 'Ada', nick: 'a' }, null, String(index))]);
    const questions: number[] = [];
    const counted = await LmdbKeyStore.open(storage.keys, []);
    const findMany = counted.findMany.bind(counted);
    counted.findMany = async (purposes) => {
      questions.push(purposes.length);
      if (questions.length === 1) throw unavailable('Nobody answers.');
      return findMany(purposes);
    };
    const later = new SealingEventStore(stored, counted, marked);
    const [unread] = await followed(later);
    expect(() => unread!.data).toThrow('Nobody answers.');
    expect((await followed(later)).map(({ data }) => data)).toEqual(streams.map(() => ({ name: 'Ada', nick: 'a' })));
    expect(questions).toEqual([20, 20]);
  });

  it('asks for no keys of what nobody looks into, which says so', async () => {
    for (const id of ['1', '2']) await events.append(`person-${ENVIRONMENT}-person_${id}`, 0, [personal('person.created', ada, null, id)]);
    const asked: string[] = [];
    const counted = await LmdbKeyStore.open(storage.keys, []);
    const findMany = counted.findMany.bind(counted);
    counted.findMany = async (purposes) => {
      asked.push(...purposes);
      return findMany(purposes);
    };
    const later = new SealingEventStore(stored, counted, marked);
    const read = async (looksInto: LooksInto): Promise<readonly RecordedEvent[]> => {
      for await (const batch of later.subscribe(START, new AbortController().signal, looksInto)) return batch;
      return [];
    };
    await read(() => false);
    expect(asked).toEqual([]);
    const [unopened, opened] = await read(({ stream }) => stream.endsWith('2'));
    expect(asked).toHaveLength(1);
    expect(opened!.data).toEqual(ada);
    expect([unopened!.type, unopened instanceof UnopenedRecord]).toEqual(['person.created', true]);
    expect(() => unopened!.data).toThrow('Nobody was to look into this record.');
  });

  it('says in the record what is sealed in it, and nothing of what is not', async () => {
    await events.append(STREAM, 0, [personal('person.created', ada, { name: null, nick: 'countess', home: ada.home })]);
    await events.append(`thing-${ENVIRONMENT}-1`, 0, [event('thing.created', { name: 'open' })]);
    const sealed = [{ of: 'person.person_1', fields: ['data.name', 'data.home.street', 'data.addresses.*.street', 'subject.home.street'] }];
    expect((await stored.read(STREAM))[0]!.sealed).toEqual(sealed);
    expect((await events.read(STREAM))[0]!.sealed).toEqual(sealed);
    expect(Object.keys(JSON.parse(JSON.stringify((await stored.read(`thing-${ENVIRONMENT}-1`))[0])) as object)).not.toContain('sealed');
  });

  describe('of several holders', () => {
    const SESSION = `session-${ENVIRONMENT}-session_1`;
    const data = {
      ip: '203.0.113.7',
      invitation: { email: 'ada@acme.test', note: null },
      events: [{ text: 'one', at: 1 }, { at: 2 }],
      whole: { any: ['thing'] },
      open: 1,
    };
    const sealed = [
      { of: 'user.user_1', fields: ['data.ip', 'data.whole'] },
      { of: 'invitation.invitation_1', fields: ['data.invitation.email', 'data.invitation.note'] },
      { of: 'organization.org_1.2026-11', fields: ['data.events.*.text'] },
    ];
    const purposes = [
      `person.user-${ENVIRONMENT}-user_1`,
      `person.invitation-${ENVIRONMENT}-invitation_1`,
      `person.organization-${ENVIRONMENT}-org_1.2026-11`,
    ] as const;

    beforeEach(async () => {
      await events.append(SESSION, 0, [{ ...event('session.created', data), sealed }]);
    });

    it('lies under the key of each, items of lists and whole objects too', async () => {
      const text = JSON.stringify(await stored.read(SESSION));
      for (const value of ['203.0.113.7', 'ada@acme.test', 'one', 'thing']) expect(text).not.toContain(`"${value}"`);
      expect((await stored.read(SESSION))[0]).toMatchObject({ data: { open: 1, whole: expect.stringMatching(/^enc\.v1\./), events: [{ at: 1 }, { at: 2 }] } });
      expect((await events.read(SESSION))[0]!.data).toEqual(data);
      expect((await keys.findMany(purposes)).size).toBe(3);
    });

    it('is forgotten for one, and stays for the others', async () => {
      await keys.destroy(purposes[0], purposes[2]);
      const [read] = await new SealingEventStore(stored, keys, marked).read(SESSION);
      expect(read!.data).toEqual({ ...data, ip: null, whole: null, events: [{ text: null, at: 1 }, { at: 2 }] });
    });

    it('is forgotten by a process that has read it before', async () => {
      expect((await events.read(SESSION))[0]!.data).toEqual(data);
      await keys.destroy(purposes[1]);
      expect((await events.read(SESSION))[0]!.data).toEqual({ ...data, invitation: { email: null, note: null } });
      expect((await followed(events)).at(-1)!.data).toEqual({ ...data, invitation: { email: null, note: null } });
    });

    it('has one key with whatever lies in the stream of the holder itself', async () => {
      const own = `user-${ENVIRONMENT}-user_1`;
      await events.append(own, 0, [{ ...event('user.updated', { name: 'Ada' }), sealed: [{ of: 'user.user_1', fields: ['data.name'] }] }]);
      await keys.destroy(purposes[0]);
      expect((await events.read(own))[0]!.data).toEqual({ name: null });
      expect((await events.read(SESSION))[0]!.data).toMatchObject({ ip: null });
    });

    it('is opened many records at once, with one question to the keys', async () => {
      const other = await LmdbKeyStore.open(storage.keys, []);
      const questions: (readonly string[])[] = [];
      const findMany = other.findMany.bind(other);
      other.findMany = (asked) => {
        questions.push(asked);
        return findMany(asked);
      };
      const records = [...(await stored.read(SESSION)), ...(await stored.read(SESSION))];
      const opened = await new SealingEventStore(stored, other, marked).inClear(records);
      expect(opened.map((record) => record.data)).toEqual([data, data]);
      expect(questions).toEqual([purposes]);
    });
  });

  it('takes nothing that a contract marks as personal and nobody has declared', async () => {
    await expect(events.append(STREAM, 0, [event('person.created', ada)])).rejects.toThrow('holds data.name in clear');
    const half = { ...event('person.created', null, ada), sealed: [{ of: 'person.person_1', fields: ['subject.name', 'subject.home', 'data.addresses'] }] };
    await expect(events.append(STREAM, 0, [half])).rejects.toThrow('holds subject.addresses.*.street in clear');
    await events.append(STREAM, 0, [{ ...half, sealed: [{ of: 'person.person_1', fields: ['subject.name', 'subject.home', 'subject.addresses'] }] }]);
    expect((await events.read(STREAM))[0]!.subject).toEqual(ada);
    expect((await stored.read(STREAM))[0]!.subject).toMatchObject({ home: expect.stringMatching(/^enc/), addresses: expect.stringMatching(/^enc/) });
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
