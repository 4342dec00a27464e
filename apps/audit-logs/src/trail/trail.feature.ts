import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { feature } from '#libs/runtime/src/feature';
import { auditTrail } from '../domain/audit-trail.decider.ts';
import { Retention } from '../readers/retention.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailTurns } from '../readers/trail-turns.ts';
import { ExpiredEvents } from '../retention/expired-events.ts';
import { TrailKeys } from '../sealing/trail-keys.ts';
import { auditTrailView } from '../views/audit-trail.view.ts';
import { AuditEvents } from './audit-events.ts';
import { EndedTrails } from './ended-trails.ts';
import { TrailWriter } from './trail-writer.ts';

export const trail = feature({
  deciders: [auditTrail],
  views: [auditTrailView],
  providers: [TrailKeys, TrailReader, TrailTurns, Retention, TrailWriter, AuditEvents, ExpiredEvents, EndedTrails, EnvironmentSweeps],
});
