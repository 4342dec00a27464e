import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';

// These types are the storage format: a stored name or shape is never edited.

export type AuditCheckpointEvent = Fact<'audit_checkpoint.recorded', RecordedCheckpoint>;

export interface RecordedCheckpoint {
  readonly size: number;
  /** Base64. */
  readonly root: string;
  /** ISO 8601. */
  readonly time: string;
  /** What was signed, with its signature. */
  readonly note: string;
}

/** The latest. */
export type AuditCheckpointState = RecordedCheckpoint | null;

/** Checkpoints of one trail, under the key of that. */
export const auditCheckpointDecider: Decider<AuditCheckpointState, AuditCheckpointEvent> = {
  category: 'audit_checkpoint',
  foldVersion: 1,
  initial: null,
  sealed: { 'audit_checkpoint.recorded': null },
  evolve: (_state, { data }) => data,
  toPublicEvent: () => null,
};

/** Nothing where another has recorded as much, or more: of two that sign at once one is told of. */
export function recordCheckpoint(checkpoint: RecordedCheckpoint): Decision<AuditCheckpointState, AuditCheckpointEvent> {
  return (state) => (state !== null && state.size >= checkpoint.size ? [] : [{ type: 'audit_checkpoint.recorded', data: checkpoint }]);
}
