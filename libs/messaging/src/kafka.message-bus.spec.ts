import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Kafka, logLevel } from 'kafkajs';
import { DomainError } from '#libs/platform/src/domain-error';
import { givenKafka } from '#libs/testing/src/engines/given';
import { givenKafkaBus, LinesLog, message } from '#libs/testing/src/given-kafka-bus';
import { messagesInKafka } from '#libs/testing/src/kafka-messages';
import { mayTake } from '#libs/testing/src/until';
import type { KafkaMessageBus } from './kafka.message-bus.ts';
import { messageBusContract } from './message-bus.contract.ts';

const given = await givenKafka();
const brokers = given ?? '';

(given === null ? describe.skip : describe)('with Kafka', () => {
  messageBusContract('Kafka', async () => {
    const bus = await givenKafkaBus(brokers);
    return {
      bus,
      published: async (topic) =>
        (await messagesInKafka(brokers.split(','), (stored) => stored === `gatehouse.${topic}`)).map(({ key, value, headers }) => ({ key, value, headers })),
      close: () => bus.close(),
    };
  });

  describe('the bus on Kafka', () => {
    const buses: KafkaMessageBus[] = [];
    let topic: string;

    beforeEach(() => {
      topic = `topic-${randomUUID().slice(0, 8)}`;
    });
    afterEach(() => Promise.all(buses.splice(0).map((bus) => bus.close())));

    async function open(options: Parameters<typeof givenKafkaBus>[1] = {}): Promise<KafkaMessageBus> {
      const bus = await givenKafkaBus(brokers, options);
      buses.push(bus);
      return bus;
    }
    const published = () => messagesInKafka(brokers.split(','), (stored) => stored.includes(topic));

    it('creates topics as it is told to, also when several are first', async () => {
      const [one, two] = [await open({ partitions: 3 }), await open({ partitions: 3 })];
      await Promise.all([one, two, one].map((bus, index) => bus.publish(topic, [message('key', index)])));
      const admin = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING }).admin();
      await admin.connect();
      const { topics } = await admin.fetchTopicMetadata({ topics: [`gatehouse.${topic}`] });
      const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name: `gatehouse.${topic}` }] });
      const settings = Object.fromEntries(resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]));
      expect(topics[0]!.partitions).toHaveLength(3);
      expect(settings).toMatchObject({ 'retention.ms': '3600000', 'min.insync.replicas': '1', 'max.message.bytes': String(4 * 1024 * 1024) });
      expect(await admin.fetchTopicOffsets(`gatehouse.${topic}`).then((ends) => ends.reduce((sum, { high }) => sum + Number(high), 0))).toBe(3);
      await admin.disconnect();
    });

    it('shares the brokers with another installation, each under names of its own', async () => {
      const [ours, others] = [await open(), await open({ installation: 'gatehouse-2' })];
      await ours.publish(topic, [message('key', 'ours')]);
      await others.publish(topic, [message('key', 'others')]);
      const told = (await published()).map((each) => `${each.topic} ${each.value}`);
      expect(told.toSorted()).toEqual([`gatehouse-2.${topic} "others"`, `gatehouse.${topic} "ours"`]);
    });

    it('goes on with a topic that somebody has deleted', async () => {
      const bus = await open();
      await bus.publish(topic, [message('key', 1)]);
      const admin = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING }).admin();
      await admin.connect();
      await admin.deleteTopics({ topics: [`gatehouse.${topic}`] });
      await admin.disconnect();
      await bus.publish(topic, [message('key', 2)]);
      expect((await published()).map(({ value }) => value)).toEqual(['2']);
    });

    it('takes an announcement of more than a mebibyte', async () => {
      const bus = await open();
      await bus.publish(topic, [message('key', 'x'.repeat(1_200_000)), message('key', 'y')]);
      expect((await published()).map(({ value }) => value.length)).toEqual([1_200_002, 3]);
    });

    it('tells nobody its password', async () => {
      const log = new LinesLog();
      const sasl = { mechanism: 'scram-sha-256', username: 'gatehouse', password: 'a-secret-that-nobody-tells' } as const;
      const bus = await open({ sasl, log, publishMs: 2_000 });
      const refused = await bus.publish(topic, [message('key', 1)]).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: 'service_unavailable' });
      await bus.close();
      expect(log.lines.length).toBeGreaterThan(1);
      expect(JSON.stringify([log.lines, String(refused), (refused as Error).stack])).not.toContain('a-secret');
    });
  });
});

describe('a bus whose brokers do not answer', () => {
  it.each(['refuse', 'accept and say nothing'])('refuses to publish in time, and closes, when they %s', async (manner) => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    if (manner === 'refuse') server.close();
    const bus = await givenKafkaBus(`127.0.0.1:${port}`, { publishMs: 1_000 });
    const began = performance.now();
    await expect(bus.publish('topic', [message('key', 1)])).rejects.toBeInstanceOf(DomainError);
    await expect(bus.publish('topic', [message('key', 1)])).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(performance.now() - began).toBeLessThan(mayTake(3_000));
    const closing = performance.now();
    await bus.close();
    expect(performance.now() - closing).toBeLessThan(mayTake(5_000));
    await expect(bus.publish('topic', [message('key', 1)])).rejects.toMatchObject({ code: 'service_unavailable' });
    server.close();
  });
});
