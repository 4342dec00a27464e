import { randomInt } from 'node:crypto';
import { compareUlids, hashOfUlid, readUlid, ulidOf } from '#libs/platform/src/ulid-words';
import type { ResourceEvent } from './resource.events.ts';

/** A resource in a tree: a small integer. It is never given to another resource while this tree is in memory, so that nothing kept by it is revived. */
export type Node = number;

/** What the tree keeps of a resource, as rows and events tell it. */
export interface TreeRow {
  readonly id: string;
  readonly external_id: string;
  /** Null for the organization resource, which needs no row. */
  readonly resource_type_id: string | null;
  readonly resource_type_slug: string;
  readonly parent_resource_id: string | null;
}

const ORGANIZATION: Node = 0;
const NONE = -1;
/** In `parent`: not, or no longer, a resource. */
const DEAD = -2;
/** In `parent`: named as a parent by a row that was read before its own. */
const EXPECTED = -3;

const PREFIX = 'authz_resource';

/** Of the hash of external ids, which others choose: nobody knows which of them would meet, since that is different in each process. */
const [SEED, FACTOR] = [randomInt(2 ** 32), randomInt(2 ** 31) * 2 + 1];

/** How full a hash table gets before it doubles. */
const FULL = 0.7;

/**
 * The resources of one organization, in memory: what decisions about them and checks of access both ask. Columns of typed arrays instead of an object for each
 * resource, about 100 bytes with its external id. Children are kept in the order of their ids, as pages want them, in a treap: two links in each child.
 *
 * Made from rows that were read while events went on (`load`, then `apply` of all later events in any state of the rows, then `loaded`), or from nothing.
 */
export class ResourceTree {
  /** Version of the stream that it has seen. After loading it may be less than that by events that left no row. */
  version = 0;
  /** Told of each resource that is no more, before its node is forgotten. */
  onRemoved: ((node: Node) => void) | null = null;

  private nodes = 0;
  private live = 0;
  private isLoading = true;
  private capacity = 4;
  /** Four words of a ULID for each node. */
  private ids = new Uint32Array(4 * this.capacity);
  private parent = new Int32Array(this.capacity);
  private type = new Uint16Array(this.capacity);
  private revision = new Uint32Array(this.capacity);
  /** The treap of the children of a node: its top, and of each child what is left and right of it. */
  private top = new Int32Array(this.capacity);
  private left = new Int32Array(this.capacity);
  private right = new Int32Array(this.capacity);
  private textAt = new Uint32Array(this.capacity);
  private textLength = new Uint8Array(this.capacity);
  /** External ids, one after another. */
  private text = new Uint8Array(64);
  private textEnd = 0;
  private byId = new Int32Array(8).fill(NONE);
  private byExternalId = new Int32Array(8).fill(NONE);
  private identified = 0;
  private named = 0;
  private readonly types: { readonly id: string | null; readonly slug: string; count: number }[] = [{ id: null, slug: 'organization', count: 1 }];
  private readonly typeIndexes = new Map<string | null, number>([[null, 0]]);
  private readonly wanted = new Uint32Array(4);
  private splitLeft = NONE;
  private splitRight = NONE;

  constructor(readonly organizationId: string) {
    this.add(organizationResourceId(organizationId), NONE);
  }

  /** Takes a row in, whatever order they come in. `revision` is the version of the stream that the row has seen. */
  load({ id, external_id, resource_type_id, resource_type_slug, parent_resource_id }: TreeRow, revision: number): void {
    // The root is there already.
    if (parent_resource_id === null) return;
    this.place(id, external_id, { id: resource_type_id, slug: resource_type_slug }, parent_resource_id, revision);
  }

  /** Every event up to now is in: what hangs under nothing that is there is dead. */
  loaded(): this {
    this.isLoading = false;
    for (let node = 1; node < this.nodes; node++) if (this.parent[node] === EXPECTED) this.remove(node);
    return this;
  }

