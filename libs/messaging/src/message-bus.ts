/** A message as published: the public (or domain) event as JSON text, keyed by organization. */
export interface Message {
  readonly key: string;
  readonly value: string;
  /** CloudEvents 1.0 attributes in binary mode (`ce_id`, `ce_type`, …), and `position`. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Delivery extends Message {
  readonly topic: string;
  /** Counts the deliveries of this message to this group, from 1. */
  readonly attempt: number;
}

export interface Subscription {
  readonly group: string;
  /** Whole topic names, or a prefix that ends in `*`; topics that appear later are joined within seconds. */
  readonly topics: readonly string[];
  /**
   * Handles messages that may be handled in one go: of one topic, in order per key. Resolving commits them. Throwing delivers them again, after a growing
   * pause; what still fails after `maxAttempts` (default 5) goes to the dead-letter topic `<topic>.<group>.dead` and the rest goes on.
   */
  readonly handle: (messages: readonly Delivery[]) => Promise<void>;
  readonly maxAttempts?: number;
}

/**
 * Order of first appearance per key, at least once, redelivery, consumer groups (a message goes to one member of each group), dead letters; positions survive
 * a restart. A group that is new to a topic begins with its first kept message. One contract suite, `message-bus.contract.ts`.
 */
export abstract class MessageBus {
  /** Whatever were published, nobody could hear it: then nothing is. */
  readonly isForNobody: boolean = false;

  /** Durably published, in order, when it resolves. */
  abstract publish(topic: string, messages: readonly Message[]): Promise<void>;

  /** Starts delivering; the answer stops it after the handler in flight has finished and been committed. */
  abstract subscribe(subscription: Subscription): Promise<{ stop(): Promise<void> }>;

  /** Messages published and not yet handled, by group: a queue depth for the metrics. */
  abstract backlog(): Promise<Readonly<Record<string, number>>>;

  /**
   * Whether the group has handled, within so many milliseconds, all that was published to these topics before this was asked. Its members may be in other
   * processes, or nowhere.
   */
  abstract handled(group: Pick<Subscription, 'group' | 'topics'>, milliseconds: number): Promise<boolean>;

  /** Messages that failed every time in this process since it started, by group; 0 for a group that none failed in. */
  abstract setAside(): Readonly<Record<string, number>>;

  abstract close(): Promise<void>;
}
