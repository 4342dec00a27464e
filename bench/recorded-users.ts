import { randomBytes } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { WITH_SECRETS } from '#libs/contracts/src/sealed';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { type EventStore, type NewEvent, type RecordedEvent, START } from '#libs/event-sourcing/src/log/event-store';
import { KEY_BYTES, MasterKeys } from '#libs/event-sourcing/src/sealing/master-keys';
import { MongodbKeyStore } from '#libs/event-sourcing/src/sealing/mongodb.key-store';
import { markedFieldsOf } from '#libs/event-sourcing/src/sealing/marked-fields';
import { SealingEventStore } from '#libs/event-sourcing/src/sealing/sealing.event-store';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings } from '#libs/platform/src/config/settings';
import { newCommandId } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import type { Cluster } from '#libs/testing/src/cluster/cluster';
import { made, patiently } from './cluster-ground.ts';

/** Users whose keys are stored in one go, and whose events are waited for: so few that whoever follows the log finds them at its end, which a process reads once for all. */
const TOGETHER = 5_000;
/** Users whose events are on their way at once. */
const APPENDING = 1_000;
const EMAIL = 'template@gatehouse.test';
const log = new PinoLog({ level: 'warn', readable: false, destination: process.stderr });

/** What the creation of one user records, as text by stream. */
interface Template {
  /** Whatever a creation makes derives its ids from these characters. */
  readonly commandId: string;
  readonly streams: readonly { readonly stream: string; readonly text: string }[];
}

/** Records users in the log of a cluster as their creations do, each sealed with a key of its own, and past the services: they take half a year for so many. */
export class RecordedUsers {
  private constructor(
    private readonly storage: MongodbStorage,
    private readonly client: MongoClient,
    private readonly stored: EventstoredbEventStore,
    private readonly keys: MongodbKeyStore,
    private readonly masters: MasterKeys,
    private readonly template: Template,
  ) {}

  static async open(cluster: Cluster): Promise<RecordedUsers> {
    const { id } = await made<{ readonly id: string }>(cluster, '/user_management/users', { email: EMAIL, first_name: 'Bench' });
    const { EVENTSTORE_URL, MONGODB_URL, INSTALLATION } = readSettings(EngineSettings, cluster.settings);
    const masterKeys = [cluster.settings['MASTER_KEYS']!];
    const storage = await MongodbStorage.connect({ url: MONGODB_URL!, database: INSTALLATION, log });
    const stored = await EventstoredbEventStore.connect({ url: EVENTSTORE_URL!, installation: INSTALLATION, log });
    const keys = await MongodbKeyStore.open(storage, masterKeys, new SystemClock());
    const client = await MongoClient.connect(MONGODB_URL!);
    const template = await templateOf(sealing(stored, keys), id);
    return new RecordedUsers(storage, client, stored, keys, MasterKeys.of(masterKeys), template);
  }

  /** `caughtUp`: resolves when nobody is behind the log. */
  async record(users: number, caughtUp: () => Promise<void>): Promise<void> {
    const events = sealing(this.stored, this.keys);
    for (let from = 0; from < users; from += TOGETHER) {
      const some = Array.from({ length: Math.min(TOGETHER, users - from) }, () => this.next());
      await this.storeKeys(some.map(([own]) => `person.${own!.stream}` as const));
      const left = some.flat();
      const appendLeft = async (): Promise<void> => {
        for (let next = left.pop(); next !== undefined; next = left.pop()) {
          const { stream, events: recorded } = next;
          await patiently(() => events.append(stream, 0, recorded));
        }
      };
      await Promise.all(Array.from({ length: APPENDING }, appendLeft));
      await caughtUp();
    }
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.stored.close();
    await this.storage.close();
  }

  private next(): readonly { readonly stream: string; readonly events: readonly NewEvent[] }[] {
    const { commandId, streams } = this.template;
    const at = Date.now();
    const own = newCommandId(at).slice(0, -4);
    return streams.map(({ stream, text }) => ({
      // A claim is called after a keyed hash, of which nobody here knows more than its length.
      stream: stream.includes(commandId)
        ? stream.replace(commandId, own)
        : stream.replace(/[^-]+$/, (name) => randomBytes(name.length).toString('hex').slice(0, name.length)),
      events: eventsIn(text.replaceAll(commandId, own).replaceAll(EMAIL, `bench-${own.toLowerCase()}@gatehouse.test`), at),
    }));
  }

  private async storeKeys(purposes: readonly `person.${string}`[]): Promise<void> {
    const keys = purposes.map((purpose) => this.masters.wrap(purpose, randomBytes(KEY_BYTES)));
    await this.client
      .db(this.storage.name)
      .collection<{ _id: string }>('keys')
      .insertMany(
        keys.map(({ purpose, ...key }) => ({ _id: purpose, ...key })),
        { ordered: false },
      );
    await patiently(() => this.keys.findMany(purposes));
  }
}

function sealing(events: EventStore, keys: MongodbKeyStore): EventStore {
  return new SealingEventStore(events, keys, markedFieldsOf(WITH_SECRETS));
}

async function templateOf(events: EventStore, user: string): Promise<Template> {
  const records = await history(events);
  const created = records.find(({ type, stream }) => type === 'user.created' && stream.endsWith(user));
  if (created === undefined) throw new Error('The cluster recorded no user.created.');
  const { commandId } = created.meta;
  const recorded = records.filter(({ meta }) => meta.commandId === commandId);
  // The user's own stream first: its key is called after it.
  const streams = [created.stream, ...new Set(recorded.map(({ stream }) => stream).filter((stream) => stream !== created.stream))];
  return {
    commandId: commandId.slice(0, -4),
    streams: streams.map((stream) => ({ stream, text: JSON.stringify(recorded.filter((record) => record.stream === stream).map(newEventOf)) })),
  };
}

/** As if they were decided on now: followers tell by that how far they are behind. */
function eventsIn(text: string, at: number): readonly NewEvent[] {
  return (JSON.parse(text) as readonly NewEvent[]).map((event) => ({ ...event, meta: { ...event.meta, at } }));
}

function newEventOf({ id, type, shape, data, subject, public: announced, sealed, meta }: RecordedEvent): NewEvent {
  return { id, type, shape, data, subject, public: announced, sealed, meta };
}

async function history(events: EventStore): Promise<readonly RecordedEvent[]> {
  const head = await events.head();
  const records: RecordedEvent[] = [];
  for await (const batch of events.subscribe(START, new AbortController().signal)) {
    records.push(...batch);
    if (records.some(({ position }) => position >= head)) break;
  }
  return records;
}
