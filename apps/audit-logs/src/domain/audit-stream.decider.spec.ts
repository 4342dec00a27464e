import { specOf } from '#libs/testing/src/decider-spec';
import {
  auditStreamDecider,
  configureStream,
  deleteStream,
  pauseStream,
  resumeStream,
  type AuditStreamEvent,
  type GivenStream,
} from './audit-stream.decider.ts';

const ORGANIZATION = 'org_01KF0000000000000000000000';
const asked: GivenStream = {
  organization_id: ORGANIZATION,
  type: 'GenericHttps',
  url: 'https://acme.test/in',
  secret: 'sealed',
  index: null,
  source: null,
  sourcetype: null,
  after: { events: 7, checkpoints: 2 },
};

describe('the stream of an organization', () => {
  const { given, id } = specOf(auditStreamDecider);
  const change = id('als_change');
  const created = { type: 'audit_log_stream.created', data: { id: 'als_1', change: 'als_change_1', ...asked, secret: 'before' } } as const;
  const paused: AuditStreamEvent = { type: 'audit_log_stream.paused', data: { id: 'als_1', change: 'als_change_2' } };
  const deleted: AuditStreamEvent = { type: 'audit_log_stream.deleted', data: { id: 'als_1' } };
  const { after: _, organization_id: __, ...settings } = asked;

  it('begins where its trail is', () =>
    given()
      .when(configureStream(asked))
      .then({ type: 'audit_log_stream.created', data: { ...asked, id: id('als'), change, secret: 'sealed' } }));
  it('needs a secret', () =>
    given()
      .when(configureStream({ ...asked, secret: null }))
      .thenRefused('invalid_request_parameters'));
  it('keeps its place when its settings change', () =>
    given(created)
      .when(configureStream({ ...asked, url: 'https://elsewhere.test/' }))
      .then({ type: 'audit_log_stream.updated', data: { id: 'als_1', change, ...settings, secret: 'sealed', url: 'https://elsewhere.test/' } }));
  it('keeps its secret where it is sent to the same receiver', () =>
    given(created)
      .when(configureStream({ ...asked, secret: null, source: 'other' }))
      .then({ type: 'audit_log_stream.updated', data: { id: 'als_1', change, ...settings, secret: 'before', source: 'other' } }));
  it.each([{ url: 'https://elsewhere.test/' }, { type: 'Splunk' }] as const)('gives its secret to nobody else: %j', (other) =>
    given(created)
      .when(configureStream({ ...asked, secret: null, ...other }))
      .thenRefused('invalid_request_parameters'),
  );
  it('is another one after it was deleted', () =>
    given(created, deleted)
      .when(configureStream(asked))
      .thenMatching({ data: { id: id('als') } }));
  it('stays deleted where the command that made it is repeated', () => {
    const first: AuditStreamEvent = { type: 'audit_log_stream.created', data: { ...created.data, id: id('als') } };
    const gone: AuditStreamEvent = { type: 'audit_log_stream.deleted', data: { id: id('als') } };
    given(first, gone).when(configureStream(asked)).thenRefused('entity_not_found');
  });

  it('is paused once', () => {
    given(created)
      .when(pauseStream(ORGANIZATION))
      .then({ type: 'audit_log_stream.paused', data: { id: 'als_1', change } });
    given(created, paused).when(pauseStream(ORGANIZATION)).thenNothing();
  });
  it('is resumed, also where it only failed', () => {
    const resumed = { type: 'audit_log_stream.resumed', data: { id: 'als_1', change } } as const;
    given(created, paused).when(resumeStream(ORGANIZATION)).then(resumed);
    given(created).when(resumeStream(ORGANIZATION)).then(resumed);
  });
  it('is deleted once', () => {
    given(created).when(deleteStream(ORGANIZATION)).then(deleted);
    given(created, deleted).when(deleteStream(ORGANIZATION)).thenNothing();
  });
  it.each([[pauseStream], [resumeStream], [deleteStream]])('is not there before it was made', (decision) =>
    given().when(decision(ORGANIZATION)).thenRefused('entity_not_found'),
  );
  it('ends with its organization', () => {
    const end = (organization: string) => auditStreamDecider.hangsOn!.end(organization);
    given(created, paused).when(end(ORGANIZATION)).then(deleted);
    given(created, deleted).when(end(ORGANIZATION)).thenNothing();
    given().when(end(ORGANIZATION)).thenNothing();
  });
});
