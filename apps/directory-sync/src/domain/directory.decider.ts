import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import type { Directory, DirectoryAttribute, DirectoryPolicy, DirectoryToken, EventDirectoryDomain } from '#libs/contracts/src/directories/directory';
import { FIRST_POLICY } from '#libs/contracts/src/directories/first-policy.decider';
import type { Decider, Decision, Fact, NewPublicEvent } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound } from '#libs/platform/src/domain-error';

// These types are the storage format: a stored name or shape is never edited.

export type DirectoryEvent =
  | Fact<'directory.created', DirectoryCreated>
  | Fact<'directory.updated', { readonly id: string } & Partial<Pick<DirectoryCreated, 'name' | 'attributes' | 'policy'>>>
  /** Switched off by hand, and on again. */
  | Fact<'directory.unlinked', { readonly id: string }>
  | Fact<'directory.relinked', { readonly id: string }>
  /** Its product goes on coming with a token that was revoked, and with a good one again. */
  | Fact<'directory.credentials_refused', { readonly id: string }>
  | Fact<'directory.credentials_accepted', { readonly id: string }>
  /** Its product was heard of for the first time. */
  | Fact<'dsync.activated', { readonly id: string; readonly domains: readonly Omit<EventDirectoryDomain, 'object'>[] }>
  | Fact<'dsync.deleted', DirectoryDeleted>
  | Fact<'dsync.token.created', StoredToken & { readonly directory_id: string }>
  | Fact<'dsync.token.revoked', { readonly id: string; readonly directory_id: string }>;

type DirectoryCreated = Pick<Directory, 'id' | 'organization_id' | 'type' | 'name'> & {
  readonly attributes: readonly DirectoryAttribute[];
  /** Absent: nothing follows its people. */
  readonly policy?: DirectoryPolicy;
};

interface DirectoryDeleted {
  readonly id: string;
  /** What becomes of the memberships that it manages. Absent: it manages none, since nothing follows its people. */
  readonly memberships?: DirectoryPolicy['on_delete'];
}

/** `hash` is the SHA-256 of the value in hex: with 256 random bits in the value it need not be slow, and it opens nothing. */
export type StoredToken = Pick<DirectoryToken, 'id' | 'token_suffix'> & { readonly hash: string };

export interface StoredDirectory extends DirectoryCreated {
  readonly object: 'directory';
  readonly policy: DirectoryPolicy;
  /** What it would be if nobody had switched it off. */
  readonly link: 'validating' | 'linked' | 'invalid_credentials';
  readonly is_unlinked: boolean;
  readonly is_activated: boolean;
  readonly tokens: readonly (StoredToken & Pick<DirectoryToken, 'created_at'>)[];
  /** Those that were revoked last: who still comes with one is told from who never had any. */
  readonly revoked: readonly Pick<StoredToken, 'id' | 'hash'>[];
  readonly created_at: string;
  readonly updated_at: string;
}

interface DeletedDirectory extends Pick<Directory, 'id' | 'organization_id'> {
  readonly object: 'deleted_directory';
}

export type DirectoryState = StoredDirectory | DeletedDirectory | null;

const MOST_REVOKED = 100;
const MOST_TOKENS = 10;

function evolve(state: DirectoryState, event: DirectoryEvent & { readonly at: string }): DirectoryState {
  if (event.type === 'directory.created') return state ?? initialDirectory(event.data, event.at);
  if (state?.object !== 'directory') return state;
  const updated_at = event.at;
  switch (event.type) {
    case 'directory.updated':
      return { ...state, ...event.data, updated_at };
    case 'directory.unlinked':
      return { ...state, is_unlinked: true, updated_at };
    case 'directory.relinked':
      return { ...state, is_unlinked: false, updated_at };
    case 'directory.credentials_refused':
      return { ...state, link: 'invalid_credentials', updated_at };
    case 'directory.credentials_accepted':
      return { ...state, link: 'linked', updated_at };
    case 'dsync.activated':
      return { ...state, link: 'linked', is_activated: true, updated_at };
    case 'dsync.deleted':
      return { object: 'deleted_directory', id: state.id, organization_id: state.organization_id };
    case 'dsync.token.created': {
      const { id, token_suffix, hash } = event.data;
      return { ...state, tokens: [...state.tokens, { id, token_suffix, hash, created_at: event.at }] };
    }
    case 'dsync.token.revoked': {
      const gone = state.tokens.filter(({ id }) => id === event.data.id);
      const revoked = [...state.revoked, ...gone.map(({ id, hash }) => ({ id, hash }))].slice(-MOST_REVOKED);
      return { ...state, tokens: state.tokens.filter((token) => !gone.includes(token)), revoked };
    }
  }
}

