import type { CorsOrigin, RedirectUri } from '#libs/contracts/src/browser-addresses/browser-addresses';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound } from '#libs/platform/src/domain-error';

// These types are the storage format: a stored name or shape is never edited.

export type BrowserAddressesEvent =
  | Fact<'redirect_uri.created', Pick<RedirectUri, 'id' | 'uri'>>
  /** The one before is no default any more. */
  | Fact<'redirect_uri.made_default', { readonly id: string }>
  | Fact<'redirect_uri.deleted', { readonly id: string }>
  | Fact<'cors_origin.created', Pick<CorsOrigin, 'id' | 'origin'>>
  | Fact<'cors_origin.deleted', { readonly id: string }>;

export interface BrowserAddressesState {
  readonly redirect_uris: readonly RedirectUri[];
  readonly cors_origins: readonly CorsOrigin[];
  /** Ids of those that were deleted: what was on a list once can still be a cursor. */
  readonly deleted: readonly string[];
}

/** Each environment reads all of them at once. */
const MOST = 200;
const MOST_DELETED = 1_000;

function evolve(state: BrowserAddressesState, event: BrowserAddressesEvent & { readonly at: string }): BrowserAddressesState {
  const times = { created_at: event.at, updated_at: event.at };
  const deleted = (id: string) => [...state.deleted, id].slice(-MOST_DELETED);
  switch (event.type) {
    case 'redirect_uri.created':
      return { ...state, redirect_uris: [...state.redirect_uris, { object: 'redirect_uri', ...event.data, default: false, ...times }] };
    case 'redirect_uri.made_default':
      return {
        ...state,
        redirect_uris: state.redirect_uris.map((one) => {
          const isDefault = one.id === event.data.id;
          return one.default === isDefault ? one : { ...one, default: isDefault, updated_at: event.at };
        }),
      };
    case 'redirect_uri.deleted':
      return { ...state, redirect_uris: state.redirect_uris.filter(({ id }) => id !== event.data.id), deleted: deleted(event.data.id) };
    case 'cors_origin.created':
      return { ...state, cors_origins: [...state.cors_origins, { object: 'cors_origin', ...event.data, ...times }] };
    case 'cors_origin.deleted':
      return { ...state, cors_origins: state.cors_origins.filter(({ id }) => id !== event.data.id), deleted: deleted(event.data.id) };
  }
}

/** One stream for an environment: rules about all of them are rules of one aggregate. */
export const browserAddressesDecider: Decider<BrowserAddressesState, BrowserAddressesEvent> = {
  category: 'browser_addresses',
  foldVersion: 1,
  initial: { redirect_uris: [], cors_origins: [], deleted: [] },
  sealed: {
    'redirect_uri.created': null,
    'redirect_uri.made_default': null,
    'redirect_uri.deleted': null,
    'cors_origin.created': null,
    'cors_origin.deleted': null,
  },
  evolve,
  toPublicEvent: () => null,
};

type Decide = Decision<BrowserAddressesState, BrowserAddressesEvent>;

export function createRedirectUri(uri: string, isDefault: boolean): Decide {
  return ({ redirect_uris }, context) => {
    const present = redirect_uris.find((one) => one.uri === uri);
    const id = present?.id ?? context.id('redir');
    if (present === undefined && redirect_uris.length >= MOST) throw tooMany('redirect URIs');
    const created: readonly BrowserAddressesEvent[] = present === undefined ? [{ type: 'redirect_uri.created', data: { id, uri } }] : [];
    const becomesDefault = present?.default !== true && (isDefault || redirect_uris.length === 0);
    return becomesDefault ? [...created, { type: 'redirect_uri.made_default', data: { id } }] : created;
  };
}

/** The default goes last. @throws DomainError `redirect_uri_is_default`, or `entity_not_found` */
export function deleteRedirectUri(id: string): Decide {
  return ({ redirect_uris, deleted }) => {
    const present = redirect_uris.find((one) => one.id === id);
    if (present === undefined && deleted.includes(id)) return [];
    if (present === undefined) throw notFound('Redirect URI', id);
    if (present.default && redirect_uris.length > 1)
      throw new DomainError('conflict', 'redirect_uri_is_default', `'${present.uri}' is the default: make another one the default first.`);
    return [{ type: 'redirect_uri.deleted', data: { id } }];
  };
}

export function createCorsOrigin(origin: string): Decide {
  return ({ cors_origins }, context) => {
    const id = context.id('cors_origin');
    const present = cors_origins.find((one) => one.origin === origin);
    if (present?.id === id) return [];
    if (present !== undefined) throw new DomainError('conflict', 'duplicate_cors_origin', `'${origin}' is a CORS origin already.`);
    if (cors_origins.length >= MOST) throw tooMany('CORS origins');
    return [{ type: 'cors_origin.created', data: { id, origin } }];
  };
}

/** @throws DomainError `entity_not_found` */
export function deleteCorsOrigin(id: string): Decide {
  return ({ cors_origins, deleted }) => {
    if (cors_origins.some((one) => one.id === id)) return [{ type: 'cors_origin.deleted', data: { id } }];
    if (deleted.includes(id)) return [];
    throw notFound('CORS origin', id);
  };
}

function tooMany(what: string): DomainError {
  return new DomainError('invalid', 'bad_request', `An environment has at most ${MOST} ${what}.`);
}
