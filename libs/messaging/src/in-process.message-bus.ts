import { setTimeout as pause } from 'node:timers/promises';
import { Arrivals } from '#libs/platform/src/arrivals';
import { Arena } from '#libs/platform/src/storage/arena';
import type { Tree } from '#libs/platform/src/storage/lmdb-environment';
import { byteText, byteTextKeys, textOfBytes } from '#libs/platform/src/storage/lmdb-keys';
import type { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { deadLetterTopic, deliver, DELIVERY, FIRST_RETRY_MS, matches } from './delivering.ts';
import { type Message, MessageBus, type Subscription } from './message-bus.ts';
import { shared } from './shares.ts';

/** Segments per topic that stay in memory, for groups that follow closely. */
const RECENT_SEGMENTS = 64;
/** Messages kept behind the slowest group, so that a new one sees a little of the past; and where no group ever was. */
const KEPT = 1_000;
const KEPT_FOR_NOBODY = 10_000;
/** A group that nobody has run for so long holds back nothing any more. */
const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60_000;
/** Positions are stored together; what a crash takes is delivered again. */
const COMMIT_EVERY_MS = 5;
const TRIM_EVERY_MS = 1_000;
/** How often it is asked how far a group is, while somebody waits for that. */
const HANDLED_POLL_MS = 20;
/** The trees that it lies in. */
const BUS_TREES = ['bus', 'bus-topics', 'bus-groups'] as const;
const END = '\0';
const OFFSET_BYTES = 6;

/** The messages of one `publish`: one value in LMDB. */
interface Segment {
  /** Offset of the first message in its topic. */
  readonly first: number;
  readonly messages: readonly Message[];
}

interface Position {
  readonly next: number;
  /** When a group was last at work, in milliseconds since the epoch. */
  readonly seenAt: number;
}

/**
 * A bus for one process: topics and the positions of groups lie in LMDB, delivery is by calls. Members of a group divide each delivery by key; the next one
 * starts when all have finished, so order per key needs nothing else.
 */
export class InProcessMessageBus extends MessageBus {
  private readonly topics = new Map<string, Topic>();
  private readonly groups = new Map<string, Group>();
  private readonly store: Store;
  private readonly trimmer: NodeJS.Timeout;

  constructor(
    storage: LmdbStorage,
    /** Tests do not want to wait. */
    private readonly every: { readonly firstRetryMs: number; readonly trimMs: number } = { firstRetryMs: FIRST_RETRY_MS, trimMs: TRIM_EVERY_MS },
  ) {
    super();
    this.store = new Store(storage);
    for (const name of this.store.topicNames()) this.topics.set(name, new Topic(name, this.store));
    this.trimmer = setInterval(() => this.trim(), every.trimMs).unref();
  }

  async publish(topic: string, messages: readonly Message[]): Promise<void> {
    if (messages.length === 0) return;
    let known = this.topics.get(topic);
    if (!known) {
      known = new Topic(topic, this.store);
      this.topics.set(topic, known);
      this.store.putTopic(topic);
      for (const group of this.groups.values()) group.join(known);
    }
    await known.append(messages);
  }

  async subscribe(subscription: Subscription): Promise<{ stop(): Promise<void> }> {
    let group = this.groups.get(subscription.group);
    if (!group) {
      group = new Group(subscription.group, this.store, (topic, message) => this.publish(topic, [message]), this.every.firstRetryMs);
      this.groups.set(subscription.group, group);
    }
    group.add(subscription);
    for (const topic of this.topics.values()) group.join(topic);
    return { stop: () => group.remove(subscription) };
  }

  async backlog(): Promise<Readonly<Record<string, number>>> {
    return Object.fromEntries([...this.groups].map(([name, group]) => [name, group.backlog()]));
  }

  async handled(listened: Pick<Subscription, 'group' | 'topics'>, milliseconds: number): Promise<boolean> {
    const ends = [...this.topics.values()].filter(({ name }) => matches(listened, name)).map(({ name, head }) => ({ name, head }));
    for (const deadline = performance.now() + milliseconds; ; await pause(HANDLED_POLL_MS)) {
      const isHandled = ends.every(({ name, head }) => (this.store.position(name, listened.group) ?? 0) >= head);
      if (isHandled || performance.now() >= deadline) return isHandled;
    }
  }

  setAside(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.groups].map(([name, group]) => [name, group.aside]));
  }

  async close(): Promise<void> {
    clearInterval(this.trimmer);
    await Promise.all([...this.groups.values()].map((group) => group.close()));
    await this.store.commit();
  }

  private trim(): void {
    const now = Date.now();
    for (const topic of this.topics.values()) {
      const groups = this.store.positionsOf(topic.name).filter(({ seenAt }) => seenAt > now - FORGOTTEN_AFTER_MS);
      topic.trim(groups.length === 0 ? topic.head - KEPT_FOR_NOBODY : Math.min(...groups.map(({ next }) => next)) - KEPT);
    }
  }
}

