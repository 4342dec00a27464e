import { PUBLIC_EVENT_NAMES } from '#libs/contracts/src/events';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import type { RecordedEvent } from '../log/event-store.ts';
import { markedFieldsOf } from '../sealing/marked-fields.ts';
import { announcesLater, publicEventsOf } from './public-events.ts';

const subject = {
  object: 'organization',
  id: 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ',
  name: 'Acme "Ü" \u2028',
  domains: [],
  metadata: { tier: 'gold' },
  external_id: null,
  created_at: '2026-01-15T12:00:00.000Z',
  updated_at: '2026-01-15T12:00:00.000Z',
  allow_profiles_outside_organization: true,
  password_hash: 'never',
};

function recorded(changes: Partial<RecordedEvent> = {}): RecordedEvent {
  const meta = {
    environment: 'environment_1',
    organization: subject.id,
    actor: { id: 'key_1', source: 'api', name: 'continuous integration' },
    requestId: 'r',
    commandId: 'c',
    at: Date.parse('2026-01-15T12:00:00.000Z'),
  };
  const event = {
    id: 'a',
    type: 'organization.created',
    shape: 1,
    data: { private: true },
    subject,
    public: [{ id: 'event_1', name: 'organization.created' }],
    meta,
  };
  return { ...event, stream: 'organization-environment_1-1', version: 1, position: '1', ...changes };
}

describe('the public events of a record', () => {
  it('are what everybody may see, through the allow-list of their class', () => {
    const [event] = publicEventsOf(recorded());
    expect(event).toMatchObject({ id: 'event_1', name: 'organization.created', organization: subject.id, createdAt: '2026-01-15T12:00:00.000Z' });
    const { allow_profiles_outside_organization, password_hash, ...data } = subject;
    expect(JSON.parse(event!.text)).toEqual({
      object: 'event',
      id: 'event_1',
      event: 'organization.created',
      data,
      created_at: '2026-01-15T12:00:00.000Z',
      context: { actor: { id: 'key_1', source: 'api', name: 'continuous integration' } },
    });
  });

  it('say in their context, too, what was there before', () => {
    const key = {
      object: 'api_key',
      id: 'api_key_01HZZZZZZZZZZZZZZZZZZZZZZZ',
      owner: { type: 'organization', id: subject.id },
      name: 'Build',
      permissions: [],
    };
    const shown = {
      ...key,
      obfuscated_value: 'sk_…abcd',
      last_used_at: null,
      expires_at: null,
      created_at: subject.created_at,
      updated_at: subject.created_at,
    };
    const previous_attributes = { expires_at: subject.created_at };
    const record = recorded({ subject: { ...shown, previous_attributes }, public: [{ id: 'event_1', name: 'api_key.updated' }] });
    expect(JSON.parse(publicEventsOf(record)[0]!.text)).toMatchObject({ data: { previous_attributes }, context: { previous_attributes } });
  });

  it('are texts that receivers may parse and write again', () => {
    const { text } = publicEventsOf(recorded())[0]!;
    expect(JSON.stringify(JSON.parse(text))).toBe(text);
  });

  it('are written once for all who ask', () => {
    const record = recorded();
    expect(publicEventsOf(record)).toBe(publicEventsOf(record));
  });

  it('are none, one or several', () => {
    expect(publicEventsOf(recorded({ public: [] }))).toEqual([]);
    const both = [
      { id: 'event_1', name: 'organization.created' },
      { id: 'event_2', name: 'organization.updated' },
    ];
    expect(publicEventsOf(recorded({ public: both })).map(({ id, name }) => ({ id, name }))).toEqual(both);
  });

  it.each(PUBLIC_EVENT_NAMES)('never show a secret: %s', (name) => {
    expect(markedFieldsOf({})(name).secret).toEqual([]);
  });

  it('are told by a later release where this one has no contract class', () => {
    const name = 'organization.of_a_later_release';
    const told = [{ id: 'event_1', name: 'organization.created' }];
    for (const record of [recorded({ public: [{ id: 'event_2', name }] }), recorded({ public: [...told, { id: 'event_2', name }] })]) {
      expect(announcesLater(record)).toBe(true);
      expect(() => publicEventsOf(record)).toThrow(NeedsLaterRelease);
    }
    expect(announcesLater(recorded({ public: told }))).toBe(false);
  });
});
