import { randomInt } from 'node:crypto';
import type { Role } from './environment-model.ts';
import { grown, NO_INT32 } from './id-table.ts';

const FIRST_SLOTS = 32;
const NONE = -1;
/** Of a slot: what is left of the hash of the grant that lies there, so that hardly another one is looked at. The rest is the grant, one more than it is. */
const TAG_BITS = 6;
const TAG = (1 << TAG_BITS) - 1;
/** Whoever gives roles chooses pairs of numbers: which of them would meet is different in each process. */
const [WHO, WHERE] = [randomInt(2 ** 32) | 0, randomInt(2 ** 32) | 0];
const MOST = 2 ** (32 - TAG_BITS) - 2;

/** Who has a grant: a membership or a group, by its number. */
export type Subject = number;

export function membershipSubject(membership: number): Subject {
  return membership * 2;
}

export function groupSubject(group: number): Subject {
  return group * 2 + 1;
}

/** A doubly linked list through the grants, one for each number: who is its first, and the neighbours of each. */
class Lists {
  private firsts = NO_INT32;
  private nexts = NO_INT32;
  private previous = NO_INT32;

  get bytes(): number {
    return this.firsts.byteLength + this.nexts.byteLength + this.previous.byteLength;
  }

  first(list: number): number {
    return list < this.firsts.length ? this.firsts[list]! - 1 : NONE;
  }

  next(grant: number): number {
    return this.nexts[grant]! - 1;
  }

  add(list: number, grant: number): void {
    this.firsts = grown(this.firsts, list + 1);
    this.nexts = grown(this.nexts, grant + 1);
    this.previous = grown(this.previous, grant + 1);
    const first = this.firsts[list]!;
    this.firsts[list] = grant + 1;
    this.nexts[grant] = first;
    this.previous[grant] = 0;
    if (first > 0) this.previous[first - 1] = grant + 1;
  }

  remove(list: number, grant: number): void {
    const [before, after] = [this.previous[grant]!, this.nexts[grant]!];
    if (before > 0) this.nexts[before - 1] = after;
    else this.firsts[list] = after;
    if (after > 0) this.previous[after - 1] = before;
  }
}

/**
 * Which roles memberships and groups have on which nodes. A grant is one number in each of a few arrays: found by subject and node through an open hash, listed by
 * node, by membership and by group. About 45 bytes each.
 */
export class GrantTable {
  /** Live ones. */
  size = 0;
  private used = 0;
  private subjects = NO_INT32;
  private nodes = NO_INT32;
  private roles = NO_INT32;
  /** 0: free. Grants of one subject on one node lie behind each other. */
  private slots = new Uint32Array(FIRST_SLOTS);
  private readonly ofNode = new Lists();
  private readonly ofMembership = new Lists();
  private readonly ofGroup = new Lists();
  /** The first grant that was taken back, and through `nodes` those after it. */
  private free = NONE;
  private isIndexed = true;

  get bytes(): number {
    const { subjects, nodes, roles, slots, ofNode, ofMembership, ofGroup } = this;
    return subjects.byteLength + nodes.byteLength + roles.byteLength + slots.byteLength + ofNode.bytes + ofMembership.bytes + ofGroup.bytes;
  }

  /** Until `index` nothing is looked up and no grant is given twice: for reading many, of which each is known to be there once. */
  collect(): void {
    this.isIndexed = false;
  }

  /** Makes what was collected findable, in steps that may be far apart in time. */
  *index(): Generator<void> {
    let length = FIRST_SLOTS;
    while (this.size * 4 > length * 3) length *= 2;
    this.slots = new Uint32Array(length);
    for (let grant = 0; grant < this.used; grant++) {
      if (this.subjects[grant] !== NONE) this.enter(grant);
      if (grant % 1_024 === 0) yield;
    }
    this.isIndexed = true;
  }

  /** Answers whether it is news. */
  add(subject: Subject, node: number, role: number): boolean {
    if (this.isIndexed && this.find(subject, node, role) !== NONE) return false;
    const grant = this.take();
    this.subjects[grant] = subject;
    this.nodes[grant] = node;
    this.roles[grant] = role;
    this.ofNode.add(node, grant);
    this.bySubject(subject).add(subject >> 1, grant);
    this.size++;
    if (!this.isIndexed) return true;
    this.enter(grant);
    if (this.size * 4 > this.slots.length * 3) this.enlarge();
    return true;
  }

  remove(subject: Subject, node: number, role: number): void {
    const grant = this.find(subject, node, role);
    if (grant !== NONE) this.drop(grant);
  }

  removeNode(node: number): void {
    for (let grant = this.ofNode.first(node); grant !== NONE; grant = this.ofNode.first(node)) this.drop(grant);
  }

  removeSubject(subject: Subject): void {
    const list = this.bySubject(subject);
    for (let grant = list.first(subject >> 1); grant !== NONE; grant = list.first(subject >> 1)) this.drop(grant);
  }

  /** Whether anybody has a grant on the node itself. */
  hasOn(node: number): boolean {
    return this.ofNode.first(node) !== NONE;
  }

  hasOf(subject: Subject): boolean {
    return this.bySubject(subject).first(subject >> 1) !== NONE;
  }

