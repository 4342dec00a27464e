import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { AbsentMessageBus } from '#libs/messaging/src/absent.message-bus';
import type { MessageBus } from '#libs/messaging/src/message-bus';
import type { KafkaSettings } from '../config/settings.ts';
import type { Log } from '../log.ts';
import { StartRefused } from '../start-refused.ts';
import { ManyReplicas } from '../replicas.ts';
import type { EngineAddresses, Engines, EnginesNeeds } from './engines.ts';

/**
 * Opens the engines of a cluster, which many processes share: EventStoreDB, MongoDB and, where this one speaks to it, Kafka. Drivers are imported here and only here, when they are needed.
 * @throws StartRefused when an engine cannot be reached, or the data keys cannot be read
 */
export async function openDistributedEngines(addresses: EngineAddresses, { settings, kafka, clock, log }: EnginesNeeds): Promise<Engines> {
  const [{ EventstoredbEventStore }, { MongodbStorage }, { MongodbReadModels }, { MongodbShortLived }, { MongodbKeyStore }] = await Promise.all([
    import('#libs/event-sourcing/src/eventstoredb.event-store'),
    import('../storage/mongodb-storage.ts'),
    import('#libs/read-models/src/mongodb.read-models'),
    import('#libs/read-models/src/mongodb.short-lived'),
    import('#libs/event-sourcing/src/sealing/mongodb.key-store'),
  ]);
  // What stops what was opened, in the order of opening.
  const opened: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const each of opened.splice(0).reverse()) await each();
  };
  try {
    const storage = await MongodbStorage.connect({ url: addresses.MONGODB_URL, log });
    opened.push(() => storage.close());
    const keyStorage = addresses.KEYS_URL === null ? storage : await MongodbStorage.connect({ url: addresses.KEYS_URL, setting: 'KEYS_URL', log });
    if (keyStorage !== storage) opened.push(() => keyStorage.close());
    const keys = await MongodbKeyStore.open(keyStorage, masterKeysOf(settings), clock);
    const events = await EventstoredbEventStore.connect({ url: addresses.EVENTSTORE_URL, log });
    opened.push(() => events.close());
    const bus = kafka === null ? new AbsentMessageBus() : await connectKafka(addresses.KAFKA_BROKERS!, kafka, log);
    opened.push(() => bus.close());
    return {
      events,
      readModels: new MongodbReadModels(storage),
      shortLived: new MongodbShortLived(storage, clock),
      bus,
      keys,
      directory: null,
      replicas: new ManyReplicas(),
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

/** @throws StartRefused: a key that each process makes for itself could not be read by the others */
function masterKeysOf({ MASTER_KEYS }: EnginesNeeds['settings']): readonly string[] {
  if (MASTER_KEYS === null) throw new StartRefused('MASTER_KEYS is not set, and the processes of a cluster need the same ones: 32 bytes in base64.');
  return MASTER_KEYS;
}

/** @throws StartRefused */
async function connectKafka(brokers: readonly string[], settings: KafkaSettings, log: Log): Promise<MessageBus> {
  const { KAFKA_TLS, KAFKA_TLS_CA, KAFKA_SASL_MECHANISM, KAFKA_USERNAME, KAFKA_PASSWORD, KAFKA_PARTITIONS, KAFKA_REPLICATION, KAFKA_RETENTION } = settings;
  if ((KAFKA_USERNAME === null) !== (KAFKA_PASSWORD === null))
    throw new StartRefused('KAFKA_USERNAME and KAFKA_PASSWORD belong together: set both of them, or neither.');
  const { KafkaMessageBus } = await import('#libs/messaging/src/kafka.message-bus');
  return KafkaMessageBus.connect({
    brokers,
    tls: KAFKA_TLS ? { ca: KAFKA_TLS_CA === null ? null : await certificatesIn(KAFKA_TLS_CA) } : null,
    sasl: KAFKA_USERNAME === null ? null : { mechanism: KAFKA_SASL_MECHANISM, username: KAFKA_USERNAME, password: KAFKA_PASSWORD! },
    partitions: KAFKA_PARTITIONS,
    replication: KAFKA_REPLICATION,
    retentionMs: KAFKA_RETENTION,
    clientId: `gatehouse-${hostname()}`,
    log,
  });
}

async function certificatesIn(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new StartRefused(`KAFKA_TLS_CA ${path} cannot be read (${error.code}).`);
  });
}
