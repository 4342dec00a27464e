import { randomUUID } from 'node:crypto';
import type { Message, MessageBus } from './message-bus.ts';

export interface OpenedMessageBus {
  readonly bus: MessageBus;
  /** What a consumer finds on a topic, each message as often as it is there; in order per key. */
  published(topic: string): Promise<readonly Message[]>;
  close(): Promise<void>;
}

const message = (key: string, value: unknown): Message => ({
  key,
  value: JSON.stringify(value),
  headers: { ce_id: String(value), ce_type: 'test', position: '1' },
});

export function messageBusContract(name: string, open: () => Promise<OpenedMessageBus>): void {
  describe(`a message bus in ${name}`, () => {
    let opened: OpenedMessageBus;
    /** Of this test alone: others may use the same place. */
    let topic: string;

    beforeEach(async () => {
      topic = `topic-${randomUUID().slice(0, 8)}`;
      opened = await open();
    });
    afterEach(() => opened.close());

    it('publishes key, value and headers as they were given, to this topic alone', async () => {
      const sent: Message = { key: 'ключ', value: '{"text":"Zoë 😀\\n"}', headers: { ce_id: 'event_1', ce_source: 'a/b?c=d' } };
      await opened.bus.publish(topic, [sent]);
      await opened.bus.publish(`${topic}.other`, [message('a', 1)]);
      expect(await opened.published(topic)).toEqual([sent]);
    });

    it('has published when it says so, each key in order, also what is published at once', async () => {
      const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
      const publish = (from: number): Promise<unknown> =>
        Promise.all(
          [0, 1, 2].map((part) =>
            opened.bus.publish(
              topic,
              Array.from({ length: 200 }, (_, index) => message(keys[index % keys.length]!, from + part * 200 + index)),
            ),
          ),
        );
      await publish(0);
      await publish(600);
      const published = await opened.published(topic);
      expect(published.map(({ value }) => Number(value)).sort((a, b) => a - b)).toEqual(Array.from({ length: 1_200 }, (_, index) => index));
      for (const key of keys) {
        const numbers = published.filter((each) => each.key === key).map(({ value }) => Number(value));
        expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      }
    });

    it('publishes many messages of some size', async () => {
      const big = 'x'.repeat(64 * 1024);
      const messages = Array.from({ length: 40 }, (_, index) => message('a', `${index}${big}`));
      await opened.bus.publish(topic, messages);
      expect(await opened.published(topic)).toEqual(messages);
    });

    it('publishes nothing where there is nothing to tell', async () => {
      await opened.bus.publish(topic, []);
      expect(await opened.published(topic)).toEqual([]);
    });
  });
}
