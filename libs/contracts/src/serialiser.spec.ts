import { exampleOf } from './examples.ts';
import { Event } from './feed/event.ts';
import { EventOrganization } from './feed/event-data.ts';
import { Const, Flag, Integer, Json, ListOf, MapOfText, Nested, OneOf, Optional, Text, Time } from './fields.ts';
import { empty, feedOf, listOf, ok } from './operation.ts';
import { listText, serialiserOf } from './serialiser.ts';

class Leaf {
  @Text({ doc: 'Its name.' }) name!: string;
  @Text({ doc: 'Its colour.', nullable: true }) colour!: string | null;
}

class Tree {
  @Const('tree') object!: 'tree';
  @Text({ doc: 'Its name.' }) name!: string;
  @Text({ doc: 'Its Latin name.', nullable: true }) latin!: string | null;
  @Optional() @Text({ doc: 'Its nick name.' }) nick?: string;
  @Optional() @Integer({ doc: 'Its age.', nullable: true }) age?: number | null;
  @Flag({ doc: 'Green in winter.' }) evergreen!: boolean;
  @OneOf(['big', 'small'], { doc: 'Its size.', nullable: true }) size!: 'big' | 'small' | null;
  @Time({ doc: 'When it was planted.' }) planted_at!: string;
  @MapOfText({ doc: 'Notes.' }) notes!: Readonly<Record<string, string>>;
  @ListOf(() => Leaf, { doc: 'Its leaves.' }) leaves!: readonly Leaf[];
  @ListOf({ text: {} }, { doc: 'Its tags.' }) tags!: readonly string[];
  @Optional() @Nested(() => Leaf, { doc: 'The first.', nullable: true }) first?: Leaf | null;
  @Optional() @MapOfText({ doc: 'Marks.', nullable: true }) marks?: Readonly<Record<string, string>> | null;
  @Optional() @ListOf(() => Leaf, { doc: 'Fallen.', nullable: true }) fallen?: readonly Leaf[] | null;
  @Optional() @Json({ doc: 'Anything.' }) anything?: unknown;
}

const tree: Tree = {
  object: 'tree',
  name: 'Oak',
  latin: null,
  evergreen: false,
  size: null,
  planted_at: '2026-01-15T12:00:00.000Z',
  notes: { soil: 'dry' },
  leaves: [{ name: 'a', colour: null }],
  tags: ['old'],
};
const serialise = serialiserOf(Tree);
const ODD = [
  '',
  '"',
  '\\',
  'ü',
  '😀',
  '\ud800',
  '\udc00x',
  '\u2028\u2029',
  '\0\u001f\u007f',
  '</script>',
  'x'.repeat(50) + '\ud800',
  'y'.repeat(50) + '\n',
  '"'.repeat(6000),
  '__proto__',
];

describe('a serialiser', () => {
  it('writes the declared fields in the order of their declaration', () => {
    const shuffled = Object.fromEntries(Object.entries({ ...tree, nick: 'Oakey', age: 100 }).reverse());
    expect(serialise(shuffled as unknown as Tree)).toBe(
      '{"object":"tree","name":"Oak","latin":null,"nick":"Oakey","age":100,"evergreen":false,"size":null,"planted_at":"2026-01-15T12:00:00.000Z","notes":{"soil":"dry"},"leaves":[{"name":"a","colour":null}],"tags":["old"]}',
    );
  });

  it('lets nothing out that is not declared, at any depth', () => {
    const leaking = {
      ...tree,
      secret: 'canary',
      leaves: [{ name: 'a', colour: null, secret: 'canary' }],
      first: { name: 'b', colour: 'red', secret: { deep: 'canary' } },
    };
    expect(serialise(leaking)).not.toContain('canary');
    expect(JSON.parse(serialise(leaking))).toEqual({ ...tree, first: { name: 'b', colour: 'red' } });
  });

  it('leaves out what is absent and writes null where a field may be null', () => {
    expect(JSON.parse(serialise({ ...tree, first: null, age: null, marks: null, fallen: null, nick: undefined }))).toEqual({
      ...tree,
      first: null,
      age: null,
      marks: null,
      fallen: null,
    });
  });

  it('writes any JSON verbatim', () => {
    const anything = { a: [1, null, { b: 'c' }], secret: 'meant' };
    expect(JSON.parse(serialise({ ...tree, anything }))).toEqual({ ...tree, anything });
  });

  it.each(ODD.map((text) => [text]))('writes what JSON.stringify would write of it again: %j', (odd) => {
    const notes = JSON.parse(JSON.stringify({ b: '1', 2: 'x', 1: 'y' })) as Record<string, string>;
    Object.defineProperty(notes, odd, { value: odd, enumerable: true });
    for (const value of [
      { ...tree, name: odd, latin: odd, notes, tags: [odd], anything: { [odd]: odd } },
      { ...tree, size: odd, planted_at: odd } as unknown as Tree,
    ]) {
      const text = serialise(value);
      expect(text).toBe(JSON.stringify(JSON.parse(text)));
      expect((JSON.parse(text) as Tree).name).toBe(value.name);
    }
  });

  it.each([0, -0, 1, -1, 1e21, 123456789012345, Number.MAX_SAFE_INTEGER])('writes the integer %p as JSON.stringify would', (age) => {
    const text = serialise({ ...tree, age });
    expect(text).toBe(JSON.stringify(JSON.parse(text)));
    expect(text).toContain(`"age":${JSON.stringify(age)}`);
  });
});

describe('an answer', () => {
  it('of one resource is the resource', () => {
    expect(serialiserOf(ok(Tree))(tree)).toBe(serialise(tree));
  });

  it('of a list is the envelope around the rows', () => {
    const page = { object: 'list', data: [tree, tree], list_metadata: { before: null, after: 'tree_1' } } as const;
    const text = serialiserOf(listOf(Tree))(page);
    expect(JSON.parse(text)).toEqual(page);
    expect(text).toBe(listText([serialise(tree), serialise(tree)], null, 'tree_1'));
    expect(listText([], null, null)).toBe('{"object":"list","data":[],"list_metadata":{"before":null,"after":null}}');
  });

  it('of the feed has only the cursor that goes forwards', () => {
    const page = { object: 'list', data: [tree], list_metadata: { after: null } } as const;
    expect(serialiserOf(feedOf(Tree))(page)).toBe(listText([serialise(tree)], undefined, null));
    expect(listText([], undefined, 'e"1')).toBe('{"object":"list","data":[],"list_metadata":{"after":"e\\"1"}}');
  });

  it('without a body is empty', () => {
    expect(serialiserOf(empty(204))(undefined)).toBe('');
  });
});

describe('an event', () => {
  it('keeps its envelope and shows an organization without the deprecated flag', () => {
    const shown = exampleOf(EventOrganization);
    const organization: object = { ...shown, allow_profiles_outside_organization: false };
    expect(JSON.parse(serialiserOf<object>(EventOrganization)(organization))).toEqual(shown);
    const event: Event = {
      object: 'event',
      id: 'event_1',
      event: 'organization.created',
      data: shown,
      created_at: '2026-01-15T12:00:00.000Z',
      context: { actor: { id: 'a', source: 'api', name: null } },
    };
    expect(JSON.parse(serialiserOf(Event)(event))).toEqual(event);
  });
});
