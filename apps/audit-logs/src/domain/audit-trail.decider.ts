import type { Fact } from '#libs/event-sourcing/src/deciding/decider';

// These types are the storage format: a stored name or shape is never edited.

/** First part of the streams; the key is the id of the organization, or of the environment for what was done to that. Nothing else lies in one: version and leaf go together. */
export const AUDIT_TRAIL = 'audit_trail';

export type AuditTrailEvent = Fact<'audit_event.recorded', RecordedAuditEvent>;

export interface RecordedAuditEvent {
  /** `audit_event_<ULID>` */
  readonly id: string;
  /** Milliseconds since the epoch; the time of the record is when the event was received. */
  readonly occurred_at: number;
  /** SHA-256 of salt and content, base64url. */
  readonly commitment: string;
  /** Tells a repeat: of the key that it came with, or of its content where it came without. */
  readonly digest: string;
  /** What it is found by, `TERM_LENGTH` characters each. */
  readonly terms: string;
  /** The content: see `content-sealing.ts`. */
  readonly sealed: string;
}

/** Kinds of what events are found by. */
export const TERM_KINDS = ['action', 'actor_id', 'actor_name', 'target_type', 'target_id'] as const;
export type TermKind = (typeof TERM_KINDS)[number];

/** 72 bits in base64url. */
export const TERM_LENGTH = 12;

/** Streams of a trail hold nothing that anybody decides on: whoever appends has seen to it that an event is recorded once. */
export const auditTrail = { category: AUDIT_TRAIL, sealed: { 'audit_event.recorded': null } } as const;

/** Where the leaf of a record stands: streams count from 1, trees from 0. */
export function leafOf({ version }: { readonly version: number }): number {
  return version - 1;
}
