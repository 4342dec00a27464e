import { type Message, MessageBus } from '#libs/messaging/src/message-bus';

export interface Published extends Message {
  readonly topic: string;
}

/** Keeps what is published, in order and in memory, where a spec reads it. */
export class KeptMessages extends MessageBus {
  readonly published: Published[] = [];

  async publish(topic: string, messages: readonly Message[]): Promise<void> {
    this.published.push(...messages.map((message) => ({ ...message, topic })));
  }

  async close(): Promise<void> {}
}
