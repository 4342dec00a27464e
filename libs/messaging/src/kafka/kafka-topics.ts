import { setTimeout as pause } from 'node:timers/promises';
import type { Admin } from 'kafkajs';
import { within } from '#libs/platform/src/deadline';
import { busUnavailable, newClient, sentenceOf, type KafkaOptions } from './kafka-client.ts';

/** How soon a topic is seen that another process has created. */
const LOOK_EVERY_MS = 1_000;
const ANSWER_MS = 10_000;
/** An event may hold 1 MiB, and its announcement says a little more. */
const LARGEST_MESSAGE = 4 * 1024 * 1024;

/** The topics of the cluster: which there are, and those that somebody publishes to for the first time. */
export class KafkaTopics {
  private names: ReadonlySet<string> = new Set();
  private admin: Admin | null = null;
  private readonly creating = new Map<string, Promise<void>>();
  private readonly listeners = new Set<() => void>();
  private isLooking = false;

  constructor(private readonly options: KafkaOptions) {}

  /** Those that are known to exist. */
  get all(): ReadonlySet<string> {
    return this.names;
  }

  /** Calls back when there are others than before, until the answer is called. */
  watch(listener: () => void): () => void {
    this.listeners.add(listener);
    if (!this.isLooking) void this.look();
    return () => this.listeners.delete(listener);
  }

  /** Resolves when the topic exists. Callers of one topic go on in the order in which they came. */
  async ensure(topic: string): Promise<void> {
    let creating = this.creating.get(topic);
    if (creating === undefined && this.names.has(topic)) return;
    if (creating === undefined) {
      creating = this.create(topic);
      this.creating.set(topic, creating);
      const done = (): boolean => this.creating.delete(topic);
      void creating.then(done, done);
    }
    await creating;
  }

  /** The broker does not know it any more. */
  forget(topic: string): void {
    this.learn(new Set([...this.names].filter((name) => name !== topic)));
  }

  async refresh(): Promise<void> {
    this.learn(new Set(await this.ask((admin) => admin.listTopics())));
  }

  /** Asks the cluster. What fails is asked with a new connection the next time. */
  async ask<Answer>(question: (admin: Admin) => Promise<Answer>): Promise<Answer> {
    const admin = (this.admin ??= newClient(this.options).admin());
    try {
      return await within(
        admin.connect().then(() => question(admin)),
        ANSWER_MS,
        busUnavailable,
      );
    } catch (error) {
      if (this.admin === admin) this.admin = null;
      void admin.disconnect().catch(() => undefined);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.listeners.clear();
    await within(this.admin?.disconnect() ?? Promise.resolve(), 1_000, busUnavailable).catch(() => undefined);
  }

  private async create(topic: string): Promise<void> {
    await this.refresh();
    // A cluster that does not let us create has the topics that it wants us to use.
    if (this.names.has(topic)) return;
    const { partitions, replication, retentionMs, log } = this.options;
    const configEntries = Object.entries({
      'retention.ms': retentionMs,
      'max.message.bytes': LARGEST_MESSAGE,
      // With one replica alone, what was acknowledged could be lost with it.
      'min.insync.replicas': Math.max(1, replication - 1),
    }).map(([name, value]) => ({ name, value: String(value) }));
    const created = await this.ask((admin) =>
      admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: partitions, replicationFactor: replication, configEntries }] }),
    );
    if (created) log.info('A topic is created.', { topic, partitions, replication });
    this.learn(new Set([...this.names, topic]));
  }

  private learn(names: ReadonlySet<string>): void {
    const isNew = names.size !== this.names.size || [...names].some((name) => !this.names.has(name));
    this.names = names;
    if (isNew) for (const listener of this.listeners) listener();
  }

  private async look(): Promise<void> {
    this.isLooking = true;
    while (this.listeners.size > 0) {
      await this.refresh().catch((error: unknown) => {
        this.options.log.debug('Kafka does not tell which topics there are.', { problem: sentenceOf(error) });
      });
      await pause(LOOK_EVERY_MS, undefined, { ref: false });
    }
    this.isLooking = false;
  }
}
