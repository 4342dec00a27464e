import type { Decision, Fact } from './decider.ts';

/**
 * Work that one process does at a time cannot have its lease fence what it appends, so it carries what that comes to: whatever is decided is decided while the work is ours for certain, and recorded at
 * the version that it was decided on. By the time that the work is another's, whoever has it has met the same, and done it, so that this version is past; decided anew, it throws.
 * @param held throws where the work may be another's
 */
export function decidedWhile<State, Event extends Fact>(held: () => void, decide: Decision<State, Event>): Decision<State, Event> {
  return (state, context) => {
    held();
    return decide(state, context);
  };
}
