import { setTimeout as pause } from 'node:timers/promises';
import { within } from '#libs/platform/src/deadline';
import { FIRST_RETRY_MS, matches } from './delivering.ts';
import { busUnavailable, ownName, sentenceOf, storedName, type KafkaOptions } from './kafka/kafka-client.ts';
import { KafkaOutbox } from './kafka/kafka-outbox.ts';
import { KafkaSubscription } from './kafka/kafka-subscription.ts';
import { KafkaTopics } from './kafka/kafka-topics.ts';
import { type Message, MessageBus, type Subscription } from './message-bus.ts';

const REACH_MS = 3_000;
/** Publishing is given up after so long; the caller does not know then whether it happened. */
const PUBLISH_MS = 10_000;
const CLOSE_MS = 3_000;
/** How often it is asked how far a group is, while somebody waits for that. */
const HANDLED_POLL_MS = 250;

interface Options extends KafkaOptions {
  /** Tests do not want to wait. */
  readonly firstRetryMs?: number;
  readonly publishMs?: number;
}

/** The bus of a cluster: topics and the positions of groups lie in Kafka, under names that begin with the installation. */
export class KafkaMessageBus extends MessageBus {
  private readonly topics: KafkaTopics;
  private readonly outbox: KafkaOutbox;
  private readonly subscriptions = new Set<KafkaSubscription>();
  /** How many messages failed every time, by group. */
  private readonly aside = new Map<string, number>();
  private isClosed = false;

  private constructor(private readonly options: Options) {
    super();
    this.topics = new KafkaTopics(options);
    this.outbox = new KafkaOutbox(options, this.topics);
  }

  /** Also where no broker answers: they are looked for again whenever there is something to do. */
  static async connect(options: Options): Promise<KafkaMessageBus> {
    const bus = new KafkaMessageBus(options);
    await within(bus.topics.refresh(), REACH_MS, busUnavailable).catch((error: unknown) => {
      options.log.warn('Kafka does not answer yet.', { brokers: options.brokers, problem: sentenceOf(error) });
    });
    return bus;
  }

  /** @throws DomainError `service_unavailable` when it is not known in time that the messages are on disk: some may be */
  async publish(topic: string, messages: readonly Message[]): Promise<void> {
    await this.send(storedName(topic, this.options), messages);
  }

  async subscribe(subscription: Subscription): Promise<{ stop(): Promise<void> }> {
    const { options, topics, aside } = this;
    const { group } = subscription;
    const count = (): number => aside.get(group) ?? 0;
    aside.set(group, count());
    const setAside = async (deadLetters: string, message: Message): Promise<void> => {
      await this.send(deadLetters, [message]);
      aside.set(group, count() + 1);
    };
    const stored: Subscription = {
      ...subscription,
      topics: subscription.topics.map((topic) => storedName(topic, options)),
      handle: (messages) => subscription.handle(messages.map((message) => ({ ...message, topic: ownName(message.topic, options) }))),
    };
    const running = new KafkaSubscription(stored, { options, topics, setAside, firstRetryMs: options.firstRetryMs ?? FIRST_RETRY_MS });
    this.subscriptions.add(running);
    return {
      stop: async () => {
        this.subscriptions.delete(running);
        await running.stop();
      },
    };
  }

  async backlog(): Promise<Readonly<Record<string, number>>> {
    try {
      await this.topics.refresh();
      const topicsOf = new Map<string, Set<string>>();
      for (const running of this.subscriptions) {
        const { group } = running.subscription;
        topicsOf.set(group, new Set([...(topicsOf.get(group) ?? []), ...running.topics()]));
      }
      const backlogs = await Promise.all([...topicsOf].map(async ([group, topics]) => [group, await this.backlogOf(group, [...topics])] as const));
      return Object.fromEntries(backlogs);
    } catch (error) {
      this.options.log.debug('Kafka does not tell how far the groups are.', { problem: sentenceOf(error) });
      throw busUnavailable();
    }
  }

  async handled({ group, topics: wanted }: Pick<Subscription, 'group' | 'topics'>, milliseconds: number): Promise<boolean> {
    const deadline = performance.now() + milliseconds;
    await this.topics.refresh();
    const stored = wanted.map((topic) => storedName(topic, this.options));
    const topics = [...this.topics.all].filter((topic) => matches({ topics: stored }, topic));
    const before = await Promise.all(topics.map((topic) => this.topics.ask((admin) => admin.fetchTopicOffsets(topic))));
    const ends = before.flatMap((partitions, index) => partitions.map(({ partition, low, high }) => ({ topic: topics[index]!, partition, low, high })));
    for (; ; await pause(HANDLED_POLL_MS)) {
      const committed = await this.committed(group, topics);
      // What lies before the first kept message will not be handled any more.
      const isHandled = ends.every(({ topic, partition, low, high }) => Math.max(Number(low), committed(topic, partition)) >= Number(high));
      if (isHandled || performance.now() >= deadline) return isHandled;
    }
  }

  setAside(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.aside);
  }

  async close(): Promise<void> {
    await Promise.all([...this.subscriptions].map((running) => running.stop()));
    this.isClosed = true;
    // Whoever still waits to publish is told when their time is over.
    await within(this.outbox.close(), CLOSE_MS, busUnavailable).catch(() => undefined);
    await this.topics.close();
  }

  /** To a topic as it is called at the brokers. */
  private async send(topic: string, messages: readonly Message[]): Promise<void> {
    if (messages.length === 0) return;
    if (this.isClosed) throw busUnavailable();
    const { publishMs = PUBLISH_MS } = this.options;
    const deadline = Date.now() + publishMs;
    try {
      await within(this.topics.ensure(topic), publishMs, busUnavailable);
    } catch (error) {
      this.options.log.warn('A topic cannot be created or looked up.', { topic, problem: sentenceOf(error) });
      throw busUnavailable();
    }
    await this.outbox.add(topic, messages, deadline);
  }

  /** How far the group is in a partition; -1 where it has not begun. */
  private async committed(group: string, topics: readonly string[]): Promise<(topic: string, partition: number) => number> {
    if (topics.length === 0) return () => -1;
    const found = await this.topics.ask((admin) => admin.fetchOffsets({ groupId: storedName(group, this.options), topics: [...topics] }));
    const offsets = new Map(found.flatMap(({ topic, partitions }) => partitions.map(({ partition, offset }) => [`${topic} ${partition}`, Number(offset)])));
    return (topic, partition) => offsets.get(`${topic} ${partition}`) ?? -1;
  }

  private async backlogOf(group: string, topics: readonly string[]): Promise<number> {
    if (topics.length === 0) return 0;
    const committed = await this.topics.ask((admin) => admin.fetchOffsets({ groupId: storedName(group, this.options), topics: [...topics] }));
    const counts = await Promise.all(
      committed.map(async ({ topic, partitions }) => {
        const ends = await this.topics.ask((admin) => admin.fetchTopicOffsets(topic));
        const next = new Map(partitions.map(({ partition, offset }) => [partition, Number(offset)]));
        // What lies before the first kept message will not be handled any more.
        return ends.reduce((sum, { partition, low, high }) => sum + Number(high) - Math.max(Number(low), next.get(partition) ?? 0), 0);
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }
}
