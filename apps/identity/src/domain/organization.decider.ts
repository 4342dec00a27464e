import type { Organization, OrganizationDomain } from '#libs/contracts/src/organizations/organization';
import { changes, namesOf } from '#libs/event-sourcing/src/deciding/changes.decider';
import type { NewPublicEvent, Claim, Decider, Decision, DecisionContext, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound, refusedField } from '#libs/platform/src/domain-error';
import { mergedMetadata } from './metadata.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type OrganizationEvent =
  | Fact<'organization.created', OrganizationCreated>
  | Fact<'organization.updated', OrganizationUpdated>
  | Fact<'organization.deleted', { readonly id: string }>
  | Fact<'organization_domain.created', NewDomain>
  | Fact<'organization_domain.updated', { readonly id: string; readonly state: 'pending' }>
  | Fact<'organization_domain.verification_restarted', { readonly id: string }>
  | Fact<'organization_domain.verified', { readonly id: string; readonly verification_strategy: 'dns' | 'manual' }>
  | Fact<'organization_domain.verification_failed', { readonly id: string; readonly reason: FailureReason }>
  | Fact<'organization_domain.deleted', { readonly id: string }>;

/** What callers may set beside the name, and what an organization has that was not given it. A new field is a line here, and one more in `foldVersion`. */
const DEFAULTS = {
  external_id: null,
  metadata: {},
  allow_profiles_outside_organization: false,
} satisfies Partial<Organization>;

type Settable = Pick<Organization, 'name' | keyof typeof DEFAULTS>;

/** Carries its domains, so that the first thing announced of an organization is complete; an event for each of them follows. Lacks what was not a field yet. */
interface OrganizationCreated extends Pick<Organization, 'id' | 'name'>, Partial<Omit<Settable, 'name'>> {
  readonly domains: readonly NewDomain[];
}

/** What changed, as it is from now on; nothing where only domains did. */
interface OrganizationUpdated extends Partial<Settable> {
  readonly payment_customer_id?: string | null;
}

type NewDomain = Pick<OrganizationDomain, 'id' | 'domain' | 'state' | 'verification_strategy' | 'verification_prefix' | 'verification_token'>;

type FailureReason = 'domain_verification_period_expired' | 'domain_verified_by_other_organization';

/** The public resource itself. */
export type OrganizationState = Organization | DeletedOrganization | null;

/** Dead for every reader; keeps the domains whose deletion is still to be recorded. */
interface DeletedOrganization {
  readonly object: 'deleted_organization';
  readonly id: string;
  readonly domains: readonly OrganizationDomain[];
}

/** A pending domain is looked for this long after `updated_at`, which is when it was added or its verification last asked for. */
const VERIFICATION_PERIOD = 30 * 24 * 60 * 60 * 1000;

function evolve(state: OrganizationState, event: OrganizationEvent & { readonly at: string }): OrganizationState {
  if (event.type === 'organization.created') return state ?? initialOrganization(event.data, event.at);
  if (state === null) return null;
  if (state.object === 'deleted_organization') return event.type === 'organization_domain.deleted' ? withoutDomain(state, event.data.id) : state;
  switch (event.type) {
    case 'organization.updated': {
      const { payment_customer_id = state.payment_customer_id, ...changed } = event.data;
      const customer = payment_customer_id ?? undefined;
      return { ...state, ...changed, payment_customer_id: customer, stripe_customer_id: customer, updated_at: event.at };
    }
    case 'organization.deleted':
      return { object: 'deleted_organization', id: state.id, domains: state.domains };
    case 'organization_domain.created':
      return hasDomain(state, event.data.id) ? state : { ...state, domains: [...state.domains, initialDomain(event.data, state.id, event.at)] };
    case 'organization_domain.updated':
    case 'organization_domain.verification_restarted':
      return withDomain(state, event.data.id, { state: 'pending', updated_at: event.at });
    case 'organization_domain.verified':
      return withDomain(state, event.data.id, {
        state: 'verified',
        verification_strategy: event.data.verification_strategy,
        ...(event.data.verification_strategy === 'manual' && { verification_prefix: undefined, verification_token: undefined }),
        updated_at: event.at,
      });
    case 'organization_domain.verification_failed':
      return withDomain(state, event.data.id, { state: 'failed', updated_at: event.at });
    case 'organization_domain.deleted':
      return withoutDomain(state, event.data.id);
  }
}

