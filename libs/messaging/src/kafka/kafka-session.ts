import { setTimeout as pause } from 'node:timers/promises';
import type { Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs';
import { aborted, within } from '#libs/platform/src/deadline';
import { deadLetterTopic, deliver, DELIVERY } from '../delivering.ts';
import type { Message, Subscription } from '../message-bus.ts';
import { busUnavailable, newClient, storedName, type KafkaOptions } from './kafka-client.ts';

/** The others of the group take over when nothing was heard of a member for so long; a broker allows no less than six seconds unless it is told to. */
const SESSION_MS = 6_000;
const HEARTBEAT_MS = 1_000;
/** For members that finish what is in flight before partitions move. */
const REBALANCE_MS = 15_000;
/** The longest that a request waits for messages, and thereby a heartbeat or the end for the request. */
const FETCH_WAIT_MS = 250;
const PARTITION_BYTES = 512 * 1024;
/** The next fetch waits for what the last one brought; what takes longer is not waited for any more. */
const TOGETHER_MS = 1_000;
const SILENT_MS = 30_000;
const CONCURRENCY = 64;
const COMMIT_MS = 4_000;
const END_MS = 3_000;

interface Needs {
  readonly options: KafkaOptions;
  readonly subscription: Subscription;
  readonly topics: readonly string[];
  readonly setAside: (deadLetters: string, message: Message) => Promise<void>;
  readonly firstRetryMs: number;
  readonly onJoin: () => void;
}

/** What was fetched of a partition, while it is handled. */
interface Work {
  readonly topic: string;
  readonly partition: number;
  /** Behind what was handled. */
  next: string;
  /** The group has given the partition to another member meanwhile: what is committed is now theirs to say. */
  isLost: boolean;
}

interface Position {
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
}

/** One consumer, with the topics that it was made for; it ends when they change, when it is stopped, and when something fails. */
export class KafkaSession {
  private readonly consumer: Consumer;
  private readonly ending = new AbortController();
  private problem: unknown = null;
  /** By topic and partition. */
  private readonly working = new Map<string, Work>();
  private readonly handling = new Set<Promise<void>>();
  private uncommitted = new Map<string, Position>();
  private committing: Promise<void> | null = null;
  private lastCommit: Promise<void> = Promise.resolve();
  private heardAt = Date.now();

  constructor(private readonly needs: Needs) {
    this.consumer = newClient(needs.options).consumer({
      groupId: storedName(needs.subscription.group, needs.options),
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
      maxWaitTimeInMs: FETCH_WAIT_MS,
      maxBytesPerPartition: PARTITION_BYTES,
      allowAutoTopicCreation: false,
      // A new session is the one way in which a consumer begins anew.
      retry: { retries: 2, initialRetryTime: 100, maxRetryTime: 1_000, restartOnFailure: async () => false },
    });
  }

  /** Consumes until the signal, and answers null; or until something fails, and answers that. */
  async run(signal: AbortSignal): Promise<unknown> {
    const watch = setInterval(() => {
      if (Date.now() - this.heardAt > SILENT_MS) this.fail(new Error('Nothing was heard of the broker.'));
    }, HEARTBEAT_MS);
    const { signal: ending } = this.ending;
    const started = this.start();
    started.catch((error: unknown) => this.fail(error));
    try {
      await aborted(AbortSignal.any([signal, ending]));
      await this.finish(started);
    } finally {
      clearInterval(watch);
    }
    return this.problem;
  }

  private async start(): Promise<void> {
    const { consumer } = this;
    const { CRASH, FETCH, GROUP_JOIN, HEARTBEAT } = consumer.events;
    const heard = (): void => void (this.heardAt = Date.now());
    consumer.on(CRASH, ({ payload }) => this.fail(payload.error));
    consumer.on(FETCH, heard);
    consumer.on(HEARTBEAT, heard);
    consumer.on(GROUP_JOIN, ({ payload }) => {
      heard();
      for (const work of this.working.values()) if (!payload.memberAssignment[work.topic]?.includes(work.partition)) work.isLost = true;
      this.needs.onJoin();
    });
    await consumer.connect();
    await consumer.subscribe({ topics: [...this.needs.topics], fromBeginning: true });
    if (this.ending.signal.aborted) return;
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: CONCURRENCY,
      eachBatch: (payload) => this.take(payload),
    });
  }

  private fail(problem: unknown): void {
    this.problem ??= problem;
    this.ending.abort();
  }

  /** What is in flight is handled and committed before the group is left. */
  private async finish(started: Promise<void>): Promise<void> {
    this.ending.abort();
    try {
      this.consumer.pause(this.needs.topics.map((topic) => ({ topic })));
    } catch {
      // It never ran.
    }
    await Promise.all(this.handling);
    // What does not answer now is left to itself: it goes on until its requests have run out of time.
    const left = Promise.allSettled([started, this.lastCommit]).then(() => this.consumer.disconnect());
    await within(left, END_MS, busUnavailable).catch(() => undefined);
  }

  /** Answers when the batch was handled, and before that when it takes long: the partition then pauses, and the others go on. */
  private async take(payload: EachBatchPayload): Promise<void> {
    const { batch } = payload;
    const { topic, partition, messages } = batch;
    const place = `${topic}/${partition}`;
    if (this.ending.signal.aborted || this.working.has(place)) return;
    const work: Work = { topic, partition, next: batch.firstOffset()!, isLost: false };
    this.working.set(place, work);
    payload.resolveOffset(batch.lastOffset());
    const handled = this.handle(work, messages, batch.lastOffset()).finally(() => this.working.delete(place));
    this.handling.add(handled);
    void handled.finally(() => this.handling.delete(handled));
    if (await isSettledWithin(TOGETHER_MS, handled)) return;
    const goOn = payload.pause();
    void handled.then(() => {
      if (this.ending.signal.aborted) return;
      // After a rebalance the consumer is where the last commit was.
      if (!work.isLost) this.consumer.seek({ topic, partition, offset: work.next });
      goOn();
    });
  }

  private async handle(work: Work, messages: readonly KafkaMessage[], last: string): Promise<void> {
    const { subscription: member, firstRetryMs } = this.needs;
    const { topic } = work;
    const setAside = (message: Message): Promise<void> => this.needs.setAside(deadLetterTopic(topic, member.group), message);
    for (let start = 0; start < messages.length && !this.ending.signal.aborted; start += DELIVERY) {
      const slice = messages.slice(start, start + DELIVERY);
      const count = await deliver(slice.map(messageOf), { topic, member, firstRetryMs, setAside, signal: this.ending.signal });
      const isEnd = start + count === messages.length;
      // Behind the last message may lie what is no message.
      if (count > 0) work.next = behind(isEnd ? last : slice[count - 1]!.offset);
      if (count > 0 && !work.isLost) await this.commit(work);
      if (count < slice.length) return;
    }
  }

  /** Partitions that were handled at the same time are committed by one request. */
  private async commit({ topic, partition, next }: Work): Promise<void> {
    this.uncommitted.set(`${topic}/${partition}`, { topic, partition, offset: next });
    this.committing ??= this.lastCommit.then(() => {
      const positions = [...this.uncommitted.values()];
      this.uncommitted = new Map();
      this.committing = null;
      return this.consumer.commitOffsets(positions);
    });
    const committing = this.committing;
    this.lastCommit = committing.catch(() => undefined);
    // Handled once more by whoever gets the partition: that is what "at least once" says.
    await within(committing, COMMIT_MS, busUnavailable).catch((error: unknown) => this.fail(error));
  }
}

function messageOf({ key, value, headers = {} }: KafkaMessage): Message {
  const texts = Object.entries(headers).map(([name, header]) => [name, String(Array.isArray(header) ? header[0] : (header ?? ''))]);
  return { key: key?.toString() ?? '', value: value?.toString() ?? '', headers: Object.fromEntries(texts) as Record<string, string> };
}

function behind(offset: string): string {
  return String(BigInt(offset) + 1n);
}

async function isSettledWithin(ms: number, work: Promise<void>): Promise<boolean> {
  const timer = new AbortController();
  const isOver = pause(ms, false, { signal: timer.signal }).catch(() => false);
  const isSettled = await Promise.race([work.then(() => true), isOver]);
  timer.abort();
  return isSettled;
}
