import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { organizationsView } from '#apps/identity/src/views/organizations.view';
import type { View } from '#libs/event-sourcing/src/views/view';
import { changedViews, viewsDocument, type ExamplesFile } from './views-document.ts';

interface Row {
  readonly id: string;
  readonly name: string;
}

const example = (type: string, id: string, name: string) => ({ type, shape: 1, at: '2026-01-15T12:00:00.000Z', data: { id, name } });
const EXAMPLES: readonly ExamplesFile[] = [
  { path: 'a.examples.json', events: [example('thing.named', '1', 'One'), example('other.named', '2', 'Two'), example('thing.named', '1', 'Uno')] },
  { path: 'b.examples.json', events: [example('other.named', '3', 'Three')] },
];

const view = (changes: Partial<View<Row>> = {}): View<Row> => ({
  name: 'things',
  version: 1,
  handles: ['thing.named'],
  indexes: [{ name: 'name', keys: ({ name }) => [name] }],
  idsOf: ({ data }) => [(data as Row).id],
  evolve: (_row, { data }) => data as Row,
  ...changes,
});

describe('what is written down of the views', () => {
  const before = viewsDocument([view()], EXAMPLES);
  const changed = (changes: Partial<View<Row>>, examples = EXAMPLES) => changedViews(before, [view(changes)], examples);

  it('is their indexes, and what stored events make of their rows', () => {
    expect(before).toMatch(/\n## things-v1\n\nFound name\.\n\n- `a\.examples\.json`: [0-9a-f]{6} · [0-9a-f]{6}\n$/);
    expect(changed({})).toEqual([]);
  });

  it.each<[string, Partial<View<Row>>, RegExp]>([
    [
      'another index',
      { indexes: [...view().indexes, { name: 'folded', keys: () => [] }] },
      /things-v1 has other indexes \(name, folded; before: name\): raise its version/,
    ],
    ['an index of another name', { indexes: [{ name: 'title', keys: ({ name }) => [name] }] }, /other indexes/],
    ['an order', { sortKey: ({ name }) => name }, /other indexes/],
    [
      'other keys of an index',
      { indexes: [{ name: 'name', keys: ({ name }) => [name.toLowerCase()] }] },
      /other rows or keys of a\.examples\.json: raise the version/,
    ],
    ['another fold', { evolve: (row, { data }) => row ?? (data as Row) }, /other rows or keys/],
    ['rows under other ids', { idsOf: ({ data }) => [`${(data as Row).id}!`] }, /other rows or keys/],
    ['another text of a row', { serialise: ({ name }) => name }, /other rows or keys/],
    ['holders of what is personal', { personal: { holders: () => ['user.1'], columns: () => ['name'] } }, /other indexes/],
  ])('refuses %s under the same version, and takes it under the next', (_what, changes, sentence) => {
    expect(changed(changes)).toEqual([expect.stringMatching(sentence)]);
    expect(changed({ ...changes, version: 2 })).toEqual([]);
  });

  it('goes on where examples are added, and where a view comes or goes', () => {
    const [first, second] = EXAMPLES as readonly [ExamplesFile, ExamplesFile];
    const between = [...first.events.slice(0, 2), example('thing.named', '1', 'Ein'), ...first.events.slice(2), example('thing.named', '9', 'Nine')];
    const more = [{ path: first.path, events: between }, { path: 'aa.examples.json', events: first.events }, second];
    expect(changed({}, more)).toEqual([]);
    expect(changed({ evolve: (row, { data }) => row ?? (data as Row) }, more)).toHaveLength(1);
    expect(changedViews(before, [], EXAMPLES)).toEqual([]);
    expect(changedViews('', [view()], EXAMPLES)).toEqual([]);
  });

  it('refuses examples that are gone or edited, and what folds facts that it passed over before', () => {
    const [first, second] = EXAMPLES as readonly [ExamplesFile, ExamplesFile];
    for (const events of [first.events.slice(1), [...first.events].reverse(), [example('thing.named', '1', 'Other'), ...first.events.slice(1)]])
      expect(changed({}, [{ path: first.path, events }, second])).toEqual([expect.stringContaining('a.examples.json lacks examples')]);
    expect(changed({ handles: ['thing.named', 'other.named'] })).toHaveLength(2);
  });

  it('is in the documents of today, and catches a change of one of them', () => {
    const file = (path: string): string => readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8');
    const path = 'identity/src/domain/organization.examples.json';
    const examples = [{ path, ...(JSON.parse(file(`apps/${path}`)) as Pick<ExamplesFile, 'events'>) }];
    const changed = (today: typeof organizationsView) =>
      changedViews(file('docs/views.md'), [today], examples).filter((sentence) => sentence.includes('organizations'));
    const indexes = organizationsView.indexes.map((index) => ({ ...index, keys: () => ['all'] }));
    expect(changed(organizationsView)).toEqual([]);
    expect(changed({ ...organizationsView, indexes })).toHaveLength(1);
    const decider = { ...organizationsView.decider, foldVersion: organizationsView.decider.foldVersion + 1 };
    expect(changed({ ...organizationsView, decider, indexes })).toEqual([]);
  });
});
