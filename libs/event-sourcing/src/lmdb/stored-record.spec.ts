import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { Arena } from '#libs/platform/src/storage/arena';
import { numberKeys } from '#libs/platform/src/storage/lmdb-keys';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { inFormerForm } from '#libs/testing/src/former-records';
import { newEvent, take } from '../log/event-store.contract.ts';
import { contentText, type Envelope } from '../log/lazy-record.ts';
import { LmdbEventStore } from './lmdb.event-store.ts';
import { readRecord, storedRecord } from './stored-record.ts';

const POSITION = '0000000000000004';
const ID = '01M84WGZ371YGPTZD4NRHB0000';
const envelope: Envelope = {
  id: ID,
  stream: 'environment-system-environment_01M84WGZ2A9PJEZA5HESKD0000',
  version: 3,
  position: POSITION,
  type: 'environment_key.created',
  shape: 1,
  public: [],
  meta: {
    environment: 'system',
    actor: { id: 'system', source: 'system', name: null },
    requestId: '01M84WGZ371YGPTZD4NRHA0000',
    commandId: ID,
    at: 1795460463719,
  },
};
const data = {
  id: `environment_key_${ID}`,
  name: 'given at start',
  hash: '2f9f4a4d3181530fce912c18cc67dd8b6c205ad7f4746b9ca275fb95936beca0',
  obfuscated_value: 'sk_…cdef',
};
/** As an earlier release wrote it: the bytes of a log of 2026-11-23. */
const FORMER = Buffer.concat([
  Buffer.from('0c05ea2f', 'hex'),
  Buffer.from(`{"id":"01M84WGZ371YGPTZD4NRHB0000","stream":"environment-system-environment_01M84WGZ2A9PJEZA5HESKD0000","version":3,"position":"0000000000000004","type":"environment_key.created","shape":1,"public":[],"meta":{"environment":"system","actor":{"id":"system","source":"system","name":null},"requestId":"01M84WGZ371YGPTZD4NRHA0000","commandId":"01M84WGZ371YGPTZD4NRHB0000","at":1795460463719}
,"data":{"id":"environment_key_01M84WGZ371YGPTZD4NRHB0000","name":"given at start","hash":"2f9f4a4d3181530fce912c18cc67dd8b6c205ad7f4746b9ca275fb95936beca0","obfuscated_value":"sk_…cdef"}
,"subject":null}`),
]);

function stored(of: Envelope, content: { readonly data: unknown; readonly subject: unknown }): Buffer {
  const texts = { data: contentText(content.data), subject: contentText(content.subject) };
  return Buffer.from(storedRecord(new Arena(), Number(of.position), of, texts));
}

function read(bytes: Buffer, position = POSITION): unknown {
  const record = readRecord(bytes, Number(position), position);
  return record && (JSON.parse(JSON.stringify(record)) as unknown);
}

