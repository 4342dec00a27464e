import { specOf } from '#libs/testing/src/decider-spec';
import {
  addDomain,
  createOrganization,
  deleteOrganization,
  expireVerification,
  failVerification,
  organizationDecider,
  recordDomainDeletions,
  removeDomain,
  restartVerification,
  updateOrganization,
  verifyDomain,
  type OrganizationEvent,
} from './organization.decider.ts';

const { given, claims, id, now } = specOf(organizationDecider);
const MAX_DOMAINS = 3;

const org = id('org');
const acmeId = 'org_domain_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const betaId = 'org_domain_01HZZZZZZZZZZZZZZZZZZZZZZ2';

const dns = { verification_prefix: 'gatehouse-domain-verification-z3kjny', verification_token: 'abcdefghijklmnopqrstuvwxy' };
const acme = { domain: 'acme.test', state: 'pending', ...dns } as const;
const beta = { domain: 'beta.test', state: 'pending', ...dns } as const;
const verified = { domain: 'acme.test', state: 'verified', ...dns } as const;

const pendingAcme = { id: acmeId, domain: 'acme.test', state: 'pending', verification_strategy: 'dns', ...dns } as const;
const created: OrganizationEvent = {
  type: 'organization.created',
  data: { id: org, name: 'Acme', external_id: null, metadata: {}, allow_profiles_outside_organization: false, domains: [] },
};
const acmeAdded: OrganizationEvent = { type: 'organization_domain.created', data: pendingAcme };
const betaAdded: OrganizationEvent = { type: 'organization_domain.created', data: { ...pendingAcme, id: betaId, domain: 'beta.test' } };
const acmeVerified: OrganizationEvent = { type: 'organization_domain.verified', data: { id: acmeId, verification_strategy: 'dns' } };
const acmeFailed: OrganizationEvent = { type: 'organization_domain.verification_failed', data: { id: acmeId, reason: 'domain_verification_period_expired' } };
const deleted: OrganizationEvent = { type: 'organization.deleted', data: { id: org } };
const withMetadata = (metadata: Record<string, string>): OrganizationEvent => ({ type: 'organization.updated', data: { metadata } });

const create = (fields: Partial<Parameters<typeof createOrganization>[0]> = {}) => createOrganization({ name: 'Acme', domains: [], ...fields }, MAX_DOMAINS);
const update = (fields: Parameters<typeof updateOrganization>[1]) => updateOrganization(org, fields, MAX_DOMAINS);
const add = (domain = acme as Parameters<typeof addDomain>[1]) => addDomain(org, domain, MAX_DOMAINS);

describe('what an organization holds alone', () => {
  it('is nothing before it exists, without identifiers of its own, and after its end', () => {
    expect([claims(), claims(created), claims(created, acmeAdded, acmeVerified, deleted)]).toEqual([[], [], []]);
  });

  it('is its external id, its payment customer and its verified domains', () => {
    const identified: OrganizationEvent = { type: 'organization.updated', data: { external_id: 'customer-1', payment_customer_id: 'cus_1' } };
    expect(claims(created, identified, acmeAdded, betaAdded, acmeVerified)).toEqual([
      ['organization.external_id', 'customer-1'],
      ['organization.payment_customer_id', 'cus_1'],
      ['organization_domain.domain', 'acme.test'],
    ]);
  });
});

