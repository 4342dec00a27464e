import { readFileSync } from 'node:fs';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { auditTrailView } from '../views/audit-trail.view.ts';
import { AUDIT_TRAIL, auditTrail, type AuditTrailEvent } from './audit-trail.decider.ts';

interface Examples {
  readonly events: readonly { readonly type: string; readonly shape: number; readonly at: string; readonly data: unknown }[];
  readonly state: unknown;
}

const { events, state } = JSON.parse(readFileSync(new URL('audit-trail.examples.json', import.meta.url), 'utf8')) as Examples;

/** Nobody decides on a trail: its rows are all that is folded of it. */
describe('the log of an audit trail', () => {
  it('keeps an example of every type', () => {
    expect(events.map(({ type }) => type)).toEqual(Object.keys(auditTrail.sealed));
  });

  it('is shown as every release wrote it', () => {
    const [event] = events;
    const stream = `${AUDIT_TRAIL}-environment_01KF0000000000000000000000-org_01KF0000000000000000000000`;
    const record = { ...event!, stream, version: 1, meta: { at: Date.parse(event!.at) } } as unknown as Recorded<AuditTrailEvent>;
    const [id] = auditTrailView.idsOf(record);
    expect(id).toBe('01KF000000000000000000');
    expect(auditTrailView.evolve(null, record, id!)).toEqual(state);
  });
});
