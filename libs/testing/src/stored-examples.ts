import { readFileSync } from 'node:fs';
import type { Decider, Fact, Folded } from '#libs/event-sourcing/src/deciding/decider';
import { upcast } from '#libs/event-sourcing/src/log/upcasts';

/** Events as they lie in the log, and the state that they fold to. A file of them is only ever added to. */
interface StoredExamples {
  readonly events: readonly { readonly type: string; readonly shape: number; readonly at: string; readonly data: unknown }[];
  readonly state: unknown;
}

/** An aggregate goes on reading what every release wrote: an example of each shape of each type is kept in a file. */
export function itReadsStoredExamples<State, Event extends Fact>(decider: Decider<State, Event>, types: readonly string[], file: URL): void {
  const { events, state } = JSON.parse(readFileSync(file, 'utf8')) as StoredExamples;

  it.each(types)('keeps an example of every shape of %s', (type) => {
    const shapes = events.filter((example) => example.type === type).map(({ shape }) => shape);
    const current = 1 + (decider.upcasts?.[type]?.length ?? 0);
    expect([...new Set(shapes)].sort((one, other) => one - other)).toEqual(Array.from({ length: current }, (_, index) => index + 1));
  });

  it('folds what every release wrote', () => {
    const folded = events.reduce((before, { at, type, shape, data: stored }, index) => {
      const { data } = upcast({ data: stored, subject: null }, shape, decider.upcasts?.[type]);
      return decider.evolve(before, { type, data, at, version: index + 1 } as Folded<Event>);
    }, decider.initial);
    // As a row holds it: fields that are undefined are absent.
    expect(JSON.parse(JSON.stringify(folded))).toEqual(state);
  });
}