describe('an organization', () => {
  it('is created', () => given().when(create()).then(created));

  it('is created with its domains, each announced after it, and those verified by hand without a token', () =>
    given()
      .when(create({ domains: [beta, verified] }))
      .then(
        {
          ...created,
          data: {
            ...created.data,
            domains: [
              { id: id('org_domain', 0), domain: 'beta.test', state: 'pending', verification_strategy: 'dns', ...dns },
              { id: id('org_domain', 1), domain: 'acme.test', state: 'verified', verification_strategy: 'manual' },
            ],
          },
        },
        { type: 'organization_domain.created', data: { id: id('org_domain', 0), domain: 'beta.test', state: 'pending', verification_strategy: 'dns', ...dns } },
        { type: 'organization_domain.created', data: { id: id('org_domain', 1), domain: 'acme.test', state: 'verified', verification_strategy: 'manual' } },
        { type: 'organization_domain.verified', data: { id: id('org_domain', 1), verification_strategy: 'manual' } },
      ));

  it('has as many domains as it may have, and no more', () => {
    const three = ['a.test', 'b.test', 'c.test'].map((domain) => ({ ...acme, domain }));
    given()
      .when(create({ domains: [...three, beta] }))
      .thenRefused('organization_domain_limit_reached');
    given(created)
      .when(update({ domains: [...three, beta] }))
      .thenRefused('organization_domain_limit_reached');
    given(created, ...three.map(({ domain }, index): OrganizationEvent => ({ ...acmeAdded, data: { ...pendingAcme, id: `${acmeId}${index}`, domain } })))
      .when(add(beta))
      .thenRefused('organization_domain_limit_reached');
  });

  it('stays deleted when its creation is repeated', () => given(created, deleted).when(create()).thenRefused('entity_not_found'));

  it('changes what is given and different', () =>
    given(created)
      .when(update({ name: 'Acme', external_id: 'acme-1', payment_customer_id: 'cus_1', allow_profiles_outside_organization: true }))
      .then({ type: 'organization.updated', data: { external_id: 'acme-1', payment_customer_id: 'cus_1', allow_profiles_outside_organization: true } }));

  it('clears what is given as null', () =>
    given(created, { type: 'organization.updated', data: { external_id: 'acme-1', payment_customer_id: 'cus_1' } })
      .when(update({ external_id: null, payment_customer_id: null }))
      .then({ type: 'organization.updated', data: { external_id: null, payment_customer_id: null } }));

  it('does not change where nothing differs', () =>
    given(created, acmeAdded)
      .when(update({ name: 'Acme', external_id: null, payment_customer_id: null, allow_profiles_outside_organization: false, metadata: {}, domains: [acme] }))
      .thenNothing());

  it('cannot be changed or deleted before it exists', () => {
    given()
      .when(update({ name: 'Acme' }))
      .thenRefused('entity_not_found');
    given().when(deleteOrganization(org)).thenRefused('entity_not_found');
    given().when(add()).thenRefused('entity_not_found');
  });

  it('cannot be changed once it is deleted', () => {
    given(created, acmeAdded, deleted)
      .when(update({ name: 'Other' }))
      .thenRefused('entity_not_found');
    given(created, acmeAdded, deleted).when(add(beta)).thenRefused('entity_not_found');
    given(created, acmeAdded, deleted).when(restartVerification(acmeId)).thenRefused('entity_not_found');
    given(created, acmeAdded, deleted).when(verifyDomain(acmeId)).thenNothing();
  });

  it('is deleted, and then each of its domains', () => {
    given(created, acmeAdded, betaAdded).when(deleteOrganization(org)).then(deleted);
    given(created, acmeAdded, betaAdded, deleted)
      .when(recordDomainDeletions())
      .then({ type: 'organization_domain.deleted', data: { id: acmeId } }, { type: 'organization_domain.deleted', data: { id: betaId } });
    given(created, acmeAdded).when(recordDomainDeletions()).thenNothing();
  });
});

describe('metadata of an organization', () => {
  const stored = withMetadata({ tier: 'gold', region: 'eu' });

  it('sets what is given, removes what is null, and keeps the rest', () =>
    given(created, stored)
      .when(update({ metadata: { tier: null, seats: '5', absent: null } }))
      .then(withMetadata({ region: 'eu', seats: '5' })));

  it('is removed altogether by {} and by null', () => {
    given(created, stored)
      .when(update({ metadata: {} }))
      .then(withMetadata({}));
    given(created, stored)
      .when(update({ metadata: null }))
      .then(withMetadata({}));
  });

  it('stays where it is not given', () =>
    given(created, stored)
      .when(update({ name: 'Acme' }))
      .thenNothing());

  it.each(['__proto__', 'constructor', 'prototype', 'toString'])('takes %s for a key like any other', (key) => {
    const metadata = JSON.parse(`{${JSON.stringify(key)}:"value"}`) as Record<string, string>;
    given(created).when(update({ metadata })).then(withMetadata(metadata));
    expect(({} as Record<string, unknown>)['value']).toBeUndefined();
    given(created, withMetadata(metadata)).when(update({ metadata })).thenNothing();
    given(created, withMetadata(metadata))
      .when(update({ metadata: JSON.parse(`{${JSON.stringify(key)}:null}`) as Record<string, null> }))
      .then(withMetadata({}));
  });

  const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`key${index}`, 'value']));

  it('has at most 50 pairs, counted after the merge', () => {
    given(created)
      .when(update({ metadata: pairs(50) }))
      .then(withMetadata(pairs(50)));
    given(created)
      .when(update({ metadata: pairs(51) }))
      .thenRefused('invalid_metadata');
    given(created, withMetadata(pairs(50)))
      .when(update({ metadata: { one: 'more' } }))
      .thenRefused('invalid_metadata');
    given(created, withMetadata({ key0: 'value' }))
      .when(update({ metadata: { key0: null, one: 'other' } }))
      .then(withMetadata({ one: 'other' }));
  });

  it.each([
    ['a key of 41 characters', { ['k'.repeat(41)]: 'value' }],
    ['an empty key', { '': 'value' }],
    ['a key beyond ASCII', { schlüssel: 'value' }],
    ['a value of 601 characters', { key: 'v'.repeat(601) }],
    ['a value beyond ASCII', { key: 'straße' }],
    ['NUL in a key', { 'key\0': 'value' }],
    ['NUL in a value', { key: 'value\0' }],
    ['a number', { key: 5 }],
    ['an object', { key: { deeper: 'value' } }],
  ])('refuses %s', (_, metadata) => {
    given().when(create({ metadata })).thenRefused('invalid_metadata');
    given(created).when(update({ metadata })).thenRefused('invalid_metadata');
  });

  it('takes keys of 40 and values of 600 characters', () => {
    const metadata = { ['k'.repeat(40)]: 'v'.repeat(600), empty: '' };
    given(created).when(update({ metadata })).then(withMetadata(metadata));
  });
});