function initialOrganization({ domains, ...fields }: OrganizationCreated, at: string): Organization {
  const own = domains.map((domain) => initialDomain(domain, fields.id, at));
  return { object: 'organization', ...DEFAULTS, ...fields, domains: own, created_at: at, updated_at: at };
}

function initialDomain(domain: NewDomain, organization_id: string, at: string): OrganizationDomain {
  return { object: 'organization_domain', ...domain, organization_id, created_at: at, updated_at: at };
}

function withDomain(state: Organization, id: string, change: Partial<OrganizationDomain>): Organization {
  return { ...state, domains: state.domains.map((domain) => (domain.id === id ? { ...domain, ...change } : domain)) };
}

function withoutDomain<State extends Organization | DeletedOrganization>(state: State, id: string): State {
  return { ...state, domains: state.domains.filter((domain) => domain.id !== id) };
}

/** A pending domain is claimed by nobody: the first that proves it has it. */
function claims(state: OrganizationState): readonly Claim[] {
  if (state?.object !== 'organization') return [];
  const held: Claim[] = [];
  if (state.external_id !== null)
    held.push({ kind: 'organization.external_id', value: state.external_id, refusal: () => taken('external_id', state.external_id!) });
  if (state.payment_customer_id !== undefined)
    held.push({
      kind: 'organization.payment_customer_id',
      value: state.payment_customer_id,
      refusal: () => taken('payment_customer_id', state.payment_customer_id!),
    });
  for (const { domain, state: ownership } of state.domains)
    if (ownership === 'verified')
      held.push({ kind: 'organization_domain.domain', value: domain, refusal: () => domainTaken(`${domain} is verified in another organization.`) });
  return held;
}

function toPublicEvent(event: OrganizationEvent, before: OrganizationState, after: OrganizationState): NewPublicEvent | null {
  const names = [event.type];
  switch (event.type) {
    case 'organization.created':
    case 'organization.updated':
      return { payload: after, names };
    case 'organization.deleted':
      return { payload: before, names };
    case 'organization_domain.created':
    case 'organization_domain.updated':
    case 'organization_domain.verified':
      return { payload: domainOf(after, event.data.id), names };
    case 'organization_domain.verification_failed':
      return { payload: { reason: event.data.reason, organization_domain: domainOf(after, event.data.id) }, names };
    case 'organization_domain.deleted':
      return { payload: domainOf(before, event.data.id), names };
    case 'organization_domain.verification_restarted':
      return null;
  }
}

export const organizationDecider: Decider<OrganizationState, OrganizationEvent> = {
  category: 'organization',
  foldVersion: 2,
  initial: null,
  sealed: {
    'organization.created': null,
    'organization.updated': null,
    'organization.deleted': null,
    'organization_domain.created': null,
    'organization_domain.updated': null,
    'organization_domain.verification_restarted': null,
    'organization_domain.verified': null,
    'organization_domain.verification_failed': null,
    'organization_domain.deleted': null,
  },
  evolve,
  claims,
  organization: (state) => state?.id,
  toPublicEvent,
  // What follows from the end of the organization is decided by the domains that are left.
  mayFollow: ['organization_domain.deleted'],
  hangsOn: {
    reaction: 'delete-domains-when-organization-deleted',
    parents: [{ ends: 'organization.deleted' }],
    end: recordDomainDeletions,
  },
};

type Decide = Decision<OrganizationState, OrganizationEvent>;

/** A domain as asked for, its name normalised, with what its TXT record would have to carry. */
export interface RequestedDomain {
  readonly domain: string;
  readonly state: 'pending' | 'verified';
  readonly verification_prefix: string;
  readonly verification_token: string;
}