/** What the bus keeps in LMDB. */
class Store {
  readonly segments: Tree;
  private readonly topics: Tree;
  private readonly groups: Tree;
  private readonly arena = new Arena();
  private readonly positions = new Map<string, Map<string, Position>>();
  private readonly uncommitted = new Set<string>();
  private timer: NodeJS.Timeout | null = null;

  constructor(readonly storage: LmdbStorage) {
    this.segments = storage.log.db(BUS_TREES[0], byteTextKeys);
    this.topics = storage.log.db(BUS_TREES[1], byteTextKeys);
    this.groups = storage.log.db(BUS_TREES[2], byteTextKeys);
    for (const { key, value } of this.groups.getRange({ start: END, end: '\xff' })) {
      const [topic, group] = textOfBytes(key).split(END) as [string, string];
      this.of(topic).set(group, JSON.parse(value.toString()) as Position);
    }
  }

  topicNames(): string[] {
    return [...this.topics.getKeys({ start: END, end: '\xff' })].map(textOfBytes);
  }

  putTopic(name: string): void {
    this.topics.put(byteText(name), this.arena.text(0, '1'));
  }

  putSegment(key: string, messages: readonly Message[]): void {
    this.segments.put(key, this.arena.text(0, encode(messages)));
  }

  position(topic: string, group: string): number | undefined {
    return this.of(topic).get(group)?.next;
  }

  positionsOf(topic: string): readonly Position[] {
    return [...this.of(topic).values()];
  }

  setPosition(topic: string, group: string, next: number): void {
    this.of(topic).set(group, { next, seenAt: Date.now() });
    this.uncommitted.add(topic + END + group);
    this.timer ??= setTimeout(() => void this.commit().catch(() => undefined), COMMIT_EVERY_MS);
  }

  async commit(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    if (this.uncommitted.size === 0) return;
    for (const key of this.uncommitted) {
      const [topic, group] = key.split(END) as [string, string];
      this.groups.put(byteText(key), this.arena.text(0, JSON.stringify(this.of(topic).get(group))));
    }
    this.uncommitted.clear();
    await this.storage.log.committed();
  }

  private of(topic: string): Map<string, Position> {
    const known = this.positions.get(topic);
    if (known) return known;
    const fresh = new Map<string, Position>();
    this.positions.set(topic, fresh);
    return fresh;
  }
}

class Topic {
  /** Offset behind the last message on disk. */
  head: number;
  private next: number;
  private first: number;
  private readonly prefix: string;
  private readonly recent: Segment[] = [];
  private readonly arrivals = new Arrivals();

  constructor(
    readonly name: string,
    private readonly store: Store,
  ) {
    this.prefix = byteText(name) + END;
    this.head = this.next = this.first = 0;
    for (const segment of this.stored({ start: this.prefix + '\xff', end: this.prefix, reverse: true, limit: 1 }))
      this.head = this.next = segment.first + segment.messages.length;
    for (const key of store.segments.getKeys({ start: this.prefix, end: this.prefix + '\xff', limit: 1 })) this.first = offsetOf(key, this.prefix);
    if (this.head === 0) this.first = 0;
  }

  async append(messages: readonly Message[]): Promise<void> {
    this.store.storage.assertAlive();
    const segment: Segment = { first: this.next, messages };
    this.next += messages.length;
    this.store.putSegment(this.key(segment.first), messages);
    await this.store.storage.log.flushed();
    const last = this.recent.at(-1);
    // Whatever comes out of order is on disk, and is read there.
    if (last && last.first + last.messages.length !== segment.first) this.recent.length = 0;
    this.recent.push(segment);
    if (this.recent.length > RECENT_SEGMENTS) this.recent.shift();
    this.head = Math.max(this.head, segment.first + messages.length);
    this.arrivals.tell();
  }

  /** At most `limit` messages from `offset` on, and the offset of the first: later than asked for where the past is trimmed. */
  read(offset: number, limit: number): Segment {
    const from = Math.max(offset, this.first);
    const end = Math.min(from + limit, this.head);
    const messages: Message[] = [];
    const take = ({ first, messages: more }: Segment): boolean => {
      messages.push(...more.slice(Math.max(0, from + messages.length - first), Math.max(0, end - first)));
      return from + messages.length < end;
    };
    const index = this.recent.findIndex((segment) => segment.first <= from && from < segment.first + segment.messages.length);
    if (index >= 0) this.recent.slice(index).every(take);
    else {
      const [floor] = [...this.store.segments.getKeys({ start: this.key(from), end: this.prefix, reverse: true, limit: 1 })];
      for (const segment of this.stored({ start: floor ?? this.prefix, end: this.prefix + '\xff' })) if (!take(segment)) break;
    }
    return { first: from, messages };
  }

  /** Resolves when there is something behind `offset`, or when the signal says to stop waiting. */
  async reaches(offset: number, signal: AbortSignal): Promise<void> {
    while (this.head <= offset && !signal.aborted) await this.arrivals.next(signal);
  }