describe('a record as it is stored', () => {
  it.each([
    ['as this release stores it', stored(envelope, { data, subject: null })],
    ['as earlier releases stored it', FORMER],
  ])('is read %s, at its own place alone, and where nothing was changed', (_how, bytes) => {
    expect(read(bytes)).toEqual({ ...envelope, data, subject: null });
    // Whoever looks changes nothing.
    expect(read(bytes)).toEqual({ ...envelope, data, subject: null });
    expect(read(bytes, '0000000000000005')).toBeNull();
    for (const at of [0, 4, 5, 50, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      expect(read(changed)).toBeNull();
    }
    for (const length of [0, 3, 4, 5]) expect(read(bytes.subarray(0, length))).toBeNull();
  });

  it('is made by the specs as those releases made it', () => {
    expect(inFormerForm(readRecord(FORMER, 4, POSITION)!)).toEqual(FORMER);
  });

  it('has everything that was known of it', () => {
    const full: Envelope = {
      ...envelope,
      public: [{ id: 'event_1', name: 'environment_key.created' }],
      sealed: [{ of: 'user.user_1', fields: ['data.name', 'subject.name'] }],
      meta: {
        environment: 'environment_of_others',
        organization: 'org_1',
        actor: { id: 'user_1', source: 'api', name: 'Zoë\n"\\' },
        requestId: 'line\nbreak',
        commandId: '',
        causationId: 'cause',
        traceparent: '00-1-2-01',
        origin: 'sealed text',
        at: 1,
      },
    };
    for (const each of [
      full,
      { ...full, sealed: [] },
      { ...full, meta: { ...full.meta, traceparent: undefined } as Envelope['meta'] },
      { ...envelope, id: '' },
    ])
      for (const content of [
        { data, subject: { name: 'Zoë', lines: '\n\u0001\n' } },
        { data: null, subject: null },
        { data: `${ID}\u0001${ID}`, subject: ID },
        { data: '\ud800', subject: [] },
      ])
        expect(read(stored(each, content))).toEqual(JSON.parse(JSON.stringify({ ...each, ...content })));
  });

  it('is refused in a form that only a later release knows', () => {
    const bytes = stored(envelope, { data, subject: null });
    bytes[4] = 2;
    bytes.writeUInt32LE(0, 0);
    bytes.writeUInt32LE(crc32(bytes, Number(POSITION)), 0);
    expect(() => read(bytes)).toThrow('form 2');
  });
});

describe('a log of both forms', () => {
  it('is followed, read, gone on with and found whole; five events of a trail lie on a page', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'both-forms-'));
    const before = await LmdbStorage.open({ directory });
    const written = new LmdbEventStore(before);
    const sealed = 'x'.repeat(280);
    const trail = 'audit_trail-environment_01M84WGZ2A9PJEZA5HESKD0000-org_01M84WGZK2A9FJZPE68EM30000';
    const event = (): ReturnType<typeof newEvent> => {
      const made = newEvent();
      return {
        ...made,
        type: 'audit_event.recorded',
        data: { id: `audit_event_${made.id}`, occurred_at: 1795460463719, commitment: 'x'.repeat(43), digest: 'x'.repeat(22), terms: 'x'.repeat(60), sealed },
        subject: null,
        public: [],
        meta: {
          environment: 'environment_01M84WGZ2A9PJEZA5HESKD0000',
          actor: { id: `environment_key_${ID}`, source: 'api', name: 'given at start' },
          requestId: `req_${ID}`,
          commandId: '',
          at: 1795460463719,
        },
      };
    };
    for (let version = 0; version < 20; version++) await written.append(version % 2 === 0 ? trail : 'thing-1', version >> 1, [event()]);
    const all = JSON.stringify(await take(written, 20));
    const records = before.log.db('log', numberKeys);
    for (const record of await take(written, 10)) records.put(Number(record.position), inFormerForm(record));
    await before.close();

    const storage = await LmdbStorage.open({ directory });
    const store = new LmdbEventStore(storage);
    const forms = [...storage.log.db('log', numberKeys).getRange({ start: 1 })].map(({ value }) => value[4]);
    expect(new Set(forms)).toEqual(new Set(['{'.charCodeAt(0), 1]));
    expect(JSON.stringify(await take(store, 20))).toBe(all);
    expect((await store.read(trail)).map(({ version }) => version)).toEqual(Array.from({ length: 10 }, (_, index) => index + 1));
    expect(await store.idAt('0000000000000001')).toBe((await store.read(trail))[0]!.id);
    for (let version = 10; version < 2_010; version += 100) await store.append(trail, version, Array.from({ length: 100 }, event));
    for await (const problem of store.verify()) throw new Error(problem.detail);
    await storage.close();
    const { size } = await stat(join(directory, 'log', 'data.mdb'));
    // Of which the index of streams takes 150, and what is free or of no tree 40; with four on a page it were 1,220.
    expect(size / 2_020).toBeLessThan(1_100);
    await rm(directory, { recursive: true });
  });
});
