import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '#libs/testing/src/until';
import type { Delivery, Message, MessageBus } from './message-bus.ts';

/** Opens the bus of one place, with short pauses between attempts; opening again after `close` finds what was published. */
export type OpenMessageBus = () => Promise<{ readonly bus: MessageBus; close(): Promise<void> }>;

const message = (key: string, value: unknown): Message => ({
  key,
  value: JSON.stringify(value),
  headers: { ce_id: String(value), ce_type: 'test', position: '1' },
});

export function messageBusContract(name: string, given: () => Promise<OpenMessageBus>): void {
  describe(`a message bus in ${name}`, () => {
    let open: OpenMessageBus;
    let opened: Awaited<ReturnType<OpenMessageBus>>;
    let bus: MessageBus;
    /** Of this test alone: others may use the same place. */
    let topic: string;
    let group: string;
    const reopen = async (): Promise<void> => {
      await opened.close();
      opened = await open();
      ({ bus } = opened);
    };
    /** A handler that remembers what it was given. */
    const receiver = (): { readonly values: unknown[]; readonly deliveries: Delivery[]; readonly handle: (messages: readonly Delivery[]) => Promise<void> } => {
      const deliveries: Delivery[] = [];
      const values: unknown[] = [];
      return {
        values,
        deliveries,
        handle: async (messages) => {
          deliveries.push(...messages);
          values.push(...messages.map(({ value }) => JSON.parse(value) as unknown));
        },
      };
    };

    beforeEach(async () => {
      const own = randomUUID().slice(0, 8);
      [topic, group] = [`topic-${own}`, `group-${own}`];
      open = await given();
      opened = await open();
      ({ bus } = opened);
    });
    afterEach(() => opened.close());

    it('delivers key, value and headers as they were published', async () => {
      const sent: Message = { key: 'ключ', value: '{"text":"Zoë 😀\\n"}', headers: { ce_id: 'event_1', ce_source: 'a/b?c=d' } };
      const { handle, deliveries } = receiver();
      await bus.publish(topic, [sent]);
      await bus.subscribe({ group, topics: [topic], handle });
      await until(() => deliveries.length === 1);
      expect(deliveries[0]).toEqual({ ...sent, topic, attempt: 1 });
    });

    it('tells whether a group has handled what was published before, whoever is of it', async () => {
      const listened = { group, topics: [`${topic}*`] };
      expect(await bus.handled(listened, 0)).toBe(true);
      await bus.publish(topic, [message('a', 1), message('b', 2)]);
      await bus.publish(`${topic}-other`, [message('a', 3)]);
      expect(await bus.handled(listened, 100)).toBe(false);
      let letGo = (): void => {};
      const held = new Promise<void>((resolve) => (letGo = resolve));
      const member = await bus.subscribe({ ...listened, handle: () => held });
      expect(await bus.handled(listened, 100)).toBe(false);
      const asked = bus.handled(listened, 20_000);
      letGo();
      expect(await asked).toBe(true);
      // By members that have gone, too.
      await member.stop();
      expect(await bus.handled(listened, 100)).toBe(true);
      await bus.publish(topic, [message('a', 4)]);
      expect(await bus.handled(listened, 100)).toBe(false);
      expect(await bus.handled({ group: `${group}-other`, topics: [topic] }, 100)).toBe(false);
    });

    it('keeps the order of publishing, across history and live', async () => {
      const { handle, values } = receiver();
      const publish = (from: number): Promise<unknown> =>
        Promise.all(
          [0, 1, 2].map((part) =>
            bus.publish(
              topic,
              Array.from({ length: 200 }, (_, index) => message('key', from + part * 200 + index)),
            ),
          ),
        );
      await publish(0);
      await bus.subscribe({ group, topics: [topic], handle });
      await publish(600);
      await publish(1_200);
      await until(() => values.length === 1_800);
      expect(values).toEqual(Array.from({ length: 1_800 }, (_, index) => index));
    });

    it('gives every group everything', async () => {
      const [one, two] = [receiver(), receiver()];
      await bus.subscribe({ group: `${group}.one`, topics: [topic], handle: one.handle });
      await bus.publish(topic, [message('a', 1)]);
      await bus.subscribe({ group: `${group}.two`, topics: [topic], handle: two.handle });
      await until(() => one.values.length === 1 && two.values.length === 1);
    });

    it('gives a message to one member of a group, and all of a key to the same while the members stay', async () => {
      const [one, two] = [receiver(), receiver()];
      await bus.subscribe({ group, topics: [topic], handle: one.handle });
      await bus.subscribe({ group, topics: [topic], handle: two.handle });
      await bus.publish(
        topic,
        Array.from({ length: 400 }, (_, index) => message(`key${index % 40}`, index)),
      );
      await until(() => one.values.length + two.values.length === 400);
      expect(new Set([...one.values, ...two.values]).size).toBe(400);
      const keys = (member: { readonly deliveries: readonly Delivery[] }): Set<string> => new Set(member.deliveries.map(({ key }) => key));
      expect([...keys(one)].filter((key) => keys(two).has(key))).toEqual([]);
      for (const { deliveries } of [one, two])
        for (const key of new Set(deliveries.map((delivery) => delivery.key))) {
          const numbers = deliveries.filter((delivery) => delivery.key === key).map(({ value }) => Number(value));
          expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
        }
    });

    it('hands the work of a member that stopped to the others', async () => {
      const [one, two] = [receiver(), receiver()];
      const first = await bus.subscribe({ group, topics: [topic], handle: one.handle });
      await bus.subscribe({ group, topics: [topic], handle: two.handle });
      await first.stop();
      await bus.publish(
        topic,
        Array.from({ length: 50 }, (_, index) => message(`key${index}`, index)),
      );
      await until(() => two.values.length === 50);
      expect(one.values).toEqual([]);
    });

    it('goes on after a restart where the group had got to', async () => {
      const before = receiver();
      await bus.subscribe({ group, topics: [topic], handle: before.handle });
      await bus.publish(topic, [message('a', 1), message('a', 2)]);
      await until(() => before.values.length === 2);
      await reopen();
      await bus.publish(topic, [message('a', 3)]);
      const after = receiver();
      await bus.subscribe({ group, topics: [topic], handle: after.handle });
      await until(() => after.values.length > 0);
      expect(after.values).toEqual([3]);
    });

    it('delivers after a restart what nobody was there for', async () => {
      await bus.publish(topic, [message('a', 1)]);
      await reopen();
      const { handle, values } = receiver();
      await bus.subscribe({ group, topics: [topic], handle });
      await until(() => values.length === 1);
    });

    it('delivers again what a handler refused, in order', async () => {
      const attempts: [unknown, number][] = [];
      await bus.subscribe({
        group,
        topics: [topic],
        handle: async (messages) => {
          for (const { value, attempt } of messages) {
            attempts.push([JSON.parse(value), attempt]);
            if (value === '2' && attempt < 4) throw new Error('not yet');
          }
        },
      });
      await bus.publish(topic, [message('a', 1), message('a', 2), message('a', 3)]);
      await until(() => attempts.some(([value]) => value === 3));
      const handled = attempts.filter(([value, attempt]) => value !== 2 || attempt === 4).map(([value]) => value);
      expect([...new Set(handled)]).toEqual([1, 2, 3]);
      expect(attempts.filter(([value]) => value === 2).map(([, attempt]) => attempt)).toEqual([1, 2, 3, 4]);
    });

    it('sets aside what fails every time, and goes on', async () => {
      const { handle, values } = receiver();
      const dead = receiver();
      const everything = receiver();
      await bus.subscribe({
        group,
        topics: [topic],
        maxAttempts: 3,
        handle: async (messages) => {
          if (messages.some(({ value }) => value === '2')) throw new Error('never');
          await handle(messages);
        },
      });
      await bus.subscribe({ group: `${group}.operators`, topics: [`${topic}.${group}.dead`], handle: dead.handle });
      await bus.subscribe({ group: `${group}.others`, topics: [`${topic.slice(0, -1)}*`], handle: everything.handle });
      await bus.publish(topic, [message('a', 1), message('a', 2), message('a', 3)]);
      await until(() => values.length === 2 && dead.values.length === 1 && everything.values.length === 3);
      expect(values).toEqual([1, 3]);
      expect(dead.deliveries[0]).toMatchObject({ key: 'a', value: '2', headers: { ce_id: '2', error: 'never' } });
      expect(bus.setAside()).toMatchObject({ [group]: 1, [`${group}.operators`]: 0, [`${group}.others`]: 0 });
    });

    it('joins topics that appear later under a prefix', async () => {
      const { handle, deliveries } = receiver();
      await bus.subscribe({ group, topics: [`${topic}.*`], handle });
      await bus.publish(`${topic}.one`, [message('a', 1)]);
      await bus.publish(`other-${topic}.one`, [message('a', 2)]);
      await bus.publish(`${topic}.two`, [message('a', 3)]);
      await until(() => deliveries.length === 2);
      expect(deliveries.map(({ topic }) => topic).sort()).toEqual([`${topic}.one`, `${topic}.two`]);
    });

    it('waits on stopping for the handler in flight, and commits it', async () => {
      let finish = (): void => undefined;
      const started: unknown[] = [];
      const subscription = await bus.subscribe({
        group,
        topics: [topic],
        handle: (messages) => {
          started.push(...messages.map(({ value }) => value));
          return new Promise((resolve) => (finish = resolve));
        },
      });
      await bus.publish(topic, [message('a', 1)]);
      await until(() => started.length === 1);
      let hasStopped = false;
      const stopped = subscription.stop().then(() => (hasStopped = true));
      await pause(20);
      expect(hasStopped).toBe(false);
      finish();
      await stopped;
      await reopen();
      const { handle, values } = receiver();
      await bus.subscribe({ group, topics: [topic], handle });
      await bus.publish(topic, [message('a', 2)]);
      await until(() => values.length > 0);
      expect(values).toEqual([2]);
    });

    it('counts what is published and not handled', async () => {
      let finish = (): void => undefined;
      const gate = new Promise<void>((resolve) => (finish = resolve));
      await bus.subscribe({ group, topics: [topic], handle: () => gate });
      await bus.publish(topic, [message('a', 1), message('a', 2)]);
      expect(await bus.backlog()).toEqual({ [group]: 2 });
      finish();
      await until(async () => (await bus.backlog())[group] === 0);
    });

    it('publishes many messages of some size', async () => {
      const { handle, values } = receiver();
      await bus.subscribe({ group, topics: [topic], handle });
      const big = 'x'.repeat(64 * 1024);
      await bus.publish(
        topic,
        Array.from({ length: 40 }, (_, index) => message('a', `${index}${big}`)),
      );
      await until(() => values.length === 40);
    });
  });
}