function initialDirectory(data: DirectoryCreated, at: string): StoredDirectory {
  const unset = { link: 'validating', is_unlinked: false, is_activated: false, tokens: [], revoked: [] } as const;
  return { object: 'directory', policy: FIRST_POLICY, ...data, ...unset, created_at: at, updated_at: at };
}

/** As the API has it; events have other words. */
export function shownState({ link, is_unlinked }: StoredDirectory): Directory['state'] {
  return is_unlinked ? 'unlinked' : link;
}

const STATES_IN_EVENTS = { linked: 'active', unlinked: 'inactive' } as const;

/** Of the random part of its id. */
export function externalKeyOf(id: string): string {
  return id.slice(-16);
}

function toPublicEvent(event: DirectoryEvent, before: DirectoryState, after: DirectoryState): NewPublicEvent | null {
  const names = [event.type];
  switch (event.type) {
    case 'dsync.activated': {
      if (after?.object !== 'directory') return null;
      const domains = event.data.domains.map((domain) => ({ object: 'organization_domain', ...domain }));
      return { payload: { ...announced(after), external_key: externalKeyOf(after.id), domains }, names };
    }
    case 'dsync.deleted':
      return before?.object === 'directory' ? { payload: announced(before), names } : null;
    case 'dsync.token.created':
      return { payload: toPublicToken(after, event.data.id), names };
    case 'dsync.token.revoked':
      return { payload: toPublicToken(before, event.data.id), names };
    default:
      return null;
  }
}

function announced(directory: StoredDirectory) {
  const { object, id, organization_id, type, name, created_at, updated_at } = directory;
  const state = shownState(directory);
  return { object, id, organization_id, type, state: state in STATES_IN_EVENTS ? STATES_IN_EVENTS[state as 'linked'] : state, name, created_at, updated_at };
}

export function toPublicToken(state: DirectoryState, id: string): DirectoryToken | null {
  const token = state?.object === 'directory' ? state.tokens.find((each) => each.id === id) : undefined;
  if (state === null || token === undefined) return null;
  const { token_suffix, created_at } = token;
  return { object: 'directory_token', id, directory_id: state.id, organization_id: state.organization_id, token_suffix, created_at };
}

