import type { DomainError } from '#libs/platform/src/domain-error';
import { readTemplate, type TemplateSubjects } from './token-template.decider.ts';

const subjects: TemplateSubjects = {
  user: {
    email: 'ada@acme.test',
    first_name: 'Ada',
    last_name: null,
    email_verified: true,
    metadata: { plan: 'gold', 'team-id': '7', odd: '{{ user.email }}"}' },
  },
  organization: { id: 'org_1', name: 'Acme "A" Inc', metadata: {} },
  organization_membership: { role: { slug: 'admin' }, roles: [{ slug: 'admin' }], custom_attributes: { level: 3 } },
};
const rendered = (template: object, of: TemplateSubjects = subjects) => readTemplate(JSON.stringify(template))(of);

describe('a template of tokens', () => {
  it('inserts values as they are', () =>
    expect(
      rendered({
        email: '{{ user.email }}',
        verified: '{{user.email_verified}}',
        level: '{{ organization_membership.custom_attributes.level }}',
        all: '{{ organization_membership.roles }}',
      }),
    ).toEqual({ email: 'ada@acme.test', verified: true, level: 3, all: [{ slug: 'admin' }] }));

  it('makes text of them within a text', () =>
    expect(rendered({ name: '{{ user.first_name }} {{ user.last_name }}of {{organization.name}} ({{ user.email_verified }})' })).toEqual({
      name: 'Ada of Acme "A" Inc (true)',
    }));

  it('takes the first alternative that is there', () =>
    expect(
      rendered({
        plan: '{{ organization.metadata.plan || user.metadata.plan || "free" }}',
        name: "{{ user.last_name || 'nobody' }}",
        team: '{{ user.metadata.team-id }}',
      }),
    ).toEqual({
      plan: 'gold',
      name: 'nobody',
      team: '7',
    }));

  it('keeps what is no expression, at any depth', () =>
    expect(rendered({ fixed: [1, true, null, 'text', { deep: '{{ user.email }}' }], role: 'owner', aud: ['https://api.acme.test'] })).toEqual({
      fixed: [1, true, null, 'text', { deep: 'ada@acme.test' }],
      role: 'owner',
      aud: ['https://api.acme.test'],
    }));

  it('never reads a value as a template, or as JSON', () =>
    expect(rendered({ odd: 'x{{ user.metadata.odd }}', same: '{{ user.metadata.odd }}' })).toEqual({ odd: 'x{{ user.email }}"}', same: '{{ user.email }}"}' }));

  it('has null for what is not there, and leaves role and aud out then', () => {
    const without = { ...subjects, organization: null, organization_membership: null };
    expect(rendered({ org: '{{ organization.name }}', role: '{{ organization_membership.role.slug }}', aud: '{{ organization.id }}' }, without)).toEqual({
      org: null,
    });
  });

  it('reads nothing that objects only inherit', () =>
    expect(rendered({ a: '{{ user.constructor }}', b: '{{ user.metadata.__proto__ || user.toString }}', c: '{{ user.email.length }}' })).toEqual({
      a: null,
      b: null,
      c: null,
    }));

  it.each([
    ['no JSON', '{"a": {{ user.email }}}'],
    ['a list', '[]'],
    ['text', '"{{ user.email }}"'],
    ['a call', '{"a": "{{ user.email.toUpperCase() }}"}'],
    ['a computation', '{"a": "{{ 1 + 1 }}"}'],
    ['a loop', '{"a": "{% for x in user %}{{ x }}{% endfor %}"}'],
    ['another subject', '{"a": "{{ process.env }}"}'],
    ['a whole subject', '{"a": "{{ user }}"}'],
    ['no expression', '{"a": "{{ }}"}'],
    ['an expression without an end', '{"a": "{{ user.email"}'],
    ['an unfinished alternative', '{"a": "{{ user.email || }}"}'],
    ['__proto__', '{"a": {"__proto__": {"admin": true}}}'],
    ['too much depth', '{"a":'.repeat(9) + '1' + '}'.repeat(9)],
    ['too many values', JSON.stringify({ a: Array.from({ length: 500 }, () => 1) })],
    ['too many expressions', JSON.stringify({ a: '{{ user.a }}'.repeat(500) })],
  ])('refuses %s', (_, content) => expect(() => readTemplate(content)).toThrow(expect.objectContaining({ code: 'invalid_request_parameters' }) as DomainError));

  it.each([
    'iss',
    'sub',
    'exp',
    'iat',
    'nbf',
    'jti',
    'sid',
    'org_id',
    'act',
    'client_id',
    'auth_time',
    'roles',
    'permissions',
    'entitlements',
    'feature_flags',
  ])('may not set %s', (name) => {
    const details = { errors: [expect.objectContaining({ code: 'reserved_claim', field: 'content' })] };
    expect(() => readTemplate(JSON.stringify({ [name]: 'x' }))).toThrow(expect.objectContaining({ details }) as DomainError);
    expect(rendered({ inner: { [name]: 'x' } })).toEqual({ inner: { [name]: 'x' } });
  });

  it('adds at most 3,072 bytes', () => {
    const of = (length: number): TemplateSubjects => ({ ...subjects, user: { text: 'x'.repeat(length) } });
    expect(Buffer.byteLength(JSON.stringify(rendered({ a: '{{ user.text }}' }, of(3_064))))).toBe(3_072);
    expect(() => rendered({ a: '{{ user.text }}' }, of(3_065))).toThrow(expect.objectContaining({ code: 'token_too_big' }) as DomainError);
    expect(() => rendered({ a: '{{ user.text }}' }, { ...subjects, user: { text: 'é'.repeat(2_000) } })).toThrow(
      expect.objectContaining({ code: 'token_too_big' }) as DomainError,
    );
  });

  it('stops before it made more than it may, whatever it repeats', () => {
    const template = readTemplate(JSON.stringify({ a: '{{ user.metadata }}'.repeat(490) }));
    const large: TemplateSubjects = {
      ...subjects,
      user: { metadata: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`k${index}`, 'x'.repeat(600)])) },
    };
    let made = 0;
    const counted = {
      ...large,
      user: {
        get metadata() {
          made++;
          return (large.user as { metadata: object }).metadata;
        },
      },
    };
    expect(() => template(counted)).toThrow(expect.objectContaining({ code: 'token_too_big' }) as DomainError);
    expect(made).toBe(1);
  });
});
