import { specOf } from '#libs/testing/src/decider-spec';
import { auditCheckpointDecider, recordCheckpoint, type RecordedCheckpoint } from './audit-checkpoint.decider.ts';

const { given } = specOf(auditCheckpointDecider);

const of = (size: number, note = 'signed'): RecordedCheckpoint => ({ size, root: 'root', time: '2026-01-15T12:00:00.000Z', note });
const recorded = (checkpoint: RecordedCheckpoint) => ({ type: 'audit_checkpoint.recorded', data: checkpoint }) as const;

describe('the checkpoints of an audit trail', () => {
  it('grow', () =>
    given(recorded(of(1)))
      .when(recordCheckpoint(of(2)))
      .then(recorded(of(2))));

  it('are told of once where two sign at once', () =>
    given(recorded(of(2)))
      .when(recordCheckpoint(of(2, 'signed by another')))
      .thenNothing());

  it('never go back: who signs late is not told of', () =>
    given(recorded(of(2)))
      .when(recordCheckpoint(of(1)))
      .thenNothing());
});
