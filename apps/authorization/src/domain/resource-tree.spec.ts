import fc from 'fast-check';
import { seedOf } from '#libs/testing/src/seed';
import type { ResourceEvent } from './resource.events.ts';
import { organizationResourceId, ResourceTree, type TreeRow } from './resource-tree.ts';

const ORGANIZATION = 'org_01J00000000000000000000000';
const ROOT = organizationResourceId(ORGANIZATION);
const seed = seedOf('resource trees');
const CHARACTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Ids that differ at both ends, and come in no order. */
const idOf = (number: number): string => {
  const mixed = Math.imul(number + 1, 0x9e3779b1) >>> 0;
  const text = Array.from({ length: 6 }, (_, index) => CHARACTERS[(mixed >>> (5 * index)) & 31]).join('');
  return `authz_resource_7${text}000000000${text}${String(number).padStart(4, '0')}`;
};

function created(number: number, parent: string, external_id = `external-${number}`, type = 'a'): ResourceEvent {
  return {
    type: 'resource.created',
    data: {
      id: idOf(number),
      organization_id: ORGANIZATION,
      external_id,
      resource_type_id: `resource_type_${type}`,
      resource_type_slug: type,
      parent_resource_id: parent,
      name: 'n',
      description: null,
    },
  };
}

const moved = (number: number, parent: string): ResourceEvent => ({ type: 'resource.moved', data: { id: idOf(number), parent_resource_id: parent } });
const updated = (number: number): ResourceEvent => ({ type: 'resource.updated', data: { id: idOf(number), name: 'other' } });
const deleted = (number: number): ResourceEvent => ({ type: 'resource.deleted', data: { id: idOf(number) } });

function treeOf(...events: readonly ResourceEvent[]): ResourceTree {
  const tree = new ResourceTree(ORGANIZATION).loaded();
  events.forEach((event, index) => tree.apply(event, index + 1));
  return tree;
}

/** Everything that can be asked, as text. */
function shapeOf(tree: ResourceTree): unknown {
  const nodes = [...tree.subtreeOf(tree.root)];
  const shape = nodes.map((node) => {
    const children = [...tree.childrenOf(node)].map((child) => tree.idOf(child));
    expect(children).toEqual([...children].sort());
    expect([...tree.childrenOf(node, 'desc')].map((child) => tree.idOf(child))).toEqual([...children].reverse());
    expect(tree.isAlive(node)).toBe(true);
    expect(tree.nodeById(tree.idOf(node))).toBe(node);
    expect(tree.nodeByExternalId(tree.typeIdOf(node), tree.externalIdOf(node))).toBe(node);
    expect(tree.hasChildren(node)).toBe(children.length > 0);
    return { id: tree.idOf(node), external: tree.externalIdOf(node), type: tree.typeIdOf(node), depth: tree.depthOf(node), children };
  });
  expect(tree.size).toBe(nodes.length);
  for (const type of ['resource_type_a', 'resource_type_b']) expect(tree.countOf(type)).toBe(nodes.filter((node) => tree.typeIdOf(node) === type).length);
  return shape.sort((one, other) => (one.id < other.id ? -1 : 1));
}

