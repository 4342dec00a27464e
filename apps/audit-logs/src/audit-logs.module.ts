import { service } from '#libs/runtime/src/feature';
import { administration } from './administration/administration.feature.ts';
import { exports } from './exports/exports.feature.ts';
import { proofs } from './proofs/proofs.feature.ts';
import { retention } from './retention/retention.feature.ts';
import { schemas } from './schemas/schemas.feature.ts';
import { streams } from './streams/streams.feature.ts';
import { trail } from './trail/trail.feature.ts';

/** A customer's trail is announced to nobody: it is read, exported and streamed as what it is. */
export const auditLogs = service('audit-logs', [trail, schemas, proofs, retention, exports, streams, administration], { isForwarded: false });
