import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { givenEngine } from '#libs/testing/src/engines/given';
import { kafka } from '#libs/testing/src/engines/kafka';
import { givenKafkaBus, LinesLog, message } from '#libs/testing/src/given-kafka-bus';
import { messagesInKafka } from '#libs/testing/src/kafka-messages';
import type { Published } from '#libs/testing/src/kept-messages';
import { eventually, mayTake } from '#libs/testing/src/until';
import type { KafkaMessageBus } from './kafka.message-bus.ts';
import type { Message } from './message-bus.ts';

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

/** One that may be hurt: that there is one to share says nothing of whether another can be started. */
const own = await givenEngine(kafka);

(own === null ? describe.skip : describe)('the bus on a Kafka that fails', () => {
  const engine = own!;

  /** A broker that has just come back may not know yet where everything is. */
  const published = (topic: string): Promise<readonly Published[]> =>
    eventually(() => messagesInKafka(engine.address.split(','), (stored) => stored === `gatehouse.${topic}`), 20_000);

  /** Publishes as a forwarder does: the next only after the one before, which is repeated until it is taken. */
  async function publishUntil(bus: KafkaMessageBus, topic: string, signal: AbortSignal, into: Message[]): Promise<void> {
    for (let number = 0; !signal.aborted; number += 3) {
      const batch = KEYS.flatMap((key) => [0, 1, 2].map((index) => message(key, number + index)));
      for (;;) {
        const refusal: unknown = await bus.publish(topic, batch).then(
          () => null,
          (error: unknown) => error,
        );
        if (refusal === null) break;
        expect(refusal).toMatchObject({ code: 'service_unavailable' });
      }
      into.push(...batch);
      await pause(5);
    }
  }

  it.each([
    ['is stopped and starts again', async () => engine.stop().then(() => engine.restart())],
    ['is killed and starts again', async () => engine.kill().then(() => engine.restart())],
    [
      'hangs for ten seconds',
      async () => {
        await engine.pause();
        await pause(10_000);
        await engine.resume();
      },
    ],
  ] as const)(
    'loses nothing, and keeps the order of first appearance, when it %s',
    async (name, fault) => {
      const topic = `topic-${name.split(' ')[1]}`;
      const log = new LinesLog();
      const bus = await givenKafkaBus(engine.address, { log, publishMs: 4_000 });
      const taken: Message[] = [];
      const enough = new AbortController();
      const publishing = publishUntil(bus, topic, enough.signal, taken);
      const after = async (count: number): Promise<void> => {
        for (const target = taken.length + count, deadline = Date.now() + 40_000; taken.length < target; await pause(20))
          if (Date.now() > deadline) throw new Error([taken.length, target, ...log.lines.slice(-10)].join('\n'));
      };
      await after(1_000);
      await fault();
      await after(1_000);
      enough.abort();
      await publishing;
      const all = await published(topic);
      for (const key of KEYS) {
        const inOrder = new Set(all.filter((each) => each.key === key).map(({ value }) => value));
        expect([...inOrder]).toEqual(taken.filter((each) => each.key === key).map(({ value }) => value));
      }
      expect(all.length).toBeLessThan(2 * taken.length);
      await bus.close();
    },
    90_000,
  );

  it('takes no message for the repetition of one that was given up', async () => {
    const bus = await givenKafkaBus(engine.address, { publishMs: 4_000 });
    /** Another message at each try; answers the one that was taken. */
    const insist = async (): Promise<string> => {
      for (;;) {
        const value = `"${randomUUID()}"`;
        const isTaken = await bus.publish('given-up', [{ key: 'key', value, headers: {} }]).then(
          () => true,
          () => false,
        );
        if (isTaken) return value;
      }
    };
    const taken = [await insist()];
    await engine.pause();
    const publishing = insist();
    // The first was given up by then, and the second is on its way.
    await pause(7_000);
    await engine.resume();
    taken.push(await publishing, await insist());
    expect((await published('given-up')).map(({ value }) => value)).toEqual(expect.arrayContaining(taken));
    await bus.close();
  }, 60_000);

  it('publishes as soon as it is there, when it comes later than the bus', async () => {
    await engine.stop();
    const bus = await givenKafkaBus(engine.address, { publishMs: 1_000 });
    await expect(bus.publish('late', [message('key', 1)])).rejects.toMatchObject({ code: 'service_unavailable' });
    await engine.restart();
    // A server that has just come may need longer for a new topic than this bus waits; what was given up may arrive too.
    await eventually(() => bus.publish('late', [message('key', 2)]));
    expect(new Set((await published('late')).map(({ value }) => value))).toEqual(new Set(['2']));
    await bus.close();
  }, 60_000);

  it('closes in time while it does not answer', async () => {
    const bus = await givenKafkaBus(engine.address);
    await bus.publish('closing', [message('key', 1)]);
    await engine.pause();
    const publishing = expect(bus.publish('closing', [message('key', 2)])).rejects.toMatchObject({ code: 'service_unavailable' });
    const began = performance.now();
    await bus.close();
    expect(performance.now() - began).toBeLessThan(mayTake(15_000));
    await publishing;
    await engine.resume();
  }, 60_000);
});