  /** Whether the subject has a role there that holds the permission; `roles` by their numbers. */
  some(subject: Subject, node: number, roles: readonly Pick<Role, 'grants'>[], permission: number): boolean {
    const { slots, subjects, nodes } = this;
    const mask = slots.length - 1;
    const hash = hashOf(subject, node);
    const tag = tagOf(hash);
    for (let slot = hash & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const entry = slots[slot]!;
      if ((entry & TAG) !== tag) continue;
      const grant = (entry >>> TAG_BITS) - 1;
      if (subjects[grant] === subject && nodes[grant] === node && roles[this.roles[grant]!]!.grants(permission)) return true;
    }
    return false;
  }

  /** The roles that the subject has there. */
  *rolesOf(subject: Subject, node: number): Generator<number> {
    const mask = this.slots.length - 1;
    for (let slot = hashOf(subject, node) & mask; this.slots[slot] !== 0; slot = (slot + 1) & mask) {
      const grant = grantIn(this.slots[slot]!);
      if (this.subjects[grant] === subject && this.nodes[grant] === node) yield this.roles[grant]!;
    }
  }

  /** Looks at all of them. */
  hasRole(role: number): boolean {
    for (let grant = 0; grant < this.used; grant++) if (this.roles[grant] === role && this.subjects[grant] !== NONE) return true;
    return false;
  }

  firstOn(node: number): number {
    return this.ofNode.first(node);
  }

  /** -1 after the last. */
  nextOn(grant: number): number {
    return this.ofNode.next(grant);
  }

  firstOf(subject: Subject): number {
    return this.bySubject(subject).first(subject >> 1);
  }

  /** -1 after the last. */
  nextOf(grant: number): number {
    return this.bySubject(this.subjects[grant]!).next(grant);
  }

  subjectOf(grant: number): Subject {
    return this.subjects[grant]!;
  }

  nodeOf(grant: number): number {
    return this.nodes[grant]!;
  }

  roleOf(grant: number): number {
    return this.roles[grant]!;
  }

  private bySubject(subject: Subject): Lists {
    return (subject & 1) === 0 ? this.ofMembership : this.ofGroup;
  }

  private take(): number {
    if (this.free !== NONE) {
      const grant = this.free;
      this.free = this.nodes[grant]!;
      return grant;
    }
    if (this.used === MOST) throw new RangeError('An organization has more grants than can be numbered.');
    this.subjects = grown(this.subjects, this.used + 1);
    this.nodes = grown(this.nodes, this.used + 1);
    this.roles = grown(this.roles, this.used + 1);
    return this.used++;
  }

  private drop(grant: number): void {
    const [subject, node] = [this.subjects[grant]!, this.nodes[grant]!];
    if (this.isIndexed) this.vacate(grant, subject, node);
    this.ofNode.remove(node, grant);
    this.bySubject(subject).remove(subject >> 1, grant);
    this.subjects[grant] = NONE;
    this.nodes[grant] = this.free;
    this.free = grant;
    this.size--;
  }

  private find(subject: Subject, node: number, role: number): number {
    if (!this.isIndexed) return this.findUnindexed(subject, node, role);
    const { slots, subjects, nodes, roles } = this;
    const mask = slots.length - 1;
    for (let slot = hashOf(subject, node) & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const grant = grantIn(slots[slot]!);
      if (subjects[grant] === subject && nodes[grant] === node && roles[grant] === role) return grant;
    }
    return NONE;
  }

  private findUnindexed(subject: Subject, node: number, role: number): number {
    for (let grant = this.firstOf(subject); grant !== NONE; grant = this.nextOf(grant))
      if (this.nodes[grant] === node && this.roles[grant] === role) return grant;
    return NONE;
  }

  private enter(grant: number): void {
    const { slots } = this;
    const mask = slots.length - 1;
    const hash = hashOf(this.subjects[grant]!, this.nodes[grant]!);
    let slot = hash & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = ((grant + 1) << TAG_BITS) | tagOf(hash);
  }

  /** Frees the grant's slot, and moves up those behind it that would not be found any more. */
  private vacate(grant: number, subject: Subject, node: number): void {
    const { slots } = this;
    const mask = slots.length - 1;
    let gap = hashOf(subject, node) & mask;
    while (grantIn(slots[gap]!) !== grant) gap = (gap + 1) & mask;
    for (let slot = (gap + 1) & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const other = grantIn(slots[slot]!);
      const home = hashOf(this.subjects[other]!, this.nodes[other]!) & mask;
      // It may move up unless its search begins behind the gap.
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      slots[gap] = slots[slot]!;
      gap = slot;
    }
    slots[gap] = 0;
  }

  private enlarge(): void {
    const { slots: old } = this;
    this.slots = new Uint32Array(old.length * 2);
    for (const entry of old) if (entry !== 0) this.enter(grantIn(entry));
  }
}

/** -1 for a slot that is free. */
function grantIn(entry: number): number {
  return (entry >>> TAG_BITS) - 1;
}

/** Bits that small tables do not need for the place. */
function tagOf(hash: number): number {
  return hash >>> (32 - TAG_BITS);
}

function hashOf(subject: number, node: number): number {
  const who = subject ^ WHO;
  const where = node ^ WHERE;
  const hash = Math.imul(who ^ (who >>> 15), 0x9e3779b1) ^ Math.imul(where ^ (where >>> 13), 0x85ebca77);
  const mixed = Math.imul(hash ^ (hash >>> 16), 0xc2b2ae3d);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
