import { within } from '#libs/platform/src/deadline';
import { busUnavailable, sentenceOf, storedName, type KafkaOptions } from './kafka/kafka-client.ts';
import { KafkaOutbox } from './kafka/kafka-outbox.ts';
import { KafkaTopics } from './kafka/kafka-topics.ts';
import { type Message, MessageBus } from './message-bus.ts';

const REACH_MS = 3_000;
/** Publishing is given up after so long; the caller does not know then whether it happened. */
const PUBLISH_MS = 10_000;
const CLOSE_MS = 3_000;

interface Options extends KafkaOptions {
  /** Tests do not want to wait. */
  readonly publishMs?: number;
}

/** The bus of a cluster: topics lie in Kafka, under names that begin with the installation. */
export class KafkaMessageBus extends MessageBus {
  private readonly topics: KafkaTopics;
  private readonly outbox: KafkaOutbox;
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
    if (messages.length === 0) return;
    if (this.isClosed) throw busUnavailable();
    const { publishMs = PUBLISH_MS } = this.options;
    const deadline = Date.now() + publishMs;
    const stored = storedName(topic, this.options);
    try {
      await within(this.topics.ensure(stored), publishMs, busUnavailable);
    } catch (error) {
      this.options.log.warn('A topic cannot be created or looked up.', { topic: stored, problem: sentenceOf(error) });
      throw busUnavailable();
    }
    await this.outbox.add(stored, messages, deadline);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    // Whoever still waits to publish is told when their time is over.
    await within(this.outbox.close(), CLOSE_MS, busUnavailable).catch(() => undefined);
    await this.topics.close();
  }
}