/** Fields as a request gives them; absent: not given. */
interface GivenFields extends Partial<Omit<Settable, 'metadata'>> {
  /** As the caller sent it: what is neither text nor null is refused here. */
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly payment_customer_id?: string | null;
}

interface NewOrganization extends GivenFields {
  readonly name: string;
  /** Each domain once. */
  readonly domains: readonly RequestedDomain[];
}

interface OrganizationChanges extends GivenFields {
  /** The set from now on, each domain once. Absent: it stays. */
  readonly domains?: readonly RequestedDomain[];
}

export function createOrganization(given: NewOrganization, maxDomains: number): Decide {
  return (state, context) => {
    const id = context.id('org');
    if (state !== null) return nothingMoreOf(state, id);
    refuseTooMany(given.domains.length, maxDomains);
    const domains = given.domains.map((domain, index) => newDomain(domain, context.id('org_domain', index)));
    const fields = { ...DEFAULTS, name: given.name, ...changedFields(DEFAULTS, given) };
    return [{ type: 'organization.created', data: { id, ...fields, domains } }, ...domains.flatMap(domainFacts)];
  };
}

/** Domain events come first, so that `organization.updated` shows the organization as the whole request left it. */
export function updateOrganization(id: string, given: OrganizationChanges, maxDomains: number): Decide {
  return (state, context) => {
    const organization = requireOrganization(state, id);
    const domains = given.domains === undefined ? [] : replacedDomains(organization, given.domains, maxDomains, context);
    const data = changedFields(organization, given);
    if (domains.length === 0 && Object.keys(data).length === 0) return [];
    return [...domains, { type: 'organization.updated', data }];
  };
}

export function deleteOrganization(id: string): Decide {
  return (state) => {
    if (state?.object === 'deleted_organization') return [];
    requireOrganization(state, id);
    return [{ type: 'organization.deleted', data: { id } }];
  };
}

/** What follows from a deletion: one event for each domain that it took along. */
export function recordDomainDeletions(): Decide {
  return (state) => {
    if (state?.object !== 'deleted_organization') return [];
    return state.domains.map(({ id }) => ({ type: 'organization_domain.deleted', data: { id } }));
  };
}

export function addDomain(organizationId: string, requested: RequestedDomain, maxDomains: number): Decide {
  return (state, context) => {
    const organization = requireOrganization(state, organizationId);
    const id = context.id('org_domain');
    if (hasDomain(organization, id)) return [];
    if (organization.domains.some(({ domain }) => domain === requested.domain)) throw domainTaken(`The organization already has ${requested.domain}.`);
    refuseTooMany(organization.domains.length + 1, maxDomains);
    return domainFacts(newDomain(requested, id));
  };
}

export function removeDomain(id: string): Decide {
  return (state) => (domainOf(state, id) === undefined ? [] : [{ type: 'organization_domain.deleted', data: { id } }]);
}

/** The caller asks for verification: another 30 days begin. */
export function restartVerification(id: string): Decide {
  return (state, context) => {
    const domain = requireDomain(state, id);
    if (domain.state === 'verified') throw domainAlreadyVerified(domain.domain);
    if (domain.state === 'failed') return [{ type: 'organization_domain.updated', data: { id, state: 'pending' } }];
    return domain.updated_at === context.now ? [] : [{ type: 'organization_domain.verification_restarted', data: { id } }];
  };
}

/** Ownership was proven by DNS. A domain that was deleted meanwhile, or is verified already, stays as it is. */
export function verifyDomain(id: string): Decide {
  return (state) => {
    const domain = findDomain(state, id);
    if (domain === null || domain.state === 'verified') return [];
    return [{ type: 'organization_domain.verified', data: { id, verification_strategy: 'dns' } }];
  };
}

export function failVerification(id: string, reason: FailureReason): Decide {
  return (state) => {
    if (findDomain(state, id)?.state !== 'pending') return [];
    return [{ type: 'organization_domain.verification_failed', data: { id, reason } }];
  };
}