  /**
   * Takes an event in, in the order of the stream; answers false for one that it has seen. While it is being loaded, events may be older than rows, and each row
   * knows what it has seen.
   */
  apply({ type, data }: ResourceEvent, version: number): boolean {
    if (!this.isLoading && version <= this.version) return false;
    this.version = Math.max(this.version, version);
    if (type === 'resource.created') {
      const { id, external_id, resource_type_id, resource_type_slug, parent_resource_id } = data;
      const known = this.find(id);
      if (known !== NONE && this.revision[known]! >= version) return false;
      this.place(id, external_id, { id: resource_type_id, slug: resource_type_slug }, parent_resource_id, version);
      return true;
    }
    const node = this.find(data.id);
    if (node === NONE || node === ORGANIZATION) return false;
    if (type === 'resource.deleted') {
      this.remove(node);
      return true;
    }
    if (this.revision[node]! >= version) return false;
    this.revision[node] = version;
    if (type === 'resource.moved') this.hang(node, data.parent_resource_id);
    return true;
  }

  /** The organization resource. */
  get root(): Node {
    return ORGANIZATION;
  }

  /** Resources that live, the organization resource among them. */
  get size(): number {
    return this.live;
  }

  /** Places taken up by resources that are no more: loading the tree anew gives them back. */
  get deadNodes(): number {
    return this.nodes - this.live;
  }

  /** Memory that it takes up, nearly. */
  get bytes(): number {
    const columns = [this.ids, this.parent, this.type, this.revision, this.top, this.left, this.right, this.textAt, this.textLength];
    return [...columns, this.text, this.byId, this.byExternalId].reduce((sum, { byteLength }) => sum + byteLength + 100, 200 * this.types.length);
  }

  nodeById(id: string): Node | undefined {
    const node = this.find(id);
    return node === NONE || !this.isAlive(node) ? undefined : node;
  }

  /** `typeId`: of the resource type that lives now, null for `organization`; a type of the same name that was deleted is another. */
  nodeByExternalId(typeId: string | null, externalId: string): Node | undefined {
    if (typeId === null) return externalId === this.organizationId ? ORGANIZATION : undefined;
    const type = this.typeIndexes.get(typeId);
    if (type === undefined || externalId.length > 255) return undefined;
    const mask = this.byExternalId.length - 1;
    for (let slot = hashOfText(type, externalId) & mask; ; slot = (slot + 1) & mask) {
      const node = this.byExternalId[slot]!;
      if (node === NONE) return undefined;
      if (this.type[node] === type && this.hasText(node, externalId) && this.isAlive(node)) return node;
    }
  }

  isAlive(node: Node): boolean {
    return node >= 0 && node < this.nodes && this.parent[node]! >= NONE;
  }

  /** -1 for the organization resource. */
  parentOf(node: Node): Node {
    return this.parent[node]!;
  }

  idOf(node: Node): string {
    return `${PREFIX}_${ulidOf(this.ids, 4 * node)}`;
  }

  externalIdOf(node: Node): string {
    if (node === ORGANIZATION) return this.organizationId;
    const start = this.textAt[node]!;
    return String.fromCharCode(...this.text.subarray(start, start + this.textLength[node]!));
  }

  /** Null for the organization resource. */
  typeIdOf(node: Node): string | null {
    return this.types[this.type[node]!]!.id;
  }

  typeSlugOf(node: Node): string {
    return this.types[this.type[node]!]!.slug;
  }

  /** Version of the stream at which the resource itself changed last: its row is to have seen it. */
  revisionOf(node: Node): number {
    return this.revision[node]!;
  }

  /** How many resources of a type live. */
  countOf(typeId: string | null): number {
    const index = this.typeIndexes.get(typeId);
    return index === undefined ? 0 : this.types[index]!.count;
  }

  /** 0 for the organization resource. */
  depthOf(node: Node): number {
    let depth = 0;
    for (let at = this.parent[node]!; at >= 0; at = this.parent[at]!) depth++;
    return depth;
  }

  /** How many levels hang under a node. */
  heightOf(node: Node): number {
    let height = 0;
    for (const child of this.childrenOf(node)) height = Math.max(height, 1 + this.heightOf(child));
    return height;
  }

  /** Whether `node` is `ancestor` or hangs under it, at whatever depth. */
  isWithin(node: Node, ancestor: Node): boolean {
    for (let at = node; at >= 0; at = this.parent[at]!) if (at === ancestor) return true;
    return false;
  }

