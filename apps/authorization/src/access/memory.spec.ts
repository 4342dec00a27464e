import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { accessibleChildren, holders } from '../checks/discovery.ts';
import { lived } from '../testing/given-history.ts';

/** What an object takes up beside what is in it, nearly; also of an array and a view. */
const OVERHEAD = 60;

/** What all that is reached from here takes up, nearly; what is in `others` is not part of it. */
function weightOf(whole: object, others: readonly object[]): number {
  const seen = new Set<unknown>(others);
  let weight = 0;
  const open: unknown[] = [whole];
  while (open.length > 0) {
    const thing = open.pop();
    if (typeof thing !== 'object' || thing === null || seen.has(thing)) continue;
    seen.add(thing);
    weight += OVERHEAD;
    if (ArrayBuffer.isView(thing)) weight += thing.byteLength;
    else if (thing instanceof Map || thing instanceof Set) {
      weight += 40 * thing.size;
      open.push(...thing.keys(), ...thing.values());
    } else {
      const parts = Object.values(thing) as unknown[];
      weight += 8 * parts.length;
      open.push(...parts);
    }
  }
  return weight;
}

describe('an index of an organization', () => {
  it.each([
    [1, 300],
    [2, 2_000],
    [3, 5_000],
  ])('takes up what it says, after any history (seed %i, %i steps)', (seed, steps) => {
    for (const { index } of lived(seed, steps)) {
      const weight = weightOf(index, [index.model]);
      expect(index.bytes / weight).toBeGreaterThan(0.9);
      expect(index.bytes / weight).toBeLessThan(1.3);
    }
  });

  it('takes up nothing more for being asked', () => {
    for (const { index, history } of lived(4, 1_600)) {
      const { model, tree } = index;
      for (let number = 0; number < 100; number++)
        model.apply({
          type: 'permission.created',
          data: { id: `perm_${number}`, slug: `more-${number}` },
          version: model.version + 1,
        } as RecordedEvent);
      const weight = weightOf(index, [model]);
      for (const resource of history.resources.slice(0, 10)) {
        const node = tree.nodeById(resource);
        if (node === undefined) continue;
        for (const permission of model.permissions()) expect([...holders(index, permission, node, null)(true, null)].length).toBeLessThan(index.order.size);
        for (const membership of index.memberNumbers()) {
          for (const permission of index.permissionsOn(membership, node)) {
            expect([...index.chains(membership, permission, node)]).not.toEqual([]);
            expect([...accessibleChildren(index, membership, permission, node)(true, null)]).toHaveLength([...tree.childrenOf(node)].length);
          }
          expect([...index.rolesAnywhere(membership)]).not.toEqual([]);
        }
      }
      expect(weightOf(index, [model])).toBe(weight);
    }
  });
});
