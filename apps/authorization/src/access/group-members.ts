import { grown, NO_INT32 } from './id-table.ts';

const NONE = -1;

/**
 * Which memberships are in which groups, by their numbers: a pair is one number in each of four arrays, listed by membership and by group. 16 to 20 bytes each.
 *
 * A pair that was taken out leaves the list of its membership at once. From the list of its group, which may be long, it goes together with others, once half of
 * that list is such pairs.
 */
export class GroupMembers {
  size = 0;
  private used = 0;
  /** Of a pair that was taken out: -1. */
  private memberships = NO_INT32;
  private groups = NO_INT32;
  private nextOfMembership = NO_INT32;
  private nextOfGroup = NO_INT32;
  // Each one more than it is; 0: none.
  private firstOfMembership = NO_INT32;
  private firstOfGroup = NO_INT32;
  private live = NO_INT32;
  private gone = NO_INT32;
  private free = NONE;

  get bytes(): number {
    const { memberships, groups, nextOfMembership, nextOfGroup, firstOfMembership, firstOfGroup, live, gone } = this;
    return [memberships, groups, nextOfMembership, nextOfGroup, firstOfMembership, firstOfGroup, live, gone].reduce((sum, array) => sum + array.byteLength, 0);
  }

  add(group: number, membership: number): void {
    if (this.has(group, membership)) return;
    const pair = this.take();
    this.firstOfMembership = grown(this.firstOfMembership, membership + 1);
    this.firstOfGroup = grown(this.firstOfGroup, group + 1);
    this.live = grown(this.live, group + 1);
    this.gone = grown(this.gone, group + 1);
    this.memberships[pair] = membership;
    this.groups[pair] = group;
    this.nextOfMembership[pair] = this.firstOfMembership[membership]!;
    this.firstOfMembership[membership] = pair + 1;
    this.nextOfGroup[pair] = this.firstOfGroup[group]!;
    this.firstOfGroup[group] = pair + 1;
    this.live[group]!++;
    this.size++;
  }

  remove(group: number, membership: number): void {
    let before = NONE;
    for (let pair = this.firstPair(membership); pair !== NONE; before = pair, pair = this.nextPair(pair))
      if (this.groups[pair] === group) return this.takeOut(pair, before);
  }

  removeMembership(membership: number): void {
    for (let pair = this.firstPair(membership); pair !== NONE; pair = this.firstPair(membership)) this.takeOut(pair, NONE);
  }

  removeGroup(group: number): void {
    for (const membership of [...this.of(group)]) this.remove(group, membership);
  }

  has(group: number, membership: number): boolean {
    for (let pair = this.firstPair(membership); pair !== NONE; pair = this.nextPair(pair)) if (this.groups[pair] === group) return true;
    return false;
  }

  /** The first of the pairs of a membership; -1 where it is in no group. */
  firstPair(membership: number): number {
    return membership < this.firstOfMembership.length ? this.firstOfMembership[membership]! - 1 : NONE;
  }

  nextPair(pair: number): number {
    return this.nextOfMembership[pair]! - 1;
  }

  groupOf(pair: number): number {
    return this.groups[pair]!;
  }

  countOf(group: number): number {
    return group < this.live.length ? this.live[group]! : 0;
  }

  /** The memberships in a group. */
  *of(group: number): Iterable<number> {
    if (group >= this.firstOfGroup.length) return;
    for (let pair = this.firstOfGroup[group]! - 1; pair !== NONE; pair = this.nextOfGroup[pair]! - 1)
      if (this.memberships[pair] !== NONE) yield this.memberships[pair]!;
  }

  private take(): number {
    if (this.free !== NONE) {
      const pair = this.free;
      this.free = this.nextOfMembership[pair]!;
      return pair;
    }
    const length = this.used + 1;
    this.memberships = grown(this.memberships, length);
    this.groups = grown(this.groups, length);
    this.nextOfMembership = grown(this.nextOfMembership, length);
    this.nextOfGroup = grown(this.nextOfGroup, length);
    return this.used++;
  }

  private takeOut(pair: number, before: number): void {
    const [membership, group] = [this.memberships[pair]!, this.groups[pair]!];
    if (before === NONE) this.firstOfMembership[membership] = this.nextOfMembership[pair]!;
    else this.nextOfMembership[before] = this.nextOfMembership[pair]!;
    this.memberships[pair] = NONE;
    this.live[group]!--;
    this.gone[group]!++;
    this.size--;
    if (this.gone[group]! > this.live[group]!) this.sweep(group);
  }

  /** What was taken out may be used again from here on. */
  private sweep(group: number): void {
    let last = NONE;
    for (let pair = this.firstOfGroup[group]! - 1, next; pair !== NONE; pair = next) {
      next = this.nextOfGroup[pair]! - 1;
      if (this.memberships[pair] === NONE) {
        this.nextOfMembership[pair] = this.free;
        this.free = pair;
        continue;
      }
      if (last === NONE) this.firstOfGroup[group] = pair + 1;
      else this.nextOfGroup[last] = pair + 1;
      last = pair;
    }
    if (last === NONE) this.firstOfGroup[group] = 0;
    else this.nextOfGroup[last] = 0;
    this.gone[group] = 0;
  }
}
