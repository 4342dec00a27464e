import { randomBytes } from 'node:crypto';
// Jest does not always link what is imported at the same time while it runs.
import '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import '#libs/event-sourcing/src/sealing/mongodb.key-store';
import '#libs/messaging/src/kafka.message-bus';
import '#libs/platform/src/storage/log-note';
import '#libs/platform/src/storage/mongodb-storage';
import '#libs/read-models/src/mongodb.read-models';
import '#libs/read-models/src/mongodb.short-lived';
import { givenEventstore, givenKafka, givenMongodb } from '#libs/testing/src/engines/given';
import { eventsWhoseTimePasses } from './retention.contract.ts';

const [eventstore, kafka, mongodb] = [await givenEventstore(), await givenKafka(), await givenMongodb()];
if (eventstore !== null && kafka !== null && mongodb !== null)
  eventsWhoseTimePasses('on the engines of a cluster', {
    ...{ EVENTSTORE_URL: eventstore, KAFKA_BROKERS: kafka, MONGODB_URL: mongodb, KAFKA_REPLICATION: '1' },
    ...{ INSTALLATION: `retention-${randomBytes(6).toString('hex')}`, MASTER_KEYS: randomBytes(32).toString('base64') },
  });
else it.skip('there are no engines of a cluster', () => {});
