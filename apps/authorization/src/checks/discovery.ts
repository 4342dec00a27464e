import type { IdIterator } from '#libs/read-models/src/pages';
import type { Permission } from '../access/environment-model.ts';
import type { OrganizationIndex, Way } from '../access/organization-index.ts';
import type { Node } from '../domain/resource-tree.ts';

/** So many memberships are asked one by one for a page of those that have a permission; then those who may have it are collected. */
const ASKED_ONE_BY_ONE = 100;

/** What hangs right under a node and what the membership has the permission on, by id. Costs what is found, or what the membership was given, whichever is less. */
export function accessibleChildren(index: OrganizationIndex, membership: number, permission: Permission, parent: Node): IdIterator {
  const { tree } = index;
  if (!index.isActive(membership)) return () => [];
  if (index.allows(membership, permission, parent)) return childrenWhere(index, parent, () => true);
  const isGranted = (node: Node): boolean => index.isGrantedOn(membership, node, permission);
  if (!hasFewerGrantsThanChildren(index, membership, parent)) return childrenWhere(index, parent, isGranted);
  const found = new Set<Node>();
  for (const subject of index.subjectsOf(membership))
    for (let grant = index.grants.firstOf(subject); grant !== -1; grant = index.grants.nextOf(grant))
      if (index.isGrantedBy(grant, permission) && tree.parentOf(index.grants.nodeOf(grant)) === parent) found.add(index.grants.nodeOf(grant));
  const ids = [...found].map((node) => tree.idOf(node)).sort();
  return function* (isUpwards, from) {
    const listed = isUpwards ? ids : ids.toReversed();
    for (const id of listed) if (from === null || (isUpwards ? id > from.id : id < from.id) || (from.isMeant && id === from.id)) yield id;
  };
}

function childrenWhere({ tree }: OrganizationIndex, parent: Node, isMeant: (node: Node) => boolean): IdIterator {
  return function* (isUpwards, from) {
    const node = from?.isMeant === true ? tree.nodeById(from.id) : undefined;
    if (node !== undefined && tree.parentOf(node) === parent && isMeant(node)) yield from!.id;
    for (const child of tree.childrenOf(parent, isUpwards ? 'asc' : 'desc', from?.id ?? null)) if (isMeant(child)) yield tree.idOf(child);
  };
}

/** Counts both at once, and no further than the smaller of the two. */
function hasFewerGrantsThanChildren(index: OrganizationIndex, membership: number, parent: Node): boolean {
  const { tree, grants } = index;
  const children = tree.childrenOf(parent);
  for (const subject of index.subjectsOf(membership))
    for (let grant = grants.firstOf(subject); grant !== -1; grant = grants.nextOf(grant)) if (children.next().done === true) return false;
  return true;
}

/** The active memberships that have a permission on a node, by id. */
export function holders(index: OrganizationIndex, permission: Permission, node: Node, way: Way | null): IdIterator {
  const { order } = index;
  const has = (membership: number): boolean => (way === null ? index.allows(membership, permission, node) : index.allowsBy(way, membership, permission, node));
  return function* (isUpwards, from) {
    const step = isUpwards ? 1 : -1;
    const first = from === null ? (isUpwards ? 0 : order.size) : order.placeOf(from.id);
    const isThere = from !== null && first < order.size && index.membershipId(order.at(first)) === from.id;
    if (isThere && from.isMeant && has(order.at(first))) yield from.id;
    let place = isUpwards ? first + (isThere ? 1 : 0) : first - 1;
    for (let asked = 0; place >= 0 && place < order.size && asked < ASKED_ONE_BY_ONE; place += step, asked++) {
      const membership = order.at(place);
      if (has(membership)) yield index.membershipId(membership);
    }
    if (place < 0 || place >= order.size) return;
    const marks = marked(index, permission, node, way);
    for (; place >= 0 && place < order.size; place += step) if (marks[order.at(place)] === 1) yield index.membershipId(order.at(place));
  };
}

/** Goes through what was given on the node and above it, rather than through everybody. */
function marked(index: OrganizationIndex, permission: Permission, node: Node, way: Way | null): Uint8Array {
  const { grants, members, tree } = index;
  const marks = new Uint8Array(index.order.size);
  for (let at = node; at >= 0; at = tree.parentOf(at)) {
    if (way !== null && (at === node) !== (way === 'direct')) continue;
    for (let grant = grants.firstOn(at); grant !== -1; grant = grants.nextOn(grant)) {
      if (!index.isGrantedBy(grant, permission)) continue;
      const subject = grants.subjectOf(grant);
      if ((subject & 1) === 0) marks[subject >> 1] = 1;
      else for (const membership of members.of(subject >> 1)) marks[membership] = 1;
    }
    if (at === tree.root) index.markByRole(marks, permission);
  }
  for (let membership = 0; membership < marks.length; membership++) if (marks[membership] === 1 && !index.isActive(membership)) marks[membership] = 0;
  return marks;
}
