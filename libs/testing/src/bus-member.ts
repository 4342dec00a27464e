import { writeSync } from 'node:fs';
import { givenKafkaBus } from './given-kafka-bus.ts';

/** A member of a group on Kafka, until it is killed. Prints the value of each message that it handled. */
const [, , brokers = '', group = '', topic = ''] = process.argv;
const bus = await givenKafkaBus(brokers, { clientId: 'member' });
await bus.subscribe({ group, topics: [topic], handle: async (messages) => messages.forEach(({ value }) => writeSync(1, `${value}\n`)) });
