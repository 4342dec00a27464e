import type { RadarListAction, RadarListType } from '#libs/contracts/src/radar/radar';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound } from '#libs/platform/src/domain-error';

// These types are the storage format: a stored name or shape is never edited.

export type RiskListEvent = Fact<'risk_list.entry_added', RiskListEntry> | Fact<'risk_list.entry_removed', RiskListEntry>;

/** What was listed stands nowhere: whoever asks has it, and brings it. */
interface RiskListEntry {
  /** Keyed, over type and value. */
  readonly digest: string;
  readonly type: RadarListType;
  readonly action: RadarListAction;
}

/** The lists that a digest is on. A part of all lists of an environment has a stream of its own, so that a change makes nobody read all of them again. */
export type RiskListState = Readonly<Record<string, readonly RadarListAction[]>>;

/** In one part: some 100,000 in an environment. */
const MOST = 400;

function evolve(state: RiskListState, { type, data: { digest, action } }: RiskListEvent): RiskListState {
  const { [digest]: present = [], ...others } = state;
  const rest = present.filter((each) => each !== action);
  const actions = type === 'risk_list.entry_added' ? [...rest, action] : rest;
  return actions.length === 0 ? others : { ...others, [digest]: actions };
}

export const riskListDecider: Decider<RiskListState, RiskListEvent> = {
  category: 'risk_list',
  foldVersion: 1,
  initial: {},
  sealed: { 'risk_list.entry_added': null, 'risk_list.entry_removed': null },
  evolve,
  // Configuration: nothing of it is announced.
  toPublicEvent: () => null,
};

type Decide = Decision<RiskListState, RiskListEvent>;

/** Nothing where it is on the list. @throws DomainError `bad_request` where too many are */
export function addToList(entry: RiskListEntry): Decide {
  return (state) => {
    if (state[entry.digest]?.includes(entry.action) === true) return [];
    if (Object.keys(state).length >= MOST) throw new DomainError('invalid', 'bad_request', 'The lists of the environment hold as many entries as they may.');
    return [{ type: 'risk_list.entry_added', data: entry }];
  };
}

/** `given`: as the caller named it. @throws DomainError `entity_not_found` */
export function removeFromList(entry: RiskListEntry, given: string): Decide {
  return (state) => {
    if (state[entry.digest]?.includes(entry.action) !== true) throw notFound('Radar list entry', given);
    return [{ type: 'risk_list.entry_removed', data: entry }];
  };
}
