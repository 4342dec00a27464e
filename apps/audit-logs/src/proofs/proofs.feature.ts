import { feature } from '#libs/runtime/src/feature';
import { AuditKeys, AuditKeyStates } from '../checkpoints/audit-keys.ts';
import { CheckpointJob } from '../checkpoints/checkpoint-job.ts';
import { Checkpoints } from '../checkpoints/checkpoints.ts';
import { auditCheckpointDecider } from '../domain/audit-checkpoint.decider.ts';
import { auditKeysDecider } from '../domain/audit-keys.decider.ts';
import { TileWriter } from '../tree/tile-writer.ts';
import { TrailTrees } from '../tree/trail-trees.ts';
import { AuditProofs } from './audit-proofs.ts';

export const proofs = feature({
  deciders: [auditKeysDecider, auditCheckpointDecider],
  providers: [TrailTrees, TileWriter, Checkpoints, AuditKeys, AuditProofs],
  backgroundComponents: [AuditKeyStates, CheckpointJob],
});
