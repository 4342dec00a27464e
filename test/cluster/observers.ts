import { setTimeout as pause } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import type { FeedEvent } from '../torture/expectations.ts';

const AGAIN = 100;

/** Reads the feed from its beginning on, page by page, and holds on to its cursor through whatever happens. */
export class FeedTail {
  readonly ids: string[] = [];
  /** When each was seen first. */
  readonly seenAt = new Map<string, number>();

  constructor(
    private readonly url: () => string,
    private readonly key: string,
  ) {}

  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const page = await this.page().catch(() => []);
      for (const { id } of page) {
        this.ids.push(id);
        this.seenAt.set(id, Date.now());
      }
      if (page.length === 0) await pause(AGAIN);
    }
  }

  private async page(): Promise<readonly FeedEvent[]> {
    const after = this.ids.at(-1);
    const response = await fetch(`${this.url()}/events?limit=100${after === undefined ? '' : `&after=${after}`}`, {
      headers: { Authorization: `Bearer ${this.key}` },
    });
    if (response.status !== 200) return [];
    return ((await response.json()) as { readonly data: readonly FeedEvent[] }).data;
  }
}

export interface Announced {
  readonly topic: string;
  readonly key: string;
  readonly id: string;
  readonly position: string;
}

/** Everything on the topics of public events, each message as often as it came, in the order of its partition. */
export async function announced(brokers: readonly string[]): Promise<readonly Announced[]> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const topics = (await admin.listTopics()).filter((topic) => /^gatehouse\.environment_[^.]+\.[^.]+$/.test(topic));
  const ends = new Map<string, bigint>();
  for (const topic of topics)
    for (const { partition, low, high } of await admin.fetchTopicOffsets(topic))
      if (BigInt(high) > BigInt(low)) ends.set(`${topic} ${partition}`, BigInt(high) - 1n);
  await admin.disconnect();

  const messages: Announced[] = [];
  const consumer = kafka.consumer({ groupId: `observer-${Date.now()}` });
  await consumer.connect();
  await consumer.subscribe({ topics, fromBeginning: true });
  const isRead = new Promise<void>((resolve) => {
    if (ends.size === 0) resolve();
    void consumer.run({
      eachMessage: async ({ topic, partition, message }) => {
        const header = (name: string): string => String(message.headers?.[name]);
        messages.push({ topic, key: String(message.key), id: header('ce_id'), position: header('position') });
        const last = ends.get(`${topic} ${partition}`);
        if (last !== undefined && BigInt(message.offset) >= last) ends.delete(`${topic} ${partition}`);
        if (ends.size === 0) resolve();
      },
    });
  });
  await isRead;
  await consumer.disconnect();
  return messages;
}