export const directoryDecider: Decider<DirectoryState, DirectoryEvent> = {
  category: 'directory',
  foldVersion: 2,
  initial: null,
  sealed: {
    'directory.created': null,
    'directory.updated': null,
    'directory.unlinked': null,
    'directory.relinked': null,
    'directory.credentials_refused': null,
    'directory.credentials_accepted': null,
    'dsync.activated': null,
    'dsync.deleted': null,
    'dsync.token.created': null,
    'dsync.token.revoked': null,
  },
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent,
  hangsOn: {
    reaction: 'delete-directories-with-their-organization',
    parents: [{ ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization', category: 'organization', field: 'organization_id' }],
    begins: ['directory.created'],
    end: recordDeletion,
  },
};

type Decide = Decision<DirectoryState, DirectoryEvent>;

type PolicyChanges = Partial<DirectoryPolicy>;

export function createDirectory({ policy, ...given }: Omit<DirectoryCreated, 'id' | 'policy'> & { readonly policy?: PolicyChanges }): Decide {
  return (state, context) => {
    const id = context.id('directory');
    if (state === null) return [{ type: 'directory.created', data: { id, ...given, ...(policy && { policy: { ...FIRST_POLICY, ...policy } }) } }];
    // A repeated command meets what it made; once that was deleted, it stays deleted.
    requireDirectory(state, id);
    return [];
  };
}

interface DirectoryChanges extends Partial<Pick<DirectoryCreated, 'name' | 'attributes'>> {
  readonly policy?: PolicyChanges;
  readonly state?: 'linked' | 'unlinked';
}

export function updateDirectory(id: string, { name, attributes, policy: asked, state: wanted }: DirectoryChanges): Decide {
  return (state) => {
    const directory = requireDirectory(state, id);
    const events: DirectoryEvent[] = [];
    const isRenamed = name !== undefined && name !== directory.name;
    const isMapped = attributes !== undefined && JSON.stringify(attributes) !== JSON.stringify(directory.attributes);
    const policy = { ...directory.policy, ...asked };
    const isOther = JSON.stringify(policy) !== JSON.stringify(directory.policy);
    const change = { ...(isRenamed && { name }), ...(isMapped && { attributes }), ...(isOther && { policy }) };
    if (Object.keys(change).length > 0) events.push({ type: 'directory.updated', data: { id, ...change } });
    if (wanted === 'unlinked' && !directory.is_unlinked) events.push({ type: 'directory.unlinked', data: { id } });
    if (wanted === 'linked' && directory.is_unlinked) events.push({ type: 'directory.relinked', data: { id } });
    return events;
  };
}

export function deleteDirectory(id: string): Decide {
  return (state) => {
    if (state?.object === 'deleted_directory') return [];
    return [deleted(requireDirectory(state, id))];
  };
}

/** What follows where its organization is gone. */
function recordDeletion(): Decide {
  return (state) => (state?.object === 'directory' ? [deleted(state)] : []);
}

function deleted({ id, policy }: StoredDirectory): DirectoryEvent {
  return { type: 'dsync.deleted', data: { id, ...(policy.follows !== 'off' && { memberships: policy.on_delete }) } };
}

/** @throws DomainError `directory_token_limit_reached` */
export function createToken(directoryId: string, token: Omit<StoredToken, 'id'>): Decide {
  return (state, context) => {
    const directory = requireDirectory(state, directoryId);
    const id = context.id('directory_token');
    if (directory.tokens.some((each) => each.id === id)) return [];
    if (directory.tokens.length >= MOST_TOKENS)
      throw new DomainError('invalid', 'directory_token_limit_reached', `A directory has at most ${MOST_TOKENS} tokens.`);
    return [{ type: 'dsync.token.created', data: { id, ...token, directory_id: directoryId } }];
  };
}

/** Nothing where it is revoked already. */
export function revokeToken(directoryId: string, id: string): Decide {
  return (state) => {
    const directory = requireDirectory(state, directoryId);
    return directory.tokens.some((token) => token.id === id) ? [{ type: 'dsync.token.revoked', data: { id, directory_id: directoryId } }] : [];
  };
}

/** Its product was heard of with a token that is good. `domains`: of the organization. */
export function acceptCredentials(id: string, domains: readonly Omit<EventDirectoryDomain, 'object'>[]): Decide {
  return (state) => {
    if (state?.object !== 'directory') return [];
    if (!state.is_activated) return [{ type: 'dsync.activated', data: { id, domains } }];
    return state.link === 'invalid_credentials' ? [{ type: 'directory.credentials_accepted', data: { id } }] : [];
  };
}

/** Its product goes on coming with a token that was revoked. */
export function refuseCredentials(id: string): Decide {
  return (state) => (state?.object === 'directory' && state.link !== 'invalid_credentials' ? [{ type: 'directory.credentials_refused', data: { id } }] : []);
}

/** @throws DomainError `entity_not_found` where it never was or is no more */
export function requireDirectory(state: DirectoryState, id: string): StoredDirectory {
  if (state?.object !== 'directory') throw notFound('Directory', id);
  return state;
}