  /** Removes the segments that lie wholly before `offset`. */
  trim(offset: number): void {
    if (offset <= this.first) return;
    let previous: string | null = null;
    for (const key of this.store.segments.getKeys({ start: this.prefix, end: this.key(offset) + '\xff', limit: KEPT })) {
      if (previous !== null) {
        this.store.segments.remove(previous);
        this.first = offsetOf(key, this.prefix);
      }
      previous = key;
    }
  }

  private *stored(range: { start: string; end: string; reverse?: boolean; limit?: number }): Iterable<Segment> {
    for (const { key, value } of this.store.segments.getRange(range)) yield { first: offsetOf(key, this.prefix), messages: decode(value.toString()) };
  }

  private key(offset: number): string {
    const bytes = Buffer.allocUnsafe(OFFSET_BYTES);
    bytes.writeUIntBE(offset, 0, OFFSET_BYTES);
    return this.prefix + bytes.toString('latin1');
  }
}

/** The members of one group, and one delivery at a time for each topic. */
class Group {
  /** How many messages failed every time. */
  aside = 0;
  private members: Subscription[] = [];
  private readonly pumps = new Map<Topic, { readonly stopped: AbortController; readonly done: Promise<void> }>();

  constructor(
    private readonly name: string,
    private readonly store: Store,
    private readonly publish: (topic: string, message: Message) => Promise<void>,
    private readonly firstRetryMs: number,
  ) {}

  add(member: Subscription): void {
    this.members = [...this.members, member];
  }

  join(topic: Topic): void {
    if (this.pumps.has(topic) || this.membersOf(topic).length === 0) return;
    if (this.store.position(topic.name, this.name) === undefined) this.store.setPosition(topic.name, this.name, 0);
    const stopped = new AbortController();
    this.pumps.set(topic, { stopped, done: this.pump(topic, stopped.signal) });
  }

  async remove(member: Subscription): Promise<void> {
    this.members = this.members.filter((other) => other !== member);
    // What the member has in flight belongs to deliveries that now end; whoever is left goes on with the next.
    const affected = [...this.pumps].filter(([topic]) => matches(member, topic.name));
    await this.end(affected);
    for (const [topic] of affected) this.join(topic);
    await this.store.commit();
  }

  close(): Promise<void> {
    this.members = [];
    return this.end([...this.pumps]);
  }

  backlog(): number {
    return [...this.pumps.keys()].reduce((sum, topic) => sum + topic.head - Math.min(topic.head, this.store.position(topic.name, this.name) ?? 0), 0);
  }

  private async end(pumps: readonly (readonly [Topic, { readonly stopped: AbortController; readonly done: Promise<void> }])[]): Promise<void> {
    for (const [, { stopped }] of pumps) stopped.abort();
    await Promise.all(pumps.map(([, { done }]) => done));
    for (const [topic] of pumps) this.pumps.delete(topic);
  }

  private membersOf(topic: Topic): readonly Subscription[] {
    return this.members.filter((member) => matches(member, topic.name));
  }

  private async pump(topic: Topic, signal: AbortSignal): Promise<void> {
    for (let next = this.store.position(topic.name, this.name)!; !signal.aborted;) {
      await topic.reaches(next, signal);
      const members = this.membersOf(topic);
      if (signal.aborted || members.length === 0) return;
      const { first, messages } = topic.read(next, DELIVERY);
      const shares = shared(messages, members.length);
      const handled = await Promise.all(shares.map(async (share, index) => share.length === 0 || this.deliver(topic, members[index]!, share, signal)));
      if (handled.includes(false)) return;
      next = first + messages.length;
      this.store.setPosition(topic.name, this.name, next);
    }
  }

  /** False when it was stopped before everything was handled or set aside. */
  private async deliver(topic: Topic, member: Subscription, messages: readonly Message[], signal: AbortSignal): Promise<boolean> {
    const setAside = async (message: Message): Promise<void> => {
      await this.publish(deadLetterTopic(topic.name, this.name), message);
      this.aside++;
    };
    const handled = await deliver(messages, { topic: topic.name, member, firstRetryMs: this.firstRetryMs, setAside, signal });
    return handled === messages.length;
  }
}

/** What describes the messages as one line of JSON; behind it their values, which are JSON already, as they are. */
function encode(messages: readonly Message[]): string {
  return `${JSON.stringify(messages.map(({ key, value, headers }) => [key, value.length, headers]))}\n${messages.map(({ value }) => value).join('')}`;
}

function decode(text: string): readonly Message[] {
  let start = text.indexOf('\n') + 1;
  const described = JSON.parse(text.slice(0, start)) as [string, number, Record<string, string>][];
  return described.map(([key, length, headers]) => ({ key, value: text.slice(start, (start += length)), headers }));
}

function offsetOf(key: string, prefix: string): number {
  return Buffer.from(key.slice(prefix.length), 'latin1').readUIntBE(0, OFFSET_BYTES);
}
