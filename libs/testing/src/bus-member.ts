import { writeSync } from 'node:fs';
import { KafkaMessageBus } from '#libs/messaging/src/kafka.message-bus';
import { PinoLog } from '#libs/platform/src/pino.log';

/** A member of a group on Kafka, until it is killed. Prints the value of each message that it handled. */
const [, , brokers = '', group = '', topic = ''] = process.argv;
const bus = await KafkaMessageBus.connect({
  brokers: brokers.split(','),
  tls: null,
  sasl: null,
  partitions: 4,
  replication: 1,
  retentionMs: 3_600_000,
  clientId: 'member',
  log: new PinoLog({ level: 'silent', readable: false }),
});
await bus.subscribe({ group, topics: [topic], handle: async (messages) => messages.forEach(({ value }) => writeSync(1, `${value}\n`)) });