describe('a tree of resources', () => {
  it('begins with the organization resource', () => {
    const tree = treeOf();
    expect(shapeOf(tree)).toEqual([{ id: ROOT, external: ORGANIZATION, type: null, depth: 0, children: [] }]);
    expect(tree.nodeByExternalId(null, ORGANIZATION)).toBe(tree.root);
    expect(tree.typeSlugOf(tree.root)).toBe('organization');
    expect(tree.parentOf(tree.root)).toBe(-1);
  });

  it('finds what was created by both of its ids', () => {
    const tree = treeOf(created(1, ROOT, 'a/b c'), created(2, idOf(1), 'x'.repeat(128), 'b'));
    const [one, two] = [tree.nodeById(idOf(1))!, tree.nodeById(idOf(2))!];
    expect(tree.nodeByExternalId('resource_type_a', 'a/b c')).toBe(one);
    expect(tree.nodeByExternalId('resource_type_b', 'x'.repeat(128))).toBe(two);
    expect(tree.nodeByExternalId('resource_type_b', 'a/b c')).toBeUndefined();
    expect(tree.nodeByExternalId('resource_type_c', 'a/b c')).toBeUndefined();
    expect([tree.parentOf(two), tree.depthOf(two), tree.heightOf(tree.root)]).toEqual([one, 2, 2]);
    expect(tree.isWithin(two, one)).toBe(true);
    expect(tree.isWithin(one, two)).toBe(false);
    expect([tree.countOf('resource_type_a'), tree.countOf('resource_type_c')]).toEqual([1, 0]);
  });

  it.each([
    '',
    'authz_resource_',
    'org_01J00000000000000000000000',
    `${idOf(1)}0`,
    idOf(1).toLowerCase(),
    idOf(1).replace('_7', '_8'),
    idOf(1).replace('_7', '_é'),
  ])('finds nothing by %j', (id) => expect(treeOf(created(1, ROOT)).nodeById(id)).toBeUndefined());

  it('forgets what hung under a deleted one, and gives their external ids and no node to others', () => {
    const removed: number[] = [];
    const tree = treeOf(created(1, ROOT), created(2, idOf(1), 'taken'), created(3, idOf(2)), created(4, ROOT));
    const nodes = [1, 2, 3].map((number) => tree.nodeById(idOf(number))!);
    tree.onRemoved = (node) => removed.push(node);
    tree.apply(deleted(1), 5);
    expect(removed.sort()).toEqual(nodes);
    expect(nodes.map((node) => tree.isAlive(node))).toEqual([false, false, false]);
    expect(tree.nodeByExternalId('resource_type_a', 'taken')).toBeUndefined();
    tree.apply(created(5, ROOT, 'taken'), 6);
    expect(nodes).not.toContain(tree.nodeByExternalId('resource_type_a', 'taken'));
    expect([tree.size, tree.deadNodes]).toEqual([3, 3]);
  });

  it('takes an event in once', () => {
    const tree = treeOf(created(1, ROOT), created(2, ROOT), moved(2, idOf(1)), deleted(2));
    expect(tree.apply(created(2, ROOT), 2)).toBe(false);
    expect(tree.nodeById(idOf(2))).toBeUndefined();
    expect(tree.version).toBe(4);
  });

  it('pages children from after any id', () => {
    const ids = Array.from({ length: 50 }, (_, index) => idOf(index)).sort();
    const tree = treeOf(...Array.from({ length: 50 }, (_, index) => created(index, ROOT)), deleted(Number(ids[20]!.slice(-3))));
    const after = (order: 'asc' | 'desc', id: string) => [...tree.childrenOf(tree.root, order, id)].map((node) => tree.idOf(node));
    expect(after('asc', ids[30]!)).toEqual(ids.slice(31));
    expect(after('desc', ids[30]!)).toEqual(
      ids
        .slice(0, 30)
        .filter((id) => id !== ids[20])
        .reverse(),
    );
    expect(after('asc', ids[20]!)).toEqual(ids.slice(21));
    expect(after('asc', ROOT)).toHaveLength(49);
  });

  /** Commands that a decision might let through, on what lives at that point. */
  const history = fc
    .array(fc.record({ kind: fc.integer({ min: 0, max: 9 }), one: fc.nat(1000), other: fc.nat(1000), name: fc.nat(12) }), { maxLength: 60 })
    .map((steps) => {
      const naive = new Naive();
      const events: ResourceEvent[] = [];
      for (const { kind, one, other, name } of steps) {
        const ids = [...naive.rows.keys()];
        const subject = ids[one % (ids.length || 1)];
        const parent = [ROOT, ...ids][other % (ids.length + 1)]!;
        const number = Number(subject?.slice(-3));
        const isFree = ![...naive.rows.values()].some(({ external_id }) => external_id === `e${name}`);
        let event: ResourceEvent | null = null;
        if (kind < 5 && isFree) event = created(events.length, parent, `e${name}`);
        else if (kind < 8 && subject !== undefined && !naive.isWithin(parent, subject)) event = moved(number, parent);
        else if (kind === 8 && subject !== undefined) event = updated(number);
        else if (kind === 9 && subject !== undefined) event = deleted(number);
        if (event === null) continue;
        events.push(event);
        naive.apply(event, events.length);
      }
      return events;
    });

  it('is what a list of parents says, after any history', () => {
    fc.assert(
      fc.property(history, (events) => {
        const naive = new Naive();
        events.forEach((event, index) => naive.apply(event, index + 1));
        expect(shapeOf(treeOf(...events))).toEqual(naive.shape());
      }),
      { numRuns: 300, seed },
    );
  });

  it('is the same from rows that were read one after another while events went on', () => {
    fc.assert(
      fc.property(
        history,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (events, from, moments) => {
          const start = Math.floor(from * events.length);
          const states = [new Rows()];
          const naive = new Naive();
          events.forEach((event, index) => {
            states.push(states[index]!.after(event, index + 1));
            naive.apply(event, index + 1);
          });
          const tree = new ResourceTree(ORGANIZATION);
          // Each row as it stood at a moment of its own, no earlier than the checkpoint that was noted before.
          for (let number = 0; number < events.length; number++) {
            const moment = start + Math.floor(moments.next().value! * (events.length - start + 0.999));
            const row = states[Math.min(moment, events.length)]!.rows.get(idOf(number));
            if (row !== undefined) tree.load(row, row.revision);
          }
          events.forEach((event, index) => index >= start && tree.apply(event, index + 1));
          tree.loaded();
          expect(shapeOf(tree)).toEqual(naive.shape());
        },
      ),
      { numRuns: 500, seed },
    );
  });

  it('drops rows whose ancestors are gone', () => {
    const tree = new ResourceTree(ORGANIZATION);
    const row = (number: number, parent_resource_id: string): TreeRow => ({
      id: idOf(number),
      external_id: `e${number}`,
      resource_type_id: 'resource_type_a',
      resource_type_slug: 'a',
      parent_resource_id,
    });
    tree.load(row(3, idOf(2)), 3);
    tree.load(row(2, idOf(1)), 2);
    tree.load(row(4, ROOT), 4);
    tree.loaded();
    expect(tree.size).toBe(2);
    expect(tree.nodeByExternalId('resource_type_a', 'e3')).toBeUndefined();
    expect(tree.nodeById(idOf(1))).toBeUndefined();
  });

  it('takes at most 200 bytes for a resource', () => {
    const tree = new ResourceTree(ORGANIZATION).loaded();
    for (let number = 0; number < 10_000; number++) {
      const id = `authz_resource_01J${String(number).padStart(23, '0')}`;
      const event = created(0, ROOT, `0192e4a0-7c2b-7def-8a1b-${String(number).padStart(12, '0')}`, `t${number % 20}`);
      tree.apply({ ...event, data: { ...event.data, id } } as ResourceEvent, number + 1);
      if (number > 100 && number % 997 === 0) expect(tree.bytes / tree.size).toBeLessThan(200);
    }
    expect([tree.size, tree.countOf('resource_type_t7')]).toEqual([10_001, 500]);
  });
});

