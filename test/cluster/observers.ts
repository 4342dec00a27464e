import { setTimeout as pause } from 'node:timers/promises';
import { messagesInKafka } from '#libs/testing/src/kafka-messages';
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
  const messages = await messagesInKafka(brokers, (topic) => /^gatehouse\.environment_[^.]+\.[^.]+$/.test(topic));
  return messages.map(({ topic, key, headers }) => ({ topic, key, id: headers['ce_id']!, position: headers['position']! }));
}
