import type { Admin } from 'kafkajs';
import { within } from '#libs/platform/src/deadline';
import { busUnavailable, newClient, type KafkaOptions } from './kafka-client.ts';

const ANSWER_MS = 10_000;
/** An event may hold 1 MiB, and its announcement says a little more. */
const LARGEST_MESSAGE = 4 * 1024 * 1024;

/** The topics of the cluster: which there are, and those that somebody publishes to for the first time. */
export class KafkaTopics {
  private names = new Set<string>();
  private admin: Admin | null = null;
  private readonly creating = new Map<string, Promise<void>>();

  constructor(private readonly options: KafkaOptions) {}

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
    this.names.delete(topic);
  }

  async refresh(): Promise<void> {
    this.names = new Set(await this.ask((admin) => admin.listTopics()));
  }

  /** Asks the cluster. What fails is asked with a new connection the next time. */
  private async ask<Answer>(question: (admin: Admin) => Promise<Answer>): Promise<Answer> {
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
    this.names.add(topic);
  }
}
