import { PinoLog } from '#libs/platform/src/pino.log';
import { givenKafka } from '#libs/testing/src/engines/given';
import { KafkaMessageBus } from './kafka.message-bus.ts';
import { messageBusContract } from './message-bus.contract.ts';

const log = new PinoLog({ level: 'silent', readable: false });
const optionsFor = (brokers: string) => ({
  brokers: brokers.split(','),
  tls: null,
  sasl: null,
  partitions: 4,
  replication: 1,
  retentionMs: 3_600_000,
  clientId: 'spec',
  log,
  firstRetryMs: 5,
});

const brokers = await givenKafka();

if (brokers !== null)
  messageBusContract('Kafka', async () => async () => {
    const bus = await KafkaMessageBus.connect(optionsFor(brokers));
    return { bus, close: () => bus.close() };
  });
else it.skip('a message bus in Kafka', () => {});
