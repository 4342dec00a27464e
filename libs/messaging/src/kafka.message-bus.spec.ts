import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { DomainError } from '#libs/platform/src/domain-error';
import { givenKafka } from '#libs/testing/src/engines/given';
import { givenKafkaBus, LinesLog, message } from '#libs/testing/src/given-kafka-bus';
import { ROOT } from '#libs/testing/src/process';
import { mayTake, until } from '#libs/testing/src/until';
import type { KafkaMessageBus } from './kafka.message-bus.ts';
import { messageBusContract } from './message-bus.contract.ts';
import type { Delivery } from './message-bus.ts';

const given = await givenKafka();
const brokers = given ?? '';

(given === null ? describe.skip : describe)('with Kafka', () => {
  messageBusContract('Kafka', async () => async () => {
    const bus = await givenKafkaBus(brokers);
    return { bus, close: () => bus.close() };
  });

  describe('the bus on Kafka', () => {
    const buses: KafkaMessageBus[] = [];
    let topic: string;
    let group: string;

    beforeEach(() => {
      const own = randomUUID().slice(0, 8);
      [topic, group] = [`topic-${own}`, `group-${own}`];
    });
    afterEach(() => Promise.all(buses.splice(0).map((bus) => bus.close())));

    async function open(options: Parameters<typeof givenKafkaBus>[1] = {}, at = brokers): Promise<KafkaMessageBus> {
      const bus = await givenKafkaBus(at, options);
      buses.push(bus);
      return bus;
    }

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

    it('shares the brokers with another installation, of whose messages and groups it sees nothing', async () => {
      const [ours, others] = [await open(), await open({ installation: 'gatehouse-2' })];
      const seen: { readonly ours: string[]; readonly others: string[] } = { ours: [], others: [] };
      const failing = { group, maxAttempts: 1, handle: (): Promise<void> => Promise.reject(new Error('never')) };
      // Every topic, under the same group.
      for (const [bus, into] of [[ours, seen.ours] as const, [others, seen.others] as const])
        await bus.subscribe({ group, topics: ['*'], handle: async (messages) => void into.push(...messages.map((each) => `${each.topic} ${each.value}`)) });
      await ours.publish(topic, [message('key', 'ours')]);
      await others.publish(topic, [message('key', 'others')]);
      await others.subscribe({ ...failing, group: `${group}.failing`, topics: [topic] });
      await until(() => seen.others.some((each) => each.startsWith(topic)) && others.setAside()[`${group}.failing`] === 1);
      await until(async () => (await ours.backlog())[group] === 0 && (await others.backlog())[group] === 0);
      const own = (texts: readonly string[]): readonly string[] => texts.filter((text) => text.startsWith(topic));
      expect([own(seen.ours), own(seen.others)]).toEqual([[`${topic} "ours"`], [`${topic} "others"`]]);
      expect(seen.ours.filter((text) => text.includes('others'))).toEqual([]);
      const admin = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING }).admin();
      await admin.connect();
      const names = [...(await admin.listTopics()), ...(await admin.listGroups()).groups.map(({ groupId }) => groupId)].filter((name) =>
        /topic-|group-/.test(name),
      );
      await admin.disconnect();
      expect(names.filter((name) => name.includes(topic)).toSorted()).toEqual([
        `gatehouse-2.${topic}`,
        `gatehouse-2.${topic}.${group}.failing.dead`,
        `gatehouse.${topic}`,
      ]);
      expect(names.filter((name) => /^[^.]+\.group-/.test(name) && name.endsWith(group)).toSorted()).toEqual([`gatehouse-2.${group}`, `gatehouse.${group}`]);
      expect(names.filter((name) => !/^gatehouse(-2)?\./.test(name))).toEqual([]);
    }, 30_000);

    it('takes an announcement of more than a mebibyte', async () => {
      const bus = await open();
      const lengths: number[] = [];
      await bus.subscribe({ group, topics: [topic], handle: async (messages) => void lengths.push(...messages.map(({ value }) => value.length)) });
      await bus.publish(topic, [message('key', 'x'.repeat(1_200_000)), message('key', 'y')]);
      await until(() => lengths.length === 2);
      expect(lengths).toEqual([1_200_002, 3]);
    });

    it('keeps dead letters from whoever follows a prefix', async () => {
      const bus = await open();
      const seen: string[] = [];
      await bus.subscribe({ group, topics: [`${topic}*`], maxAttempts: 1, handle: () => Promise.reject(new Error('never')) });
      await bus.subscribe({
        group: `${group}.others`,
        topics: [`${topic}*`],
        handle: async (messages) => void seen.push(...messages.map((each) => each.topic)),
      });
      await bus.publish(topic, [message('key', 1)]);
      const dead: Delivery[] = [];
      await bus.subscribe({ group: `${group}.operators`, topics: [`${topic}.${group}.dead`], handle: async (messages) => void dead.push(...messages) });
      await until(() => dead.length === 1);
      await pause(1_500);
      expect([seen, dead.length]).toEqual([[topic], 1]);
    });

    it('shares the partitions among members, and gives those of a killed one to the others', async () => {
      const bus = await open();
      await bus.publish(topic, [message('first', 'first')]);
      const ours: string[] = [];
      const theirs: string[] = [];
      await bus.subscribe({ group, topics: [topic], handle: async (messages) => void ours.push(...messages.map(({ value }) => value)) });
      const member = spawn(process.execPath, [join(ROOT, 'dist/libs/testing/src/bus-member.js'), brokers, group, topic]);
      member.stdout.setEncoding('utf8').on('data', (text: string) => theirs.push(...text.trim().split('\n')));
      let sent = 0;
      const send = async (): Promise<void> => {
        sent += 40;
        await bus.publish(
          topic,
          Array.from({ length: 40 }, (_, index) => message(`key${index}`, sent - index)),
        );
      };
      await until(async () => {
        await send();
        await pause(100);
        return theirs.length > 100;
      });
      const before = ours.length;
      expect(before).toBeGreaterThan(0);
      const killed = performance.now();
      member.kill('SIGKILL');
      await once(member, 'close');
      await send();
      const all = (): number => new Set([...ours, ...theirs]).size;
      await until(() => all() === sent + 1);
      expect(performance.now() - killed).toBeLessThan(mayTake(10_000));
    });

    it('keeps a handler that takes longer than a session from nobody, and waits for it alone', async () => {
      const bus = await open();
      const attempts: number[] = [];
      const others: string[] = [];
      let isSlowDone = false;
      await bus.publish(topic, [message('slow', 'slow')]);
      await bus.subscribe({
        group,
        topics: [topic],
        handle: async (messages) => {
          if (messages.some(({ key }) => key === 'slow')) {
            attempts.push(...messages.map(({ attempt }) => attempt));
            await pause(9_000);
            isSlowDone = true;
          } else others.push(...messages.map(({ key }) => key));
        },
      });
      await until(() => attempts.length === 1);
      await bus.publish(
        topic,
        Array.from({ length: 20 }, (_, index) => message(`key${index}`, index)),
      );
      await until(() => others.length > 8);
      expect(isSlowDone).toBe(false);
      await until(async () => (await bus.backlog())[group] === 0);
      expect([isSlowDone, others.length + attempts.length]).toEqual([true, 21]);
    });

    it('tells nobody its password', async () => {
      const log = new LinesLog();
      const sasl = { mechanism: 'scram-sha-256', username: 'gatehouse', password: 'a-secret-that-nobody-tells' } as const;
      const bus = await open({ sasl, log, publishMs: 2_000 });
      const refused = await bus.publish(topic, [message('key', 1)]).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: 'service_unavailable' });
      await bus.subscribe({ group, topics: [topic], handle: async () => {} });
      await pause(500);
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
    await bus.subscribe({ group: 'group', topics: ['topic*'], handle: async () => {} });
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
