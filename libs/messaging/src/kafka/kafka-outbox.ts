import { setTimeout as pause } from 'node:timers/promises';
import { type Message as KafkaMessage, type Producer, Partitioners } from 'kafkajs';
import { within } from '#libs/platform/src/deadline';
import type { Message } from '../message-bus.ts';
import { busUnavailable, newClient, sentenceOf, type KafkaOptions } from './kafka-client.ts';
import type { KafkaTopics } from './kafka-topics.ts';

/** Characters in one request. A broker takes batches of 1 MiB unless its topics say otherwise, and a character has up to three bytes. */
const REQUEST_SIZE = 256 * 1024;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 1_000;
/** Of a message beside its value: key and headers. */
const AROUND = 300;

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
interface Part {
  readonly topic: string;
  readonly messages: readonly Message[];
  readonly size: number;
  readonly deadline: number;
  readonly settle: (refusal: Error | null) => void;
}

/**
 * Sends what is published, one request at a time: that is what keeps the order, and what lets the broker recognise a repetition by its number. What comes
 * meanwhile goes together in the next request.
 */
export class KafkaOutbox {
  private waiting: Part[] = [];
  private sending: Promise<void> = Promise.resolve();
  private isSending = false;
  private producer: NumberingProducer | null = null;

  constructor(
    private readonly options: KafkaOptions,
    private readonly topics: KafkaTopics,
  ) {}

  /** Resolves when all of them are on disk. @throws DomainError `service_unavailable` when that is not known by the deadline */
  async add(topic: string, messages: readonly Message[], deadline: number): Promise<void> {
    const parts = partsOf(messages);
    await Promise.all(
      parts.map(
        (part) =>
          new Promise<void>((resolve, reject) => {
            const settle = (refusal: Error | null): void => (refusal === null ? resolve() : reject(refusal));
            this.waiting.push({ topic, ...part, deadline, settle });
            if (!this.isSending) this.sending = this.sendAll();
          }),
      ),
    );
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

  private next(): readonly Part[] {
    let size = 0;
    const end = this.waiting.findIndex((part, index) => (size += part.size) > REQUEST_SIZE && index > 0);
    return this.waiting.splice(0, end < 0 ? this.waiting.length : end);
  }

  /** All topics in one request; where that fails each goes by itself, so that one that is refused does not take the others with it. */
  private async send(parts: readonly Part[]): Promise<void> {
    let outcome = await this.tried(parts);
    if (outcome === 'sent') return;
    const topics = byTopic(parts);
    for (const [topic, own] of topics) {
      if (outcome === 'never' && topics.size > 1) outcome = 'later';
      for (let wait = FIRST_RETRY_MS; outcome === 'later' && Date.now() + wait < deadlineOf(own); wait = Math.min(2 * wait, LAST_RETRY_MS)) {
        await pause(wait);
        outcome = await this.tried(own);
      }
      if (outcome !== 'sent') this.refuse(topic, own);
      outcome = 'later';
    }
  }

  private async tried(parts: readonly Part[]): Promise<'sent' | 'later' | 'never'> {
    const deadline = deadlineOf(parts);
    const producer = (this.producer ??= new NumberingProducer(this.options));
    try {
      const topics = byTopic(parts);
      const work = Promise.all([...topics.keys()].map((topic) => this.topics.ensure(topic))).then(() => producer.send(topics));
      await within(work, deadline - Date.now(), busUnavailable);
    } catch (error) {
      // Nobody knows how far the broker has counted. Under the same producer, the next message could be taken for the repetition of this one.
      if (this.producer === producer) this.producer = null;
      void producer.end();
      if (hasType(error, GONE)) for (const { topic } of parts) this.topics.forget(topic);
      this.options.log.warn('Kafka did not take messages.', { topics: [...byTopic(parts).keys()], problem: sentenceOf(error) });
      return hasType(error, FINAL) ? 'never' : 'later';
    }
    for (const part of parts) part.settle(null);
    return 'sent';
  }

  /** What waits behind them goes with them: it must not overtake what its publisher will repeat. */
  private refuse(topic: string, parts: readonly Part[]): void {
    const behind = this.waiting.filter((part) => part.topic === topic);
    this.waiting = this.waiting.filter((part) => part.topic !== topic);
    for (const part of [...parts, ...behind]) part.settle(busUnavailable());
  }
}

/** A producer under whose id the broker counts what it takes of each partition. */
class NumberingProducer {
  private readonly producer: Producer;
  private readonly partitions = new Set<string>();
  private last: Promise<void> = Promise.resolve();
  private isEnded = false;

  constructor(options: KafkaOptions) {
    const createPartitioner = () => {
      // By the hash that the Java client uses: others may publish to the same partitions.
      const partitionOf = Partitioners.DefaultPartitioner();
      return (place: Parameters<typeof partitionOf>[0]): number => {
        const partition = partitionOf(place);
        this.partitions.add(`${place.topic}/${partition}`);
        return partition;
      };
    };
    this.producer = newClient(options).producer({ idempotent: true, maxInFlightRequests: 1, allowAutoTopicCreation: false, createPartitioner });
  }

  async send(topics: ReadonlyMap<string, readonly Part[]>): Promise<void> {
    const sent = this.deliver(topics);
    this.last = sent.catch(() => undefined);
    await sent;
  }

  /** After what is on its way: a client that was disconnected would connect again for it. */
  async end(): Promise<void> {
    this.isEnded = true;
    const ended = this.last.then(() => this.producer.disconnect());
    await within(ended, 1_000, busUnavailable).catch(() => undefined);
  }

  private async deliver(topics: ReadonlyMap<string, readonly Part[]>): Promise<void> {
    await this.producer.connect();
    if (this.isEnded) throw new Error('The time is over.');
    this.partitions.clear();
    const topicMessages = [...topics].map(([topic, parts]) => ({ topic, messages: parts.flatMap(({ messages }) => messages.map(toKafka)) }));
    const written = await this.producer.sendBatch({ topicMessages, acks: -1, timeout: 4_000 });
    // The client forgets a partition whose leader moves between two tries.
    for (const { topicName, partition } of written) this.partitions.delete(`${topicName}/${partition}`);
    if (this.partitions.size > 0) throw new Error(`No answer came for ${[...this.partitions].join(', ')}.`);
  }
}

function toKafka({ key, value, headers }: Message): KafkaMessage {
  return { key, value, headers: headers };
}

function partsOf(messages: readonly Message[]): { readonly messages: readonly Message[]; readonly size: number }[] {
  const parts: { messages: Message[]; size: number }[] = [];
  for (const message of messages) {
    const size = message.value.length + AROUND;
    const last = parts.at(-1);
    if (last === undefined || last.size + size > REQUEST_SIZE) parts.push({ messages: [message], size });
    else {
      last.messages.push(message);
      last.size += size;
    }
  }
  return parts;
}

function byTopic(parts: readonly Part[]): ReadonlyMap<string, readonly Part[]> {
  const topics = new Map<string, Part[]>();
  for (const part of parts) {
    const known = topics.get(part.topic);
    if (known) known.push(part);
    else topics.set(part.topic, [part]);
  }
  return topics;
}

function deadlineOf(parts: readonly Part[]): number {
  return Math.min(...parts.map((part) => part.deadline));
}

/** The client wraps what the broker said. */
function hasType(error: unknown, types: readonly string[]): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (types.includes((cause as { type?: string }).type ?? '')) return true;
  return false;
}