/** A list of rows with their parents, and no idea. */
class Naive {
  rows = new Map<string, TreeRow & { readonly revision: number }>();

  apply({ type, data }: ResourceEvent, revision: number): void {
    if (type === 'resource.created') this.rows.set(data.id, { ...data, revision });
    else if (type === 'resource.deleted') for (const id of [...this.rows.keys()].filter((other) => this.isWithin(other, data.id))) this.rows.delete(id);
    else this.rows.set(data.id, { ...this.rows.get(data.id)!, ...(type === 'resource.moved' && data), revision });
  }

  isWithin(id: string, ancestor: string): boolean {
    return id === ancestor || (this.rows.has(id) && this.isWithin(this.rows.get(id)!.parent_resource_id!, ancestor));
  }

  depthOf(id: string): number {
    return id === ROOT ? 0 : 1 + this.depthOf(this.rows.get(id)!.parent_resource_id!);
  }

  shape(): unknown {
    const rows = [{ id: ROOT, external_id: ORGANIZATION, resource_type_id: null }, ...this.rows.values()];
    return rows
      .map(({ id, external_id, resource_type_id }) => ({
        id,
        external: external_id,
        type: resource_type_id,
        depth: this.depthOf(id),
        children: [...this.rows.values()]
          .filter(({ parent_resource_id }) => parent_resource_id === id)
          .map((child) => child.id)
          .sort(),
      }))
      .sort((one, other) => (one.id < other.id ? -1 : 1));
  }
}

