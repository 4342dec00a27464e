import { specOf } from '#libs/testing/src/decider-spec';
import { addToList, removeFromList, riskListDecider, type RiskListEvent } from './risk-list.decider.ts';

const { given } = specOf(riskListDecider);
const blocked: RiskListEvent['data'] = { digest: '00aa', type: 'ip_address', action: 'block' };
const allowed: RiskListEvent['data'] = { ...blocked, action: 'allow' };
const added = (data: RiskListEvent['data']): RiskListEvent => ({ type: 'risk_list.entry_added', data });
const full: readonly RiskListEvent[] = Array.from({ length: 400 }, (_, index) => added({ ...blocked, digest: `00${index}` }));

describe('lists of risk', () => {
  it('take an entry', () => given().when(addToList(blocked)).then(added(blocked)));
  it('take no entry twice', () => given(added(blocked)).when(addToList(blocked)).thenNothing());
  it('allow what they block, each list on its own', () => given(added(blocked)).when(addToList(allowed)).then(added(allowed)));
  it('give an entry back', () =>
    expect(removeFromList(blocked, '192.0.2.1')({ '00aa': ['block', 'allow'] }, { now: '', id: () => '' } as never)).toEqual([
      { type: 'risk_list.entry_removed', data: blocked },
    ]));
  it('keep the other list', () =>
    expect(riskListDecider.evolve({ '00aa': ['block', 'allow'] }, { type: 'risk_list.entry_removed', data: blocked, at: '', version: 1 })).toEqual({
      '00aa': ['allow'],
    }));
  it('know what they do not hold', () => given(added(allowed)).when(removeFromList(blocked, '192.0.2.1')).thenRefused('entity_not_found'));
  it('are bounded', () =>
    given(...full)
      .when(addToList(blocked))
      .thenRefused('bad_request'));
});
