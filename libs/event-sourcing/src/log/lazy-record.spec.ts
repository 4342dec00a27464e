import { LazyRecord, readStored, storedText, UnreadableRecord, withContent, type Envelope } from './lazy-record.ts';

const envelope: Envelope = {
  id: '01HZZZZZZZZZZZZZZZZZZZZZZZ',
  stream: 'person-environment_1-1',
  version: 1,
  position: '0000000000000001',
  type: 'person.named',
  shape: 1,
  public: [{ id: 'event_1', name: 'person.named' }],
  meta: { environment: 'environment_1', actor: { id: 'spec', source: 'system', name: null }, requestId: '', commandId: '', at: 1 },
};

describe('a record', () => {
  const content = { data: '{"name":"Zoë\\n,\\"subject\\":"}', subject: 'null' };

  it('is stored as one JSON object, which an earlier release reads as it reads its own', () => {
    expect(JSON.parse(storedText(envelope, content))).toEqual({ ...envelope, data: { name: 'Zoë\n,"subject":' }, subject: null });
  });

  it.each([
    ['as this release stores it', storedText(envelope, content)],
    ['as earlier releases stored it', JSON.stringify({ data: { name: 'Zoë\n,"subject":' }, subject: null, ...envelope })],
    ['written by hand', JSON.stringify({ ...envelope, data: { name: 'Zoë\n,"subject":' }, subject: null }, null, 2)],
  ])('is read %s', (_how, text) => {
    const stored = readStored(text);
    const record = new LazyRecord(stored.envelope as unknown as Envelope, stored.content);
    expect(JSON.parse(JSON.stringify(record))).toEqual({ ...envelope, data: { name: 'Zoë\n,"subject":' }, subject: null });
  });

  it('gets other content when somebody asks for it, the same for all who ask', () => {
    let asked = 0;
    const make = (): object => ({ asked: ++asked });
    const record = withContent(new LazyRecord(envelope, content), { shape: 2, data: make, subject: () => null });
    // What it takes in memory is that of the text.
    expect({ ...record }).toEqual({ ...envelope, shape: 2, bytes: content.data.length + content.subject.length });
    expect(asked).toBe(0);
    expect(record.data).toBe(record.data);
    expect(record.data).toEqual({ asked: 1 });
  });

  it('makes its content again once it was let go of, and so does what that is made of', () => {
    const stored = new LazyRecord(envelope, content);
    const made = withContent(stored, { data: () => ({ of: stored.data }), subject: () => null });
    const before = [made.data, stored.data];
    (made as LazyRecord).letGo();
    expect([made.data, stored.data]).toEqual(before);
    expect([made.data === before[0], stored.data === before[1]]).toEqual([false, false]);
  });

  it('is asked again where its content could not be made', () => {
    let isAway = true;
    const data = (): string => {
      if (isAway) throw new Error('away');
      return 'there';
    };
    const record = withContent(envelope, { data, subject: () => null });
    expect(() => record.data).toThrow('away');
    isAway = false;
    expect(record.data).toBe('there');
  });

  it('that cannot be read tells its envelope to everybody, and its reason to whoever asks for more', () => {
    const reason = new Error('no key');
    const record = new UnreadableRecord(envelope, reason);
    expect({ ...record }).toEqual({ ...envelope, reason, bytes: 0 });
    for (const ask of [() => record.data, () => record.subject, () => record.data, () => JSON.stringify(record)]) expect(ask).toThrow(reason);
  });
});
