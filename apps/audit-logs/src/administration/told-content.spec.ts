import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { canonicalText } from '../domain/audit-content.ts';
import { AdministeredStream } from './administered-stream.ts';
import { toldContent } from './told-content.ts';

const ENVIRONMENT = 'environment_01KF0000000000000000000000';
const ORIGIN = { address: '192.0.2.1', userAgent: 'console/1.0' };

describe('what an audit event says of a fact', () => {
  const recordOf = (type: string, data: object, version: number, meta: object = {}): RecordedEvent => ({
    ...{ id: '01KF0000000000000000000000', stream: `some-${ENVIRONMENT}-key`, version, position: '1', type, shape: 1, data, subject: null, public: [] },
    meta: {
      ...{ environment: ENVIRONMENT, requestId: 'request', commandId: `command ${version}`, at: 1 },
      actor: { id: 'environment_key_01KF0000000000000000000000', source: 'api', name: 'console' },
      ...meta,
    },
  });
  const told = (...facts: readonly (readonly [type: string, data: object, meta?: object])[]) => {
    const stream = new AdministeredStream();
    return facts.map(([type, data, meta], index) => {
      const record = recordOf(type, data, index + 1, meta);
      const change = stream.take(record);
      return change === null ? null : toldContent(record, change, ORIGIN);
    });
  };
  const system = { actor: { id: 'system', source: 'system', name: null } };

  it('is what was before in the facts of its stream, and what defaults say', () => {
    const [, changed, again] = told(
      ['environment_settings.changed', { mfa: 'required', sms: { webhook_secret: 'enc.v1.a.b' } }],
      ['environment_settings.changed', { mfa: 'off', sms: { webhook_secret: 'enc.v1.a.c' } }],
      ['environment_settings.changed', { mfa: 'off', sign_up: true }],
    );
    expect(changed!.metadata).toEqual({
      'before-mfa': 'required',
      'after-mfa': 'off',
      'before-sms-webhook_secret': '(secret)',
      'after-sms-webhook_secret': '(secret)',
      request_id: 'request',
    });
    expect(again!.metadata).toEqual({ request_id: 'request' });
  });

  it('of the stream of a trail is where it goes, and never by what secret', () => {
    const [settings, change] = [
      { type: 'Splunk', url: 'https://hec.test/', secret: 'enc.v1.a.b', index: null, source: null, sourcetype: null },
      'als_change_1',
    ];
    const [created, moved, kept, paused, ended] = told(
      [
        'audit_log_stream.created',
        { id: 'als_1', change, organization_id: 'org_1', ...settings, after: { events: 0, checkpoints: 0 } },
        { organization: 'org_1' },
      ],
      ['audit_log_stream.updated', { id: 'als_1', change, ...settings, secret: 'enc.v1.a.c', url: 'https://elsewhere.test/' }],
      ['audit_log_stream.updated', { id: 'als_1', change, ...settings, secret: 'enc.v1.a.c', url: 'https://elsewhere.test/', index: 'audit' }],
      ['audit_log_stream.paused', { id: 'als_1', change }],
      ['audit_log_stream.deleted', { id: 'als_1' }, system],
    );
    expect(created).toMatchObject({
      targets: [
        { type: 'audit_log_stream', id: 'als_1' },
        { type: 'organization', id: 'org_1' },
      ],
    });
    expect(created!.metadata).toMatchObject({ 'after-url': 'https://hec.test/', 'after-secret': '(secret)' });
    expect(moved!.metadata).toMatchObject({ 'before-url': 'https://hec.test/', 'after-url': 'https://elsewhere.test/', 'after-secret': '(secret)' });
    expect(kept!.metadata).toEqual({ 'after-index': 'audit', request_id: 'request' });
    expect(paused!.metadata).toMatchObject({ 'before-is_paused': false, 'after-is_paused': true });
    expect(ended).toBeNull();
  });

  it('of what has ended is all that it was', () => {
    const role = { id: 'role_1', slug: 'editor', name: 'Editor', description: null, resource_type_id: null, resource_type_slug: 'organization' };
    const permission = { ...role, id: 'perm_1', slug: 'edit', name: 'Edit', system: false };
    const events = told(
      ['authorization_model.seeded', { permissions: [{ ...permission, id: 'perm_2', slug: 'seeded' }], roles: [] }],
      ['permission.created', permission],
      ['role.created', { ...role, permissions: [permission, { id: 'perm_2', slug: 'seeded' }] }],
      ['permission.deleted', { id: 'perm_1' }],
      ['role.updated', { id: 'role_1' }],
      ['role.deleted', { id: 'role_1' }],
    );
    expect(events[0]).toBeNull();
    expect(events[3]).toMatchObject({ targets: [{ type: 'permission', id: 'perm_1', name: 'Edit' }], metadata: { 'before-slug': 'edit' } });
    expect(events[4]).toBeNull();
    expect(events[5]!.metadata).toMatchObject({ 'before-permissions': '["seeded"]', 'before-name': 'Editor' });
  });

  it('leaves out what follows from something else, and what is no administration', () => {
    const domain = { id: 'd', domain: 'acme.test', state: 'verified', verification_strategy: 'manual' };
    const made = { commandId: 'made' };
    const events = told(
      ['organization.created', { id: 'o', name: 'Acme', domains: [domain] }, made],
      ['organization_domain.created', domain, made],
      ['organization_domain.verified', { id: 'd', verification_strategy: 'manual' }, made],
      ['organization_domain.created', { ...domain, id: 'e' }],
      ['organization_domain.deleted', { id: 'e' }],
      ['organization.deleted', { id: 'o' }],
      ['organization_domain.deleted', { id: 'd' }, system],
    );
    expect(events.map((each) => each?.action ?? null)).toEqual([
      null,
      null,
      null,
      'organization_domain.created',
      'organization_domain.deleted',
      'organization.deleted',
      null,
    ]);
    const key = (type: string) => ({ id: 'k', owner: { type, id: 'x' }, name: 'n', obfuscated_value: 'v', permissions: [], expires_at: null });
    for (const [type, count] of [
      ['organization', 3],
      ['user', 0],
    ] as const)
      expect(
        told(['api_key.created', key(type)], ['api_key.updated', { id: 'k', expires_at: 'x' }], ['api_key.revoked', { id: 'k' }]).filter(Boolean),
      ).toHaveLength(count);
    expect(told(['api_key.created', key('organization')], ['api_key.revoked', { id: 'k' }, system])[1]).toBeNull();
  });

  it('names who typed a command, and nobody where the system acted', () => {
    const typed = { actor: { id: 'command_line', source: 'system', name: 'command line' } };
    const key = ['token_key.created', { public_key: { kid: 'k', alg: 'RS256' }, signs_from: 'x' }] as const;
    const record = recordOf(...key, 1, typed);
    const change = new AdministeredStream().take(record)!;
    expect(toldContent(record, change, { ...ORIGIN, operator: 'Ada' })).toMatchObject({ actor: { id: 'command_line', type: 'command_line', name: 'Ada' } });
    expect(toldContent(record, change, null)).toMatchObject({ actor: { name: null }, context: { location: '', user_agent: null } });
    expect(told([...key, system])[0]).toMatchObject({ actor: { id: 'system', type: 'system' }, metadata: { 'after-algorithm': 'RS256' } });
  });

  it('is cut where it is too long, and says so; without halves of characters', () => {
    const long = '𝒳'.repeat(20_000);
    const [cut] = told(['jwt_template.set', { content: `\ud800${long}` }]);
    expect(cut!.metadata['after-content']).toMatch(/^\ufffd𝒳+… \(40001 characters\)$/u);
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`part_${index}`, { one: long, other: long }]));
    const [all] = told(['environment_settings.changed', many]);
    expect(Object.keys(all!.metadata)).toHaveLength(41);
    expect(Buffer.byteLength(canonicalText(all!))).toBeLessThanOrEqual(32 * 1024);
    const most = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`part_${index}`, index]));
    const [some] = told(['environment_settings.changed', most]);
    expect(Object.keys(some!.metadata)).toHaveLength(50);
    expect(some!.metadata['left_out']).toBe(12);
  });
});
