import type { IdIterator } from '#libs/read-models/src/pages';
import { accessibleChildren, holders } from '../checks/discovery.ts';
import { chance, lived, type GivenHistory } from '../testing/given-history.ts';
import type { Permission } from './environment-model.ts';
import type { OrganizationIndex, Way } from './organization-index.ts';

const SEEDS = [1, 2, 3];
/** How often everything is asked, and after how many steps each time: more than a hundred memberships are there at last, which are listed in another way. */
const [TIMES, STEPS] = [2, 800];

/** As pages take it: upwards or downwards, from a cursor on. */
function walked(walk: IdIterator, isUpwards: boolean, from: { readonly id: string; readonly isMeant: boolean } | null = null): string[] {
  return [...walk(isUpwards, from)];
}

/** Of the ids, ascending, what a walk has to find. */
function expected(ids: readonly string[], isUpwards: boolean, from: { readonly id: string; readonly isMeant: boolean } | null = null): string[] {
  const listed = isUpwards ? ids : ids.toReversed();
  return listed.filter((id) => from === null || (isUpwards ? id > from.id : id < from.id) || (from.isMeant && id === from.id));
}

function isFound(walk: IdIterator, ids: readonly string[], cursors: readonly string[]): void {
  for (const isUpwards of [true, false])
    for (const from of [null, ...cursors.flatMap((id) => [true, false].map((isMeant) => ({ id, isMeant })))])
      is(walked(walk, isUpwards, from), expected(ids, isUpwards, from));
}

/** Hundreds of thousands of times. */
function is(found: readonly string[], meant: readonly string[]): void {
  if (found.join() !== meant.join()) expect(found).toEqual(meant);
}

const permissionsOf = ({ model }: OrganizationIndex, { permissions }: GivenHistory): Permission[] =>
  permissions.flatMap(({ slug }) => model.permissionBySlug(slug) ?? []);

it.each(SEEDS)('who has a permission, as lists say it, is who is allowed by a check (seed %i)', (seed) => {
  for (const { index, history } of lived(seed, STEPS, TIMES)) {
    const next = chance(seed);
    const memberships = history.memberships.filter((id) => index.membershipNumber(id) !== -1).sort();
    for (const resource of history.resources) {
      const node = index.tree.nodeById(resource);
      if (node === undefined || next(4) > 0) continue;
      for (const permission of permissionsOf(index, history))
        for (const way of [null, 'direct', 'indirect'] as const) {
          const may = (id: string): boolean => {
            const membership = index.membershipNumber(id);
            return way === null ? index.allows(membership, permission, node) : index.allowsBy(way, membership, permission, node);
          };
          const cursors = [0, 1].map(() => history.memberships[next(history.memberships.length)]!);
          isFound(holders(index, permission, node, way), memberships.filter(may), cursors);
        }
    }
  }
});

it.each(SEEDS)('what a membership may reach, is told and is explained is what it is allowed by a check (seed %i)', (seed) => {
  let [allowed, asked] = [0, 0];
  for (const { index, history } of lived(seed, STEPS, TIMES)) {
    const next = chance(seed);
    for (const id of history.memberships) {
      const membership = index.membershipNumber(id);
      if (membership === -1 || next(4) > 0) continue;
      for (const resource of history.resources) {
        const node = index.tree.nodeById(resource);
        if (node === undefined) continue;
        const held = permissionsOf(index, history).filter((permission) => index.allows(membership, permission, node));
        const told = new Set(index.permissionsOn(membership, node).map(({ slug }) => slug));
        for (const permission of permissionsOf(index, history)) {
          asked++;
          const isAllowed = held.includes(permission);
          if (isAllowed) allowed++;
          const ways = (['direct', 'indirect'] satisfies Way[]).filter((way) => index.allowsBy(way, membership, permission, node));
          const chains = [...index.chains(membership, permission, node)];
          const says = [told.has(permission.slug), ways.length > 0, chains.length > 0];
          if (says.some((each) => each !== isAllowed)) expect(says).toEqual(says.map(() => isAllowed));
          is(ways, [...new Set(chains.map((chain) => (chain.node === node ? 'direct' : 'indirect')))].sort());
          if (next(8) > 0) continue;
          const children = [...index.tree.childrenOf(node)]
            .filter((child) => index.allows(membership, permission, child))
            .map((child) => index.tree.idOf(child));
          isFound(accessibleChildren(index, membership, permission, node), children.sort(), [history.resources[next(history.resources.length)]!]);
        }
      }
    }
  }
  expect(allowed / asked).toBeGreaterThan(0.05);
  expect(allowed / asked).toBeLessThan(0.9);
});
