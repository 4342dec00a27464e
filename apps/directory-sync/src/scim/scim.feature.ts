import { RequestCounters } from '#libs/read-models/src/request-counters';
import { feature } from '#libs/runtime/src/feature';
import { ScimAccess } from './access.ts';
import { BodyParser } from './body-parser.ts';
import { ScimGroups } from './groups.ts';
import { ScimMetrics } from './metrics.ts';
import { ScimRequestLog } from './request-log.ts';
import { ScimFace } from './scim-face.ts';
import { ScimUsers } from './users.ts';

export const scim = feature({
  providers: [ScimFace, ScimAccess, ScimUsers, ScimGroups, BodyParser, ScimMetrics, RequestCounters],
  backgroundComponents: [ScimRequestLog],
});
