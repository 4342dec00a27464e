import { gateOfRefresh, nextGate, type Policy, type SignInFacts } from './next-gate.ts';

const acme = { id: 'org_acme', name: 'Acme' };
const zoo = { id: 'org_zoo', name: 'Zoo' };
const lenient: Policy = { methods: { password: true, magic_auth: true }, requiresSso: false, requiresMfa: false };
const after = (changes: Partial<SignInFacts> = {}, policy: Partial<Policy> = {}) =>
  nextGate({
    ...{
      method: 'password',
      isChallenged: false,
      isEmailVerified: true,
      mfa: 'optional',
      hasFactor: false,
      isFactorProven: false,
      organizations: [],
      chosen: null,
    },
    policy: { ...lenient, ...policy },
    ...changes,
  });
const unverified = { isEmailVerified: false };
const factor = { hasFactor: true };
const proven = { hasFactor: true, isFactorProven: true };
const two = { organizations: [acme, zoo] };
const one = { organizations: [acme] };

/** As the table of gates says: what is known, and what is asked for. The first gate that is not passed is told, whatever comes behind it. */
describe('after the credential is proven', () => {
  it.each<[string, Partial<SignInFacts>, Partial<Policy>, object]>([
    ['nothing is asked of somebody in no organization', {}, {}, { gate: 'none', organizationId: null }],
    ['the only organization is chosen silently', one, {}, { gate: 'none', organizationId: 'org_acme' }],

    ['somebody against whom something speaks shows a code first', { isChallenged: true, ...unverified, ...factor, ...two }, {}, { gate: 'radar_challenge' }],
    ['an address that was never verified is', unverified, {}, { gate: 'email_verification_required' }],
    ['… before anything else', { ...unverified, ...factor, ...two }, { requiresSso: true }, { gate: 'email_verification_required' }],

    ['somebody with a second factor proves it', factor, {}, { gate: 'mfa_challenge' }],
    ['… before an organization is chosen', { ...factor, ...two }, {}, { gate: 'mfa_challenge' }],
    ['… once', { ...proven, ...two }, {}, { gate: 'organization_selection_required', organizations: [acme, zoo] }],
    ['… not where second factors are off', { ...factor, mfa: 'off' }, {}, { gate: 'none', organizationId: null }],
    ['… not after a single sign-on', { ...factor, method: 'sso', mfa: 'required' }, {}, { gate: 'none', organizationId: null }],
    ['somebody without one enrols one where it is required', { mfa: 'required' }, {}, { gate: 'mfa_enrollment' }],
    ['… not where it is optional', { mfa: 'optional' }, {}, { gate: 'none', organizationId: null }],
    ['… not after a single sign-on', { mfa: 'required', method: 'sso' }, {}, { gate: 'none', organizationId: null }],

    ['one of several organizations is chosen', two, {}, { gate: 'organization_selection_required', organizations: [acme, zoo] }],
    ['… once', { ...two, chosen: 'org_zoo' }, {}, { gate: 'none', organizationId: 'org_zoo' }],

    ['the organization asks for a single sign-on', one, { requiresSso: true }, { gate: 'sso_required', organizationId: 'org_acme' }],
    ['… which a single sign-on is', { ...one, method: 'sso' }, { requiresSso: true }, { gate: 'none', organizationId: 'org_acme' }],
    [
      'the organization allows no passwords',
      one,
      { methods: { password: false, magic_auth: true } },
      { gate: 'organization_authentication_methods_required', organizationId: 'org_acme' },
    ],
    [
      'the organization allows no codes by mail',
      { ...one, method: 'magic_auth' },
      { methods: { password: true, magic_auth: false } },
      { gate: 'organization_authentication_methods_required', organizationId: 'org_acme' },
    ],
    ['… but passwords', one, { methods: { password: true, magic_auth: false } }, { gate: 'none', organizationId: 'org_acme' }],
    ['the organization requires a second factor', one, { requiresMfa: true }, { gate: 'mfa_enrollment' }],
    ['… whatever the environment says', { ...one, ...factor, mfa: 'off' }, { requiresMfa: true }, { gate: 'mfa_challenge' }],
    ['… once', { ...one, ...proven, mfa: 'off' }, { requiresMfa: true }, { gate: 'none', organizationId: 'org_acme' }],
    ['… not after a single sign-on', { ...one, method: 'sso' }, { requiresMfa: true }, { gate: 'none', organizationId: 'org_acme' }],
    ['… which no other organization does', { ...two, chosen: 'org_zoo' }, {}, { gate: 'none', organizationId: 'org_zoo' }],
  ])('%s', (_, facts, policy, gate) => expect(after(facts, policy)).toEqual(gate));

  it('nobody is let into an organization whose policy is not known', () => expect(() => after({ ...one, policy: null })).toThrow('org_acme'));
});

describe('at a refresh', () => {
  const facts = { method: 'password', mfa: 'optional', isFactorProven: false, isEntering: false, policy: lenient } as const;
  const noPasswords = { ...lenient, methods: { password: false, magic_auth: true } };
  it.each<[string, Partial<Parameters<typeof gateOfRefresh>[0]>, ReturnType<typeof gateOfRefresh>]>([
    ['nothing is asked', {}, null],
    ['… where no organization is chosen', { policy: null }, null],
    ['the organization asks for a single sign-on', { policy: { ...lenient, requiresSso: true, requiresMfa: true } }, 'sso_required'],
    ['… which it was', { method: 'sso', policy: { ...lenient, requiresSso: true, requiresMfa: true } }, null],
    ['another organization is asked for that has no passwords', { isEntering: true, policy: noPasswords }, 'organization_authentication_methods_required'],
    ['… but codes', { method: 'magic_code', isEntering: true, policy: noPasswords }, null],
    ['… or was asked for before it had none', { policy: noPasswords }, null],
    ['the organization asks for a second factor', { mfa: 'off', policy: { ...lenient, requiresMfa: true } }, 'mfa_enrollment'],
    ['… which was proven', { isFactorProven: true, policy: { ...lenient, requiresMfa: true } }, null],
    ['the environment asks for a second factor', { mfa: 'required', policy: null }, 'mfa_enrollment'],
    ['… which was proven', { mfa: 'required', isFactorProven: true }, null],
    ['… not after a single sign-on', { mfa: 'required', method: 'sso' }, null],
  ])('%s', (_, changes, gate) => expect(gateOfRefresh({ ...facts, ...changes })).toBe(gate));
});
