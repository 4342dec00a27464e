import { hostname } from 'node:os';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { AbsentMessageBus } from '#libs/messaging/src/absent.message-bus';
import type { MessageBus } from '#libs/messaging/src/message-bus';
import { requireCertificates } from '#libs/platform/src/certificates-file';
import type { EngineSettings, KafkaSettings } from '#libs/platform/src/config/settings';
import type { Log } from '#libs/platform/src/log';
import { patiently } from '#libs/platform/src/patience';
import { ManyReplicas } from '#libs/platform/src/replicas';
import { refusalsOf, StartRefused } from '#libs/platform/src/start-refused';
import type { Belonging } from '#libs/platform/src/storage/log-note';
import type { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import type { EngineAddresses, Engines, EnginesNeeds } from './engines.ts';
import { openBlobs } from './open-blobs.ts';

/**
 * Opens the engines of a cluster, which many processes share: EventStoreDB, MongoDB and, where this one speaks to it, Kafka. Drivers are imported here and only here, when they are needed.
 * @throws StartRefused when an engine cannot be reached, or the data keys cannot be read
 */
export async function openDistributedEngines(addresses: EngineAddresses, { settings, kafka, files, mayBegin, clock, log }: EnginesNeeds): Promise<Engines> {
  const [{ EventstoredbEventStore }, { MongodbStorage }, { MongodbReadModels }, { MongodbShortLived }, { MongodbKeyStore }] = await Promise.all([
    import('#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store'),
    import('#libs/platform/src/storage/mongodb-storage'),
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
    const { INSTALLATION: installation } = addresses;
    const storage = await MongodbStorage.connect({ url: addresses.MONGODB_URL, database: installation, changes: 'short_lived', log });
    opened.push(() => storage.close());
    const keyStorage =
      addresses.KEYS_URL === null ? storage : await MongodbStorage.connect({ url: addresses.KEYS_URL, database: installation, setting: 'KEYS_URL', log });
    if (keyStorage !== storage) opened.push(() => keyStorage.close());
    const keys = await MongodbKeyStore.open(keyStorage, masterKeysOf(settings), clock);
    const events = await EventstoredbEventStore.connect({ url: addresses.EVENTSTORE_URL, installation, log });
    opened.push(() => events.close());
    const asked = { log, what: 'Which log it is' };
    if (!mayBegin && (await patiently(() => events.head(), asked)) === START) throw new StartRefused('The log is empty: put back the log and the keys first.');
    const { requireSameLog } = await import('#libs/platform/src/storage/log-note');
    const identity = await patiently(() => events.identity(), asked);
    const belongings = [belongingOf(storage), keys.belonging(keyStorage === storage ? 'MONGODB_URL' : 'KEYS_URL')];
    await patiently(() => requireSameLog(identity, belongings), asked);
    const bus = kafka === null ? new AbsentMessageBus() : await connectKafka(addresses, kafka, log);
    opened.push(() => bus.close());
    const blobs = await openBlobs(files, { installation, log, instead: null });
    opened.push(() => blobs.close());
    return {
      events,
      damage: events.damage,
      readModels: new MongodbReadModels(storage),
      shortLived: new MongodbShortLived(storage, clock),
      bus,
      keys,
      blobs,
      directory: null,
      log: identity,
      replicas: new ManyReplicas(),
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

/** What is wrong with the settings of engines of which some are named, a sentence each, without asking any. What `isRefused` says of is told already. */
export async function refusalsOfEngines(
  { EVENTSTORE_URL, MONGODB_URL, KEYS_URL }: EngineSettings,
  { settings, kafka }: Pick<EnginesNeeds, 'settings' | 'kafka'>,
  isRefused: (name: string) => boolean,
): Promise<readonly string[]> {
  const [{ checkedUrl }, { requireMongodbUrl }] = await Promise.all([
    import('#libs/event-sourcing/src/eventstoredb/connection-string'),
    import('#libs/platform/src/storage/mongodb-client'),
  ]);
  return refusalsOf([
    () => isRefused('MASTER_KEYS') || masterKeysOf(settings),
    () => EVENTSTORE_URL === null || checkedUrl(EVENTSTORE_URL),
    () => MONGODB_URL === null || requireMongodbUrl(MONGODB_URL, 'MONGODB_URL'),
    () => KEYS_URL === null || requireMongodbUrl(KEYS_URL, 'KEYS_URL'),
    () => kafka === null || isRefused('KAFKA_USERNAME') || isRefused('KAFKA_PASSWORD') || saslOf(kafka),
    () => kafka === null || tlsOf(kafka),
  ]);
}

/** @throws StartRefused: a key that each process makes for itself could not be read by the others */
function masterKeysOf({ MASTER_KEYS }: EnginesNeeds['settings']): readonly string[] {
  if (MASTER_KEYS === null) throw new StartRefused('MASTER_KEYS is not set, and the processes of a cluster need the same ones: 32 bytes in base64.');
  return MASTER_KEYS;
}

/** Rows, and how far somebody came, say nothing of another log. */
function belongingOf(storage: MongodbStorage): Belonging {
  return {
    storage,
    title: `The database ${storage.name} (MONGODB_URL)`,
    collection: 'installation',
    _id: 'log',
    // Every service has leases before anything else.
    used: { collection: 'leases', filter: {} },
    wayOut: 'Name the database of this log, or an empty one, which is filled from the log.',
  };
}

/** @throws StartRefused */
async function connectKafka({ KAFKA_BROKERS, INSTALLATION }: EngineAddresses, settings: KafkaSettings, log: Log): Promise<MessageBus> {
  const { KAFKA_PARTITIONS, KAFKA_REPLICATION, KAFKA_RETENTION } = settings;
  const { KafkaMessageBus } = await import('#libs/messaging/src/kafka.message-bus');
  return KafkaMessageBus.connect({
    brokers: KAFKA_BROKERS!,
    installation: INSTALLATION,
    tls: tlsOf(settings),
    sasl: saslOf(settings),
    partitions: KAFKA_PARTITIONS,
    replication: KAFKA_REPLICATION,
    retentionMs: KAFKA_RETENTION,
    clientId: `${INSTALLATION}-${hostname()}`,
    log,
  });
}

/** @throws StartRefused */
function saslOf({ KAFKA_SASL_MECHANISM: mechanism, KAFKA_USERNAME: username, KAFKA_PASSWORD: password }: KafkaSettings) {
  if ((username === null) !== (password === null)) throw new StartRefused('KAFKA_USERNAME and KAFKA_PASSWORD belong together: set both of them, or neither.');
  return username === null ? null : { mechanism, username, password: password! };
}

/** @throws StartRefused when the certificates cannot be read */
function tlsOf({ KAFKA_TLS, KAFKA_TLS_CA }: KafkaSettings) {
  return KAFKA_TLS ? { ca: KAFKA_TLS_CA === null ? null : requireCertificates('KAFKA_TLS_CA', KAFKA_TLS_CA) } : null;
}
