/** A message as published: the public (or domain) event as JSON text, keyed by organization. */
export interface Message {
  readonly key: string;
  readonly value: string;
  /** CloudEvents 1.0 attributes in binary mode (`ce_id`, `ce_type`, …), and `position`. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Where what happened is announced to consumers outside: order of first appearance per key, at least once. Nothing of the product hears it. */
export abstract class MessageBus {
  /** Whatever were published, nobody could hear it: then nothing is. */
  readonly isForNobody: boolean = false;

  /** Durably published, in order, when it resolves. */
  abstract publish(topic: string, messages: readonly Message[]): Promise<void>;

  abstract close(): Promise<void>;
}