describe('the domains of an organization', () => {
  it('get a new one', () =>
    given(created)
      .when(add())
      .then({ type: 'organization_domain.created', data: { ...pendingAcme, id: id('org_domain') } }));

  it('do not get one twice', () => given(created, acmeAdded).when(add()).thenRefused('domain_already_exists'));

  it('lose one', () => {
    given(created, acmeAdded)
      .when(removeDomain(acmeId))
      .then({ type: 'organization_domain.deleted', data: { id: acmeId } });
    given(created).when(removeDomain(acmeId)).thenNothing();
  });

  it('are replaced as a set, and what was verified stays verified', () =>
    given(created, acmeAdded, acmeVerified, betaAdded)
      .when(update({ name: 'Acme & Co', domains: [acme, { ...acme, domain: 'gamma.test' }] }))
      .then(
        { type: 'organization_domain.deleted', data: { id: betaId } },
        { type: 'organization_domain.created', data: { ...pendingAcme, id: id('org_domain', 1), domain: 'gamma.test' } },
        { type: 'organization.updated', data: { name: 'Acme & Co' } },
      ));

  it('are verified by whoever replaces them with verified ones', () =>
    given(created, acmeAdded)
      .when(update({ domains: [verified] }))
      .then({ type: 'organization_domain.verified', data: { id: acmeId, verification_strategy: 'manual' } }, { type: 'organization.updated', data: {} }));

  it('are removed by an empty set', () =>
    given(created, acmeAdded)
      .when(update({ domains: [] }))
      .then({ type: 'organization_domain.deleted', data: { id: acmeId } }, { type: 'organization.updated', data: {} }));
});

describe('the verification of a domain', () => {
  it('succeeds once', () => {
    given(created, acmeAdded).when(verifyDomain(acmeId)).then(acmeVerified);
    given(created, acmeAdded, acmeVerified).when(verifyDomain(acmeId)).thenNothing();
  });

  it('succeeds after it failed', () => given(created, acmeAdded, acmeFailed).when(verifyDomain(acmeId)).then(acmeVerified));

  it('is over with its domain', () => given(created).when(verifyDomain(acmeId)).thenNothing());

  it('fails, but not where it succeeded before', () => {
    given(created, acmeAdded).when(failVerification(acmeId, 'domain_verification_period_expired')).then(acmeFailed);
    given(created, acmeAdded, acmeVerified).when(failVerification(acmeId, 'domain_verification_period_expired')).thenNothing();
  });

  it('expires after 30 days, and not before', () => {
    const later = (days: number) => ({ now: new Date(Date.parse(now) + days * 24 * 60 * 60 * 1000).toISOString() });
    given(created, acmeAdded).when(expireVerification(acmeId), later(28)).thenNothing();
    given(created, acmeAdded).when(expireVerification(acmeId), later(31)).then(acmeFailed);
    given(created, acmeAdded, acmeVerified).when(expireVerification(acmeId), later(31)).thenNothing();
  });

  it('begins anew after it failed', () =>
    given(created, acmeAdded, acmeFailed)
      .when(restartVerification(acmeId))
      .then({ type: 'organization_domain.updated', data: { id: acmeId, state: 'pending' } }));

  it('begins anew while it lasts, which nobody is told', () =>
    given(created, acmeAdded)
      .when(restartVerification(acmeId))
      .then({ type: 'organization_domain.verification_restarted', data: { id: acmeId } }));

  it('does not begin anew where it succeeded', () =>
    given(created, acmeAdded, acmeVerified).when(restartVerification(acmeId)).thenRefused('domain_already_verified'));

  it('cannot begin for a domain that is not there', () => given(created).when(restartVerification(acmeId)).thenRefused('entity_not_found'));
});