  hasChildren(node: Node): boolean {
    return this.top[node] !== NONE;
  }

  /**
   * What hangs right under a node, in the order of ids, from after the id `after` on where one is given: of a resource that lives, that did, or that never was.
   * The tree must not change meanwhile.
   */
  *childrenOf(node: Node, order: 'asc' | 'desc' = 'asc', after: string | null = null): Generator<Node> {
    const [near, far] = order === 'asc' ? [this.left, this.right] : [this.right, this.left];
    const sign = order === 'asc' ? 1 : -1;
    const bound = new Uint32Array(4);
    const isBound = after !== null && readUlid(PREFIX, after, bound);
    const path: Node[] = [];
    for (let at = this.top[node]!; at !== NONE;) {
      if (isBound && sign * this.compareTo(at, bound) <= 0) at = far[at]!;
      else {
        path.push(at);
        at = near[at]!;
      }
    }
    for (let next = path.pop(); next !== undefined; next = path.pop()) {
      yield next;
      for (let at = far[next]!; at !== NONE; at = near[at]!) path.push(at);
    }
  }

  /** A node and all that hangs under it. The tree must not change meanwhile. */
  *subtreeOf(node: Node): Generator<Node> {
    const open: Node[] = [node];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      yield next;
      for (const child of this.linked(next)) open.push(child);
    }
  }

  private linked(node: Node): Node[] {
    const found: Node[] = [];
    const open: Node[] = [this.top[node]!];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === NONE) continue;
      found.push(next);
      open.push(this.left[next]!, this.right[next]!);
    }
    return found;
  }

  private place(id: string, externalId: string, type: { readonly id: string | null; readonly slug: string }, parentId: string, revision: number): void {
    const known = this.find(id);
    const node = known === NONE ? this.add(id, EXPECTED) : known;
    // A second time where an event tells what a row told before it.
    const isNew = this.textLength[node] === 0;
    this.revision[node] = revision;
    if (isNew) {
      this.type[node] = this.typeIndexOf(type);
      this.write(node, externalId);
      this.types[this.type[node]]!.count++;
      this.enterName(node);
    }
    this.hang(node, parentId);
    this.version = Math.max(this.version, revision);
  }

  private typeIndexOf({ id, slug }: { readonly id: string | null; readonly slug: string }): number {
    let index = this.typeIndexes.get(id);
    if (index === undefined) {
      if (this.types.length === 0xffff) throw new RangeError('The resources of one organization are of too many types.');
      index = this.types.push({ id, slug, count: 0 }) - 1;
      this.typeIndexes.set(id, index);
    }
    return index;
  }

  /** Under its new parent. One that is not there yet is expected as long as the tree is being loaded; later, what hangs under nothing is dead. */
  private hang(node: Node, parentId: string): void {
    const before = this.parent[node]!;
    if (before >= 0) this.top[before] = this.withoutChild(this.top[before]!, node);
    let parent = this.find(parentId);
    if (parent === NONE && !this.isLoading) {
      this.parent[node] = EXPECTED;
      return this.remove(node);
    }
    if (parent === NONE) parent = this.add(parentId, EXPECTED);
    this.left[node] = this.right[node] = NONE;
    this.parent[node] = parent;
    this.top[parent] = this.withChild(this.top[parent]!, node);
  }

  /** With all that hangs under it. */
  private remove(node: Node): void {
    const before = this.parent[node]!;
    if (before >= 0) this.top[before] = this.withoutChild(this.top[before]!, node);
    const open: Node[] = [node];
    const gone: Node[] = [];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      // Rows that were read one after another may seem to hang under each other.
      if (this.parent[next] === DEAD) continue;
      if (this.textLength[next] !== 0) this.onRemoved?.(next);
      this.parent[next] = DEAD;
      gone.push(next);
      for (const child of this.linked(next)) open.push(child);
      this.top[next] = NONE;
    }
    this.leaveTables(gone);
  }

  /** Of many, taking each out of the tables would cost more than making them anew without. */
  private leaveTables(gone: readonly Node[]): void {
    const isEach = gone.length < this.nodes / 4;
    for (const node of gone) {
      if (isEach) this.leaveIds(node);
      if (this.textLength[node] === 0) continue;
      if (isEach) this.leaveNames(node);
      this.live--;
      this.types[this.type[node]!]!.count--;
    }
    if (isEach) return;
    this.fillIds();
    this.fillNames();
  }

  private add(id: string, parent: number): Node {
    if (this.nodes === this.capacity) this.grow();
    const node = this.nodes++;
    if (!readUlid(PREFIX, id, this.wanted)) throw new Error(`${id} is no id of a resource.`);
    this.ids.set(this.wanted, 4 * node);
    this.parent[node] = parent;
    this.top[node] = this.left[node] = this.right[node] = NONE;
    if (node === ORGANIZATION) this.live = 1;
    if (++this.identified > FULL * this.byId.length) {
      this.byId = new Int32Array(2 * this.byId.length);
      this.fillIds();
    } else this.enterId(node);
    return node;
  }

  private grow(): void {
    const capacity = Math.ceil(this.capacity * 1.5);
    const copy = <Column extends Uint8Array | Uint16Array | Uint32Array | Int32Array>(column: Column, width = 1): Column => {
      const grown = new (column.constructor as new (length: number) => Column)(width * capacity);
      grown.set(column);
      return grown;
    };
    this.ids = copy(this.ids, 4);
    this.parent = copy(this.parent);
    this.type = copy(this.type);
    this.revision = copy(this.revision);
    this.top = copy(this.top);
    this.left = copy(this.left);
    this.right = copy(this.right);
    this.textAt = copy(this.textAt);
    this.textLength = copy(this.textLength);
    this.capacity = capacity;
  }

  private write(node: Node, externalId: string): void {
    const end = this.textEnd + externalId.length;
    if (end > this.text.length) {
      const grown = new Uint8Array(Math.max(end, Math.ceil(1.5 * this.text.length)));
      grown.set(this.text);
      this.text = grown;
    }
    for (let index = 0; index < externalId.length; index++) this.text[this.textEnd + index] = externalId.charCodeAt(index);
    this.textAt[node] = this.textEnd;
    this.textLength[node] = externalId.length;
    this.textEnd = end;
    this.live++;
  }

  private hasText(node: Node, text: string): boolean {
    if (this.textLength[node] !== text.length) return false;
    const start = this.textAt[node]!;
    for (let index = 0; index < text.length; index++) if (this.text[start + index] !== text.charCodeAt(index)) return false;
    return true;
  }

  private find(id: string): number {
    const { wanted } = this;
    if (!readUlid(PREFIX, id, wanted)) return NONE;
    const mask = this.byId.length - 1;
    for (let slot = hashOfUlid(wanted, 0) & mask; ; slot = (slot + 1) & mask) {
      const node = this.byId[slot]!;
      if (node === NONE || this.compareTo(node, wanted) === 0) return node;
    }
  }

  private enterId(node: Node): void {
    enterInto(this.byId, hashOfUlid(this.ids, 4 * node), node);
  }

  private fillIds(): void {
    this.byId.fill(NONE);
    this.identified = 0;
    for (let node = 0; node < this.nodes; node++) {
      if (this.parent[node] === DEAD) continue;
      this.enterId(node);
      this.identified++;
    }
  }

  private leaveIds(node: Node): void {
    this.identified--;
    leaveFrom(this.byId, node, (other) => hashOfUlid(this.ids, 4 * other));
  }

  private enterName(node: Node): void {
    if (++this.named > FULL * this.byExternalId.length) {
      this.byExternalId = new Int32Array(2 * this.byExternalId.length);
      this.fillNames();
    } else enterInto(this.byExternalId, this.hashOfName(node), node);
  }

  private fillNames(): void {
    this.byExternalId.fill(NONE);
    this.named = 0;
    for (let node = 1; node < this.nodes; node++) {
      if (this.parent[node] === DEAD || this.textLength[node] === 0) continue;
      enterInto(this.byExternalId, this.hashOfName(node), node);
      this.named++;
    }
  }

  private leaveNames(node: Node): void {
    this.named--;
    leaveFrom(this.byExternalId, node, (other) => this.hashOfName(other));
  }

  private hashOfName(node: Node): number {
    let hash = textSeed(this.type[node]!);
    const end = this.textAt[node]! + this.textLength[node]!;
    for (let index = this.textAt[node]!; index < end; index++) hash = withCharacter(hash, this.text[index]!);
    return finished(hash);
  }

  private compareTo(node: Node, words: Uint32Array): number {
    return compareUlids(this.ids, 4 * node, words, 0);
  }

  private isBefore(one: Node, other: Node): boolean {
    return compareUlids(this.ids, 4 * one, this.ids, 4 * other) < 0;
  }

  /** What keeps a treap balanced: as good as random, and needs no place. */
  private rankOf(node: Node): number {
    return finished(hashOfUlid(this.ids, 4 * node) ^ 0x5bd1e995);
  }

  private withChild(top: number, node: Node): Node {
    if (top === NONE) return node;
    if (this.rankOf(node) > this.rankOf(top)) {
      this.split(top, node);
      this.left[node] = this.splitLeft;
      this.right[node] = this.splitRight;
      return node;
    }
    if (this.isBefore(node, top)) this.left[top] = this.withChild(this.left[top]!, node);
    else this.right[top] = this.withChild(this.right[top]!, node);
    return top;
  }

  private split(top: number, node: Node): void {
    if (top === NONE) {
      this.splitLeft = this.splitRight = NONE;
    } else if (this.isBefore(node, top)) {
      this.split(this.left[top]!, node);
      this.left[top] = this.splitRight;
      this.splitRight = top;
    } else {
      this.split(this.right[top]!, node);
      this.right[top] = this.splitLeft;
      this.splitLeft = top;
    }
  }

  private withoutChild(top: number, node: Node): number {
    if (top === NONE) return NONE;
    if (top === node) return this.joined(this.left[node]!, this.right[node]!);
    if (this.isBefore(node, top)) this.left[top] = this.withoutChild(this.left[top]!, node);
    else this.right[top] = this.withoutChild(this.right[top]!, node);
    return top;
  }

  private joined(left: number, right: number): number {
    if (left === NONE) return right;
    if (right === NONE) return left;
    if (this.rankOf(left) > this.rankOf(right)) {
      this.right[left] = this.joined(this.right[left]!, right);
      return left;
    }
    this.left[right] = this.joined(left, this.left[right]!);
    return right;
  }
}