/** As a view keeps them: what hung under something deleted stays until it is told of. */
class Rows extends Naive {
  override apply(event: ResourceEvent, revision: number): void {
    if (event.type === 'resource.deleted') this.rows.delete(event.data.id);
    else super.apply(event, revision);
  }

  after(event: ResourceEvent, revision: number): Rows {
    const next = new Rows();
    next.rows = new Map(this.rows);
    next.apply(event, revision);
    return next;
  }
}

describe('external ids that meet in a hash that everybody knows', () => {
  const step = (hash: number, code: number): number => Math.imul(hash ^ code, 0x01000193);

  /** Each pair leads from the state of the hash (FNV-1a) that the pairs before it left to one other. To find them took some twenty seconds. */
  const PAIRS = [
    ['0k65v', '1c23a'],
    ['115zx', '1cpcd'],
    ['0k40p', '1c04a'],
    ['003zx', '0fpad'],
    ['09vl8', '0apd6'],
    ['04pvu', '0b3ea'],
    ['05rnw', '0mpba'],
    // From here on the same pair meets again and again.
    ...Array.from({ length: 6 }, () => ['07rnw', '0opba'] as const),
  ] as const;

  const hashOf = (text: string): number => [...text].reduce((state, character) => step(state, character.charCodeAt(0)), step(0x811c9dc5, 1));

  /** Twice as many with each pair. */
  const meeting = (): readonly string[] => PAIRS.reduce<readonly string[]>((texts, pair) => texts.flatMap((begun) => pair.map((text) => begun + text)), ['']);

  /** Microseconds of processor to find all of them, at best. */
  function costsOf(...all: readonly (readonly string[])[]): readonly number[] {
    const trees = all.map((externalIds) => treeOf(...externalIds.map((externalId, number) => created(number, ROOT, externalId))));
    // In turn, so that what else the machine does meets each of them.
    const rounds = Array.from({ length: 5 }, () =>
      all.map((externalIds, number) => {
        const began = process.cpuUsage();
        const found = externalIds.filter((externalId) => trees[number]!.nodeByExternalId('resource_type_a', externalId) !== undefined);
        const { user } = process.cpuUsage(began);
        expect(found.length).toBe(externalIds.length);
        return user;
      }),
    );
    return all.map((_, number) => Math.min(...rounds.map((costs) => costs[number]!)));
  }

  it('are found as quickly as others', () => {
    const made = meeting();
    expect([new Set(made).size, new Set(made.map(hashOf)).size]).toEqual([2 ** PAIRS.length, 1]);
    const others = made.map((_, number) => `external-id-${number}`.padEnd(made[0]!.length, '-'));
    const [cost, ofOthers] = costsOf(made, others);
    // Where they met it was 8.
    expect(cost! / ofOthers!).toBeLessThan(4);
  });
});
