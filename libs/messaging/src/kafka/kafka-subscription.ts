import { setTimeout as pause } from 'node:timers/promises';
import { matches } from '../delivering.ts';
import type { Message, Subscription } from '../message-bus.ts';
import { sentenceOf, type KafkaOptions } from './kafka-client.ts';
import { KafkaSession } from './kafka-session.ts';
import type { KafkaTopics } from './kafka-topics.ts';

/** An environment's topics appear together, and each change moves partitions between the members. */
const SETTLING_MS = 100;
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5_000;

interface Needs {
  readonly options: KafkaOptions;
  readonly topics: KafkaTopics;
  readonly setAside: (deadLetters: string, message: Message) => Promise<void>;
  readonly firstRetryMs: number;
}

/** A member of a group from `subscribe` to `stop`: one session after the other, each with the topics that there are when it begins. */
export class KafkaSubscription {
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;

  constructor(
    readonly subscription: Subscription,
    private readonly needs: Needs,
  ) {
    this.running = this.run();
  }

  /** What it takes of the topics that there are. */
  topics(): readonly string[] {
    return [...this.needs.topics.all].filter((topic) => matches(this.subscription, topic)).sort();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    const { log } = this.needs.options;
    const { group } = this.subscription;
    for (let failures = 0; !signal.aborted;) {
      const topics = this.topics();
      const change = this.changeOf(topics);
      const until = AbortSignal.any([signal, change.signal]);
      const session = new KafkaSession({ ...this.needs, subscription: this.subscription, topics, onJoin: () => (failures = 0) });
      const problem = topics.length === 0 ? await rest(null, until) : await session.run(until);
      change.forget();
      if (problem === null) continue;
      log.warn('A consumer begins anew.', { group, problem: sentenceOf(problem) });
      await rest(Math.min(FIRST_RETRY_MS * 2 ** failures++, LAST_RETRY_MS), signal);
    }
  }

  /** Its signal aborts when there are other topics than these. */
  private changeOf(topics: readonly string[]): { readonly signal: AbortSignal; forget(): void } {
    const changed = new AbortController();
    let settling: NodeJS.Timeout | null = null;
    const look = (): void => {
      if (this.topics().join() !== topics.join()) settling ??= setTimeout(() => changed.abort(), SETTLING_MS);
    };
    const unwatch = this.needs.topics.watch(look);
    look();
    return {
      signal: changed.signal,
      forget: () => {
        unwatch();
        if (settling) clearTimeout(settling);
      },
    };
  }
}

/** Without a time, until the signal. */
async function rest(ms: number | null, signal: AbortSignal): Promise<null> {
  return pause(ms ?? 2 ** 31 - 1, null, { signal }).catch(() => null);
}
