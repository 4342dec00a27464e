import { specOf } from '#libs/testing/src/decider-spec';
import { auditKeysDecider, ensureAuditKey, rotateAuditKey, type NewAuditKey } from './audit-keys.decider.ts';

const { given } = specOf(auditKeysDecider);

const key = (public_key: string): NewAuditKey => ({ public_key, private_key: 'enc.v1.sealed' });
const created = (public_key: string) => ({ type: 'audit_key.created', data: key(public_key) }) as const;

describe('the keys of the checkpoints of an environment', () => {
  it('begin with one', () =>
    given()
      .when(ensureAuditKey(key('one')))
      .then(created('one')));

  it('keep the one that was made first where two are made at once', () =>
    given(created('one'))
      .when(ensureAuditKey(key('two')))
      .thenNothing());

  it('go on with another, and lose none', () =>
    given(created('one'))
      .when(rotateAuditKey(key('two')))
      .then(created('two')));
});
