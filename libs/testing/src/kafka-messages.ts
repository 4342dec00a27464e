import { randomUUID } from 'node:crypto';
import { type IHeaders, Kafka, type KafkaConfig, logLevel } from 'kafkajs';
import type { Published } from './kept-messages.ts';

/** Everything on the topics that are such, by their names at the brokers: each message as often as it is there, in the order of its partition. */
export async function messagesInKafka(
  brokers: readonly string[],
  isSuch: (topic: string) => boolean,
  credentials: Pick<KafkaConfig, 'ssl' | 'sasl'> = {},
): Promise<readonly Published[]> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING, ...credentials });
  const admin = kafka.admin();
  await admin.connect();
  const topics = (await admin.listTopics()).filter(isSuch);
  const ends = new Map<string, bigint>();
  for (const topic of topics)
    for (const { partition, low, high } of await admin.fetchTopicOffsets(topic))
      if (BigInt(high) > BigInt(low)) ends.set(`${topic} ${partition}`, BigInt(high) - 1n);
  await admin.disconnect();
  if (ends.size === 0) return [];

  const messages: Published[] = [];
  const consumer = kafka.consumer({ groupId: `observer-${randomUUID()}` });
  await consumer.connect();
  await consumer.subscribe({ topics, fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    const run = consumer.run({
      eachMessage: async ({ topic, partition, message }) => {
        messages.push({ topic, key: String(message.key), value: String(message.value), headers: headersOf(message.headers) });
        const last = ends.get(`${topic} ${partition}`);
        if (last !== undefined && BigInt(message.offset) >= last) ends.delete(`${topic} ${partition}`);
        if (ends.size === 0) resolve();
      },
    });
    run.catch(reject);
    consumer.on(consumer.events.CRASH, ({ payload }) => (payload.restart ? undefined : reject(payload.error)));
  });
  await consumer.disconnect();
  return messages;
}

function headersOf(headers: IHeaders = {}): Published['headers'] {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