/** Nothing happens to a domain whose 30 days began anew after the caller looked. */
export function expireVerification(id: string): Decide {
  return (state, context) => {
    const domain = findDomain(state, id);
    if (domain === null || Date.parse(context.now) - Date.parse(domain.updated_at) < VERIFICATION_PERIOD) return [];
    return failVerification(id, 'domain_verification_period_expired')(state, context);
  };
}

/** @throws DomainError `entity_not_found` where it never was or is no more */
export function requireOrganization(state: OrganizationState, id: string): Organization {
  if (state?.object !== 'organization') throw notFound('Organization', id);
  return state;
}

/** @throws DomainError `entity_not_found` where it, or its organization, never was or is no more */
export function requireDomain(state: OrganizationState, id: string): OrganizationDomain {
  const domain = findDomain(state, id);
  if (domain === null) throw notFound('Organization domain', id);
  return domain;
}

export function findDomain(state: OrganizationState, id: string): OrganizationDomain | null {
  return (state?.object === 'organization' && domainOf(state, id)) || null;
}

/** A repeated command meets what it made; once that was deleted, it stays deleted. */
function nothingMoreOf(state: OrganizationState, id: string): readonly OrganizationEvent[] {
  requireOrganization(state, id);
  return [];
}

function domainOf(state: OrganizationState, id: string): OrganizationDomain | undefined {
  return state?.domains.find((domain) => domain.id === id);
}

function hasDomain(state: OrganizationState, id: string): boolean {
  return domainOf(state, id) !== undefined;
}

/** The caller who says that a domain is verified has verified it by hand: no TXT record is asked for. */
function newDomain({ domain, state, verification_prefix, verification_token }: RequestedDomain, id: string): NewDomain {
  if (state === 'verified') return { id, domain, state, verification_strategy: 'manual' };
  return { id, domain, state, verification_strategy: 'dns', verification_prefix, verification_token };
}

function domainFacts(domain: NewDomain): readonly OrganizationEvent[] {
  const created: OrganizationEvent = { type: 'organization_domain.created', data: domain };
  return domain.state === 'verified' ? [created, verifiedByHand(domain.id)] : [created];
}

function verifiedByHand(id: string): OrganizationEvent {
  return { type: 'organization_domain.verified', data: { id, verification_strategy: 'manual' } };
}

function replacedDomains(
  organization: Organization,
  wanted: readonly RequestedDomain[],
  maxDomains: number,
  context: DecisionContext,
): readonly OrganizationEvent[] {
  refuseTooMany(wanted.length, maxDomains);
  const current = new Map(organization.domains.map((domain) => [domain.domain, domain]));
  const names = new Set(wanted.map(({ domain }) => domain));
  const removed = organization.domains.filter(({ domain }) => !names.has(domain));
  return [
    ...removed.map(({ id }): OrganizationEvent => ({ type: 'organization_domain.deleted', data: { id } })),
    ...wanted.flatMap((requested, index) => {
      const known = current.get(requested.domain);
      if (known === undefined) return domainFacts(newDomain(requested, context.id('org_domain', index)));
      return requested.state === 'verified' && known.state !== 'verified' ? [verifiedByHand(known.id)] : [];
    }),
  ];
}

function changedFields(before: Partial<Organization>, given: GivenFields): OrganizationUpdated {
  const metadata = given.metadata === undefined ? undefined : mergedMetadata(before.metadata ?? {}, given.metadata);
  return changes(before, { ...given, metadata }, ['name', ...namesOf(DEFAULTS), 'payment_customer_id']);
}

function refuseTooMany(count: number, max: number): void {
  if (count <= max) return;
  throw refusedField('invalid', 'organization_domain_limit_reached', { field: 'domain', message: `An organization has at most ${max} domains.` });
}

function taken(field: 'external_id' | 'payment_customer_id', value: string): DomainError {
  return refusedField('conflict', `${field}_already_used`, { field, message: `The ${field} '${value}' is already used.` });
}

function domainTaken(message: string): DomainError {
  return refusedField('conflict', 'domain_already_exists', { field: 'domain', message });
}

export function domainAlreadyVerified(domain: string): DomainError {
  return new DomainError('conflict', 'domain_already_verified', `${domain} is already verified.`);
}
