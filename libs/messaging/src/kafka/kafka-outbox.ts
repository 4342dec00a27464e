import { setTimeout as pause } from 'node:timers/promises';
import { within } from '#libs/platform/src/deadline';
import type { Message } from '../message-bus.ts';
import { shared } from '../shares.ts';
import { busUnavailable, sentenceOf, type KafkaOptions } from './kafka-client.ts';
import type { KafkaTopics } from './kafka-topics.ts';
import { NumberingProducer } from './numbering-producer.ts';

/** Bytes in one request: a broker takes batches of 1 MiB, unless a topic says otherwise. */
const REQUEST_BYTES = 768 * 1024;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 1_000;
/** What the broker will not say otherwise another time. */
const FINAL = [
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
];
const GONE = ['UNKNOWN_TOPIC_OR_PARTITION'];

/** Messages of one topic that go in one request, and the call that waits for them. */
interface Batch {
  readonly topic: string;
  readonly messages: readonly Message[];
  readonly size: number;
  readonly deadline: number;
  readonly settle: (refusal: Error | null) => void;
}

/** Two: while the broker writes what one has sent, the other makes its next request. A key has its lane, and thereby its order. */
const LANES = 2;

/** Sends what is published. */
export class KafkaOutbox {
  private readonly lanes: readonly Lane[];

  constructor(options: KafkaOptions, topics: KafkaTopics) {
    this.lanes = Array.from({ length: LANES }, () => new Lane(options, topics));
  }

  /** Resolves when all of them are on disk. @throws DomainError `service_unavailable` when that is not known by the deadline */
  async add(topic: string, messages: readonly Message[], deadline: number): Promise<void> {
    await Promise.all(shared(messages, LANES).map((share, lane) => this.lanes[lane]!.add(topic, share, deadline)));
  }

  async close(): Promise<void> {
    await Promise.all(this.lanes.map((lane) => lane.close()));
  }
}

/**
 * Sends one request at a time: that is what keeps the order, and what lets the broker recognise a repetition by its number. What comes meanwhile goes
 * together in the next request.
 */
class Lane {
  private waiting: Batch[] = [];
  private sending: Promise<void> = Promise.resolve();
  private isSending = false;
  private producer: NumberingProducer | null = null;

  constructor(
    private readonly options: KafkaOptions,
    private readonly topics: KafkaTopics,
  ) {}

  async add(topic: string, messages: readonly Message[], deadline: number): Promise<void> {
    const added = batchesOf(messages).map(
      (batch) =>
        new Promise<void>((resolve, reject) => {
          this.waiting.push({ topic, ...batch, deadline, settle: (refusal) => (refusal === null ? resolve() : reject(refusal)) });
        }),
    );
    if (!this.isSending) this.sending = this.sendAll();
    await Promise.all(added);
  }

  async close(): Promise<void> {
    await this.sending;
    await this.producer?.end();
  }

  private async sendAll(): Promise<void> {
    this.isSending = true;
    // Calls of the same moment go together.
    await Promise.resolve();
    while (this.waiting.length > 0) await this.send(this.next());
    this.isSending = false;
  }

  private next(): readonly Batch[] {
    let size = 0;
    const end = this.waiting.findIndex((batch, index) => (size += batch.size) > REQUEST_BYTES && index > 0);
    return this.waiting.splice(0, end < 0 ? this.waiting.length : end);
  }

  /** All topics in one request; where that fails each goes by itself, so that one that is refused does not take the others with it. */
  private async send(batches: readonly Batch[]): Promise<void> {
    let left = [...byTopic(batches)].filter(([topic, own]) => !this.isOver(topic, own));
    if (left.length === 0 || (await this.tried(left)) === 'sent') return;
    for (let wait = FIRST_RETRY_MS; left.length > 0; wait = Math.min(2 * wait, LAST_RETRY_MS)) {
      await pause(wait);
      const again: typeof left = [];
      for (const [topic, own] of left) {
        if (this.isOver(topic, own)) continue;
        const outcome = await this.tried([[topic, own]]);
        if (outcome === 'later') again.push([topic, own]);
        if (outcome === 'never') this.refuse(topic, own);
      }
      left = again;
    }
  }

  private async tried(topics: readonly (readonly [topic: string, batches: readonly Batch[]])[]): Promise<'sent' | 'later' | 'never'> {
    const names = topics.map(([topic]) => topic);
    const batches = topics.flatMap(([, own]) => own);
    const producer = (this.producer ??= new NumberingProducer(this.options));
    try {
      const messages = new Map(topics.map(([topic, own]) => [topic, own.flatMap((batch) => batch.messages)]));
      const work = Promise.all(names.map((topic) => this.topics.ensure(topic))).then(() => producer.send(messages));
      await within(work, deadlineOf(batches) - Date.now(), busUnavailable);
    } catch (error) {
      // Nobody knows how far the broker has counted. Under the same producer, the next message could be taken for the repetition of this one.
      if (this.producer === producer) this.producer = null;
      void producer.end();
      if (hasType(error, GONE)) for (const topic of names) this.topics.forget(topic);
      this.options.log.warn('Kafka did not take messages.', { topics: names, problem: sentenceOf(error) });
      return hasType(error, FINAL) ? 'never' : 'later';
    }
    for (const batch of batches) batch.settle(null);
    return 'sent';
  }

  private isOver(topic: string, batches: readonly Batch[]): boolean {
    const isOver = Date.now() >= deadlineOf(batches);
    if (isOver) this.refuse(topic, batches);
    return isOver;
  }

  /** What waits behind them goes with them: it must not overtake what its publisher will repeat. */
  private refuse(topic: string, batches: readonly Batch[]): void {
    const behind = this.waiting.filter((batch) => batch.topic === topic);
    this.waiting = this.waiting.filter((batch) => batch.topic !== topic);
    for (const batch of [...batches, ...behind]) batch.settle(busUnavailable());
  }
}

function batchesOf(messages: readonly Message[]): { readonly messages: readonly Message[]; readonly size: number }[] {
  const batches: { messages: Message[]; size: number }[] = [];
  for (const message of messages) {
    const size = sizeOf(message);
    const last = batches.at(-1);
    if (last === undefined || last.size + size > REQUEST_BYTES) batches.push({ messages: [message], size });
    else {
      last.messages.push(message);
      last.size += size;
    }
  }
  return batches;
}

function sizeOf({ key, value, headers }: Message): number {
  let size = Buffer.byteLength(value) + Buffer.byteLength(key);
  for (const name in headers) size += name.length + Buffer.byteLength(headers[name]!) + 4;
  return size + 32;
}

function byTopic(batches: readonly Batch[]): ReadonlyMap<string, readonly Batch[]> {
  const topics = new Map<string, Batch[]>();
  for (const batch of batches) {
    const known = topics.get(batch.topic);
    if (known) known.push(batch);
    else topics.set(batch.topic, [batch]);
  }
  return topics;
}

function deadlineOf(batches: readonly Batch[]): number {
  return Math.min(...batches.map((batch) => batch.deadline));
}

/** The client wraps what the broker said. */
function hasType(error: unknown, types: readonly string[]): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (types.includes((cause as { type?: string }).type ?? '')) return true;
  return false;
}
