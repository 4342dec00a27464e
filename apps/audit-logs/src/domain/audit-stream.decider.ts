import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import type { AuditLogStreamType } from '#libs/contracts/src/audit-log-streams/audit-log-stream';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { invalidField, notFound } from '#libs/platform/src/domain-error';

// These types are the storage format: a stored name or shape is never edited.

/** `change` is another one with each of them: what failed before it is tried again at once. */
export type AuditStreamEvent =
  | Fact<'audit_log_stream.created', StreamCreated>
  | Fact<'audit_log_stream.updated', StreamSettings & Changed>
  | Fact<'audit_log_stream.paused', Changed>
  | Fact<'audit_log_stream.resumed', Changed>
  | Fact<'audit_log_stream.deleted', { readonly id: string }>;

interface Changed {
  readonly id: string;
  readonly change: string;
}

/** Where it goes to, and how. */
export interface StreamSettings {
  readonly type: AuditLogStreamType;
  readonly url: string;
  /** Sealed: what signs requests, or the token of the collector. */
  readonly secret: string;
  readonly index: string | null;
  readonly source: string | null;
  readonly sourcetype: string | null;
}

/** What it begins behind: versions of the streams of the trail and of its checkpoints. */
export interface StreamPlace {
  readonly events: number;
  readonly checkpoints: number;
}

interface StreamCreated extends StreamSettings, Changed {
  readonly organization_id: string;
  readonly after: StreamPlace;
}

export interface StoredStream extends StreamCreated {
  readonly object: 'audit_log_stream';
  readonly is_paused: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

export type AuditStreamState = StoredStream | { readonly object: 'deleted_audit_log_stream'; readonly id: string } | null;

function evolve(state: AuditStreamState, event: AuditStreamEvent & { readonly at: string }): AuditStreamState {
  if (event.type === 'audit_log_stream.created') {
    if (state?.object === 'audit_log_stream') return state;
    return { object: 'audit_log_stream', ...event.data, is_paused: false, created_at: event.at, updated_at: event.at };
  }
  if (state?.object !== 'audit_log_stream') return state;
  switch (event.type) {
    case 'audit_log_stream.updated':
      return { ...state, ...event.data, updated_at: event.at };
    case 'audit_log_stream.paused':
      return { ...state, ...event.data, is_paused: true, updated_at: event.at };
    case 'audit_log_stream.resumed':
      return { ...state, ...event.data, is_paused: false, updated_at: event.at };
    case 'audit_log_stream.deleted':
      return { object: 'deleted_audit_log_stream', id: state.id };
  }
}

/** The stream of an organization, under the key of that. */
export const auditStreamDecider: Decider<AuditStreamState, AuditStreamEvent> = {
  category: 'audit_stream',
  foldVersion: 1,
  initial: null,
  sealed: {
    'audit_log_stream.created': null,
    'audit_log_stream.updated': null,
    'audit_log_stream.paused': null,
    'audit_log_stream.resumed': null,
    'audit_log_stream.deleted': null,
  },
  evolve,
  organization: (state) => (state?.object === 'audit_log_stream' ? state.organization_id : undefined),
  // Audit data is announced to nobody, nor is where it goes.
  toPublicEvent: () => null,
  hangsOn: {
    reaction: 'delete-audit-streams-with-their-organization',
    parents: [{ ends: 'organization.deleted' satisfies OrganizationEvent['type'] }],
    end: recordDeletion,
  },
};

type Decide = Decision<AuditStreamState, AuditStreamEvent>;

/** What is asked for: without a secret, that of before. */
export interface GivenStream extends Omit<StreamSettings, 'secret'> {
  readonly organization_id: string;
  readonly secret: string | null;
  /** Where one that is created begins. */
  readonly after: StreamPlace;
}

/** @throws DomainError `invalid_request_parameters` where the secret is not there, and may not be that of before */
export function configureStream({ secret, after, organization_id, ...given }: GivenStream): Decide {
  return (state, context) => {
    const change = context.id('als_change');
    if (state?.object !== 'audit_log_stream') {
      const id = context.id('als');
      // A repeated command meets what it made; once that was deleted, it stays deleted.
      if (state?.id === id) throw notFoundOf(organization_id);
      return [{ type: 'audit_log_stream.created', data: { id, change, organization_id, ...given, secret: secret ?? refuseWithout(given), after } }];
    }
    if (state.change === change) return [];
    // Sent elsewhere, the secret would be shown to whoever is there.
    const isKept = secret === null && state.type === given.type && state.url === given.url;
    return [{ type: 'audit_log_stream.updated', data: { id: state.id, change, ...given, secret: isKept ? state.secret : (secret ?? refuseWithout(given)) } }];
  };
}

/** Nothing where it is paused. */
export function pauseStream(organization: string): Decide {
  return (state, context) => {
    const { id, is_paused } = requireStream(state, organization);
    return is_paused ? [] : [{ type: 'audit_log_stream.paused', data: { id, change: context.id('als_change') } }];
  };
}

/** Also where it is not paused: then what failed is tried again. */
export function resumeStream(organization: string): Decide {
  return (state, context) => {
    const { id, change } = requireStream(state, organization);
    const next = context.id('als_change');
    return change === next ? [] : [{ type: 'audit_log_stream.resumed', data: { id, change: next } }];
  };
}

export function deleteStream(organization: string): Decide {
  return (state) => {
    if (state?.object === 'deleted_audit_log_stream') return [];
    return [{ type: 'audit_log_stream.deleted', data: { id: requireStream(state, organization).id } }];
  };
}

function recordDeletion(): Decide {
  return (state) => (state?.object === 'audit_log_stream' ? [{ type: 'audit_log_stream.deleted', data: { id: state.id } }] : []);
}

/** @throws DomainError `entity_not_found` */
export function requireStream(state: AuditStreamState, organization: string): StoredStream {
  if (state?.object !== 'audit_log_stream') throw notFoundOf(organization);
  return state;
}

function notFoundOf(organization: string): Error {
  return notFound('Audit log stream', organization);
}

function refuseWithout({ type }: Pick<StreamSettings, 'type'>): never {
  const field = type === 'Splunk' ? 'token' : 'secret';
  throw invalidField('required', field, `${field} is required where a stream is created, or its type or url changes.`);
}
