import { type Message as KafkaMessage, type Producer, Partitioners } from 'kafkajs';
import { within } from '#libs/platform/src/deadline';
import type { Message } from '../message-bus.ts';
import { busUnavailable, newClient, type KafkaOptions } from './kafka-client.ts';

/** By topic. */
type Messages = ReadonlyMap<string, readonly Message[]>;

/** A producer under whose id the broker counts what it takes of each partition. */
export class NumberingProducer {
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

  async send(topics: Messages): Promise<void> {
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

  private async deliver(topics: Messages): Promise<void> {
    // Not after its end: nobody would disconnect it again.
    if (!this.isEnded) await this.producer.connect();
    if (this.isEnded) throw new Error('The time is over.');
    this.partitions.clear();
    const topicMessages = [...topics].map(([topic, messages]) => ({ topic, messages: messages.map(toKafka) }));
    const written = await this.producer.sendBatch({ topicMessages, acks: -1, timeout: 4_000 });
    // The client forgets a partition whose leader moves between two tries.
    for (const { topicName, partition } of written) this.partitions.delete(`${topicName}/${partition}`);
    if (this.partitions.size > 0) throw new Error(`No answer came for ${[...this.partitions].join(', ')}.`);
  }
}

function toKafka({ key, value, headers }: Message): KafkaMessage {
  return { key, value, headers };
}
