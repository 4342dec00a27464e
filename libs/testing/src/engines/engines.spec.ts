import { Kafka, logLevel } from 'kafkajs';
import { MongoClient } from 'mongodb';
import { givenEngine, givenMongodb } from './given.ts';
import { kafka } from './kafka.ts';
import { mongodb } from './mongodb.ts';
import { until } from '../until.ts';

const ownKafka = await givenEngine(kafka);
const ownMongodb = await givenEngine(mongodb);
const describeKafka = ownKafka === null ? describe.skip : describe;
const describeMongodb = ownMongodb === null ? describe.skip : describe;

describeKafka('Kafka in tests', () => {
  const engine = ownKafka!;

  const client = () => new Kafka({ brokers: [engine.address], logLevel: logLevel.NOTHING });

  async function send(value: string): Promise<void> {
    const producer = client().producer();
    await producer.connect();
    await producer.send({ topic: 'letters', messages: [{ value }], timeout: 2000 });
    await producer.disconnect();
  }

  /** All messages, up to the one with this value. */
  async function receivedUpTo(last: string): Promise<readonly string[]> {
    const values: string[] = [];
    const consumer = client().consumer({ groupId: `readers-${Date.now()}` });
    await consumer.connect();
    await consumer.subscribe({ topics: ['letters'], fromBeginning: true });
    await consumer.run({ eachMessage: async ({ message }) => void values.push(String(message.value)) });
    await until(() => values.includes(last));
    await consumer.disconnect();
    return values;
  }

  it('creates no topic by itself, and takes messages for those that are there', async () => {
    const admin = client().admin();
    await admin.connect();
    await expect(admin.fetchTopicMetadata({ topics: ['letters'] })).rejects.toThrow('does not host this topic-partition');
    await admin.createTopics({ topics: [{ topic: 'letters', numPartitions: 1 }], waitForLeaders: true });
    await admin.disconnect();
    await send('a');
    expect(await receivedUpTo('a')).toEqual(['a']);
  });

  it.each(['stop', 'kill'] as const)('has its messages after a %s and a restart', async (end) => {
    const { address } = engine;
    await engine[end]();
    expect(engine.pid).toBeNull();
    await engine.restart();
    expect(engine.address).toBe(address);
    await send(end);
    expect(await receivedUpTo(end)).toContain('a');
  });

  it('answers nobody while it is paused', async () => {
    await engine.pause();
    expect(await kafka.answers(engine.address)).toBe(false);
    await engine.resume();
    expect(await kafka.answers(engine.address)).toBe(true);
  });
});

describeMongodb('the MongoDB of tests', () => {
  const engine = ownMongodb!;

  async function words<Answer>(use: (words: ReturnType<ReturnType<MongoClient['db']>['collection']>) => Promise<Answer>): Promise<Answer> {
    const client = new MongoClient(engine.address);
    try {
      return await use(client.db('spec').collection('words'));
    } finally {
      await client.close();
    }
  }

  it('has its documents after a stop and a restart', async () => {
    await words((collection) => collection.insertOne({ word: 'a' }, { writeConcern: { w: 'majority', j: true } }));
    await engine.stop();
    expect(await mongodb.answers(engine.address)).toBe(false);
    await engine.restart();
    expect(await words((collection) => collection.find().toArray())).toMatchObject([{ word: 'a' }]);
  });

  it('answers nobody while it is paused', async () => {
    await engine.pause();
    expect(await mongodb.answers(engine.address)).toBe(false);
    await engine.resume();
    expect(await mongodb.answers(engine.address)).toBe(true);
  });

  it('gives each asker a database of its own', async () => {
    const [one, other] = [new URL((await givenMongodb())!), new URL((await givenMongodb())!)];
    expect(other.host).toBe(one.host);
    expect(other.pathname).not.toBe(one.pathname);
    expect(await mongodb.answers(other.href)).toBe(true);
  });
});
