import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';

// These types are the storage format: a stored name or shape is never edited.

export type AuditExportEvent =
  | Fact<'audit_log_export.created', NewAuditExport>
  | Fact<'audit_log_export.ready', StoredFiles & { readonly id: string }>
  | Fact<'audit_log_export.failed', { readonly id: string; readonly reason: ExportFailure }>
  | Fact<'audit_log_export.expired', { readonly id: string }>;

export type ExportFormat = 'csv' | 'ndjson';

export type ExportFailure =
  'storage_full' | 'storage_unavailable' | 'event_unreadable' | 'organization_deleted' | 'took_too_long' | 'too_large' | 'internal_error';

/** What is exported does not change any more, whatever is recorded while it is made. */
export interface NewAuditExport {
  readonly id: string;
  /** Whose trail it is: an organization, or the environment itself. */
  readonly organization_id: string;
  readonly format: ExportFormat;
  /** Of `occurred_at`, both inclusive; milliseconds since the epoch. */
  readonly range_start: number;
  readonly range_end: number;
  /** Names of people may be in it: sealed under the trail's key of the month of `asked_at`. Null: everything of the range. */
  readonly filter: string | null;
  /** Milliseconds since the epoch. */
  readonly asked_at: number;
  /** How many events the trail had, and the signed checkpoint that says so. */
  readonly size: number;
  readonly checkpoint: string;
}

export interface StoredFile {
  readonly bytes: number;
  /** SHA-256, base64url. */
  readonly hash: string;
}

export interface StoredFiles {
  /** Tells the files of one attempt from those of another. */
  readonly attempt: string;
  readonly events: number;
  readonly file: StoredFile;
  readonly proof: StoredFile;
}

export interface StoredAuditExport extends NewAuditExport {
  readonly state: 'pending' | 'ready' | 'error' | 'expired';
  /** Null until it is ready. */
  readonly files: StoredFiles | null;
  readonly failure: ExportFailure | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** Null until it is ready. */
  readonly ready_at: string | null;
}

export type AuditExportState = StoredAuditExport | null;

/** How long a file is kept. */
export const KEPT_MS = 7 * 86_400_000;

export const auditExportDecider: Decider<AuditExportState, AuditExportEvent> = {
  category: 'audit_export',
  foldVersion: 1,
  initial: null,
  sealed: { 'audit_log_export.created': null, 'audit_log_export.ready': null, 'audit_log_export.failed': null, 'audit_log_export.expired': null },
  evolve: (state, event) => {
    switch (event.type) {
      case 'audit_log_export.created':
        return { ...event.data, state: 'pending', files: null, failure: null, created_at: event.at, updated_at: event.at, ready_at: null };
      case 'audit_log_export.ready': {
        const { id: _, ...files } = event.data;
        return state && { ...state, state: 'ready', files, updated_at: event.at, ready_at: event.at };
      }
      case 'audit_log_export.failed':
        return state && { ...state, state: 'error', failure: event.data.reason, updated_at: event.at };
      case 'audit_log_export.expired':
        return state && { ...state, state: 'expired', updated_at: event.at };
    }
  },
  // The trail of an environment itself is nobody's.
  organization: (state) => (state?.organization_id.startsWith('org_') ? state.organization_id : undefined),
  toPublicEvent: () => null,
};

type Decide = Decision<AuditExportState, AuditExportEvent>;

export function createExport(made: NewAuditExport): Decide {
  return (state) => (state === null ? [{ type: 'audit_log_export.created', data: made }] : []);
}

/** Of two that make one export, the first has made it. */
export function finishExport(files: StoredFiles): Decide {
  return (state) => (state?.state === 'pending' ? [{ type: 'audit_log_export.ready', data: { id: state.id, ...files } }] : []);
}

export function failExport(reason: ExportFailure): Decide {
  return (state) => (state?.state === 'pending' ? [{ type: 'audit_log_export.failed', data: { id: state.id, reason } }] : []);
}

/** Its files are gone. */
export function expireExport(): Decide {
  return (state) => (state?.state === 'ready' ? [{ type: 'audit_log_export.expired', data: { id: state.id } }] : []);
}

/** When the files of an export go (milliseconds since the epoch); null where there are none. */
export function goneAt({ state, ready_at }: StoredAuditExport): number | null {
  return state === 'ready' || state === 'expired' ? Date.parse(ready_at!) + KEPT_MS : null;
}