/** Its ULID is that of the organization: it needs no record of its own. */
export function organizationResourceId(organizationId: string): string {
  return `${PREFIX}_${organizationId.slice(-26)}`;
}

function textSeed(type: number): number {
  return Math.imul(SEED ^ type, FACTOR);
}

function withCharacter(hash: number, code: number): number {
  const mixed = Math.imul(hash ^ code, FACTOR);
  return mixed ^ (mixed >>> 15);
}

function hashOfText(type: number, text: string): number {
  let hash = textSeed(type);
  for (let index = 0; index < text.length; index++) hash = withCharacter(hash, text.charCodeAt(index));
  return finished(hash);
}

/** Spreads a hash over all of its bits. */
function finished(hash: number): number {
  let mixed = hash ^ (hash >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function enterInto(table: Int32Array, hash: number, node: Node): void {
  const mask = table.length - 1;
  let slot = hash & mask;
  while (table[slot] !== NONE) slot = (slot + 1) & mask;
  table[slot] = node;
}

/** Moves up what was pushed on by it, so that no look-up meets a gap. */
function leaveFrom(table: Int32Array, node: Node, hashOf: (node: Node) => number): void {
  const mask = table.length - 1;
  let gap = hashOf(node) & mask;
  while (table[gap] !== node) {
    if (table[gap] === NONE) return;
    gap = (gap + 1) & mask;
  }
  for (let slot = (gap + 1) & mask; table[slot] !== NONE; slot = (slot + 1) & mask) {
    const home = hashOf(table[slot]!) & mask;
    if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
    table[gap] = table[slot]!;
    gap = slot;
  }
  table[gap] = NONE;
}
