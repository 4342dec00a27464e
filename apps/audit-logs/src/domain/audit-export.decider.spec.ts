import { specOf } from '#libs/testing/src/decider-spec';
import {
  auditExportDecider,
  createExport,
  expireExport,
  failExport,
  finishExport,
  goneAt,
  type AuditExportEvent,
  type NewAuditExport,
} from './audit-export.decider.ts';

const { given } = specOf(auditExportDecider);

const id = 'audit_log_export_01J0000000000000000000000A';
const made: NewAuditExport = {
  ...{ id, organization_id: 'org_01J0000000000000000000000A', format: 'csv', range_start: 1, range_end: 2, filter: null, asked_at: 3 },
  ...{ size: 4, checkpoint: 'signed' },
};
const file = { bytes: 10, hash: 'hash' };
const files = { attempt: 'first', events: 2, file, proof: file };
const created: AuditExportEvent = { type: 'audit_log_export.created', data: made };
const ready: AuditExportEvent = { type: 'audit_log_export.ready', data: { id, ...files } };
const failed: AuditExportEvent = { type: 'audit_log_export.failed', data: { id, reason: 'storage_full' } };
const expired: AuditExportEvent = { type: 'audit_log_export.expired', data: { id } };

describe('an export of an audit trail', () => {
  it('is what was asked for first', () => {
    given().when(createExport(made)).then(created);
    given(created)
      .when(createExport({ ...made, size: 5 }))
      .thenNothing();
  });

  it('is made once, or fails once', () => {
    given(created).when(finishExport(files)).then(ready);
    given(created).when(failExport('storage_full')).then(failed);
    for (const over of [ready, failed])
      for (const decide of [finishExport({ ...files, attempt: 'second' }), failExport('internal_error')]) given(created, over).when(decide).thenNothing();
    given().when(finishExport(files)).thenNothing();
  });

  it('expires when it was ready, and only then', () => {
    given(created, ready).when(expireExport()).then(expired);
    for (const before of [[created], [created, failed], [created, ready, expired]])
      given(...before)
        .when(expireExport())
        .thenNothing();
  });

  it('has files for seven days', () => {
    const at = '2026-01-15T12:00:00.000Z';
    const folded = [created, ready].reduce(
      (state, event, index) => auditExportDecider.evolve(state, { ...event, at, version: index + 1 }),
      auditExportDecider.initial,
    );
    expect(new Date(goneAt(folded!)!).toISOString()).toBe('2026-01-22T12:00:00.000Z');
    expect(goneAt({ ...folded!, state: 'error' })).toBeNull();
  });
});
