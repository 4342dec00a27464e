import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { type NewEvent, type RecordedEvent, START } from '#libs/event-sourcing/src/log/event-store';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { newCommandId } from '#libs/platform/src/ids';
import { Suite } from './suite.ts';

/** Appends in flight: enough to share each flush, few enough to stay small. */
const TOGETHER = 2_000;
/** One in so many organizations has a domain: the index does not care how many others there are, and the verification of each stays pending for ever. */
const DOMAIN_EVERY = 500;
const PLAIN = { name: 'Template Plain' };
const WITH_DOMAIN = { name: 'Template Domain', domain_data: [{ domain: 'template.test', state: 'pending' }] };
const FIRST = [
  'Amber',
  'Birch',
  'Cedar',
  'Delta',
  'Ember',
  'Flint',
  'Grove',
  'Haven',
  'Indigo',
  'Juniper',
  'Kestrel',
  'Lumen',
  'Maple',
  'North',
  'Onyx',
  'Pioneer',
];
const SECOND = [
  'Analytics',
  'Bakery',
  'Clinic',
  'Dynamics',
  'Engines',
  'Foods',
  'Galleries',
  'Harbor',
  'Insurance',
  'Journals',
  'Kitchens',
  'Logistics',
  'Mills',
  'Networks',
];

export interface Seeded {
  readonly organizationPaths: readonly string[];
  readonly domainPaths: readonly string[];
  readonly searchPaths: readonly string[];
}

/** The events of one organization that the suite itself recorded, as text. */
interface Template {
  readonly text: string;
  readonly stream: string;
  /** Whatever a create makes derives its id from these characters, so that replacing them everywhere makes another organization. */
  readonly commandId: string;
}

/** Fills an empty data directory with organizations, straight into the log; the views are for a rebuild to fill. */
export async function seed(directory: string, organizations: number): Promise<Seeded> {
  const suite = await Suite.start(directory);
  await suite.post('/organizations', PLAIN);
  await suite.post('/organizations', WITH_DOMAIN);
  await suite.stop();
  const storage = await LmdbStorage.open({ directory });
  try {
    const store = new LmdbEventStore(storage);
    const recorded = await history(store);
    return await append(store, template(recorded, PLAIN.name), template(recorded, WITH_DOMAIN.name), organizations);
  } finally {
    await storage.close();
  }
}

/** Records of the whole log. */
export async function countEvents(directory: string): Promise<number> {
  const storage = await LmdbStorage.open({ directory });
  try {
    return Number(await new LmdbEventStore(storage).head());
  } finally {
    await storage.close();
  }
}

async function history(store: LmdbEventStore): Promise<readonly RecordedEvent[]> {
  const head = await store.head();
  const records: RecordedEvent[] = [];
  for await (const batch of store.subscribe(START, new AbortController().signal)) {
    records.push(...batch);
    if (records.at(-1)!.position === head) break;
  }
  return records;
}

function template(recorded: readonly RecordedEvent[], name: string): Template {
  const created = recorded.find(({ type, data }) => type === 'organization.created' && (data as { name: string }).name === name);
  if (!created) throw new Error(`The suite recorded no organization.created for ${name}.`);
  const { stream, meta } = created;
  const events = recorded
    .filter((record) => record.stream === stream)
    .map(({ id, type, shape, data, subject, public: announced, sealed, meta: m }): NewEvent => ({
      id,
      type,
      shape,
      data,
      subject,
      public: announced,
      sealed,
      // The origin is sealed to this one record: in others it would not open, and the trail would try each of them for seconds.
      meta: { ...m, origin: undefined },
    }));
  return { text: JSON.stringify(events), stream, commandId: meta.commandId.slice(0, -4) };
}

async function append(store: LmdbEventStore, plain: Template, withDomain: Template, organizations: number): Promise<Seeded> {
  const seeded = { organizationPaths: [] as string[], domainPaths: [] as string[], searchPaths: [] as string[] };
  const sampleEvery = Math.max(1, Math.floor(organizations / 100_000));
  let pending: Promise<unknown>[] = [];
  for (let index = 0; index < organizations; index++) {
    const hasDomain = index % DOMAIN_EVERY === 0;
    const { text, stream, commandId } = hasDomain ? withDomain : plain;
    const own = newCommandId(Date.now()).slice(0, -4);
    const [first, second] = [FIRST[index % FIRST.length]!, SECOND[index % SECOND.length]!];
    const events = text
      .replaceAll(commandId, own)
      .replaceAll(hasDomain ? WITH_DOMAIN.name : PLAIN.name, `${first} ${second} ${index}`)
      .replaceAll('template.test', `bench-${index}.test`);
    const ownStream = stream.replace(commandId, own);
    pending.push(store.append(ownStream, 0, JSON.parse(events) as readonly NewEvent[]));
    if (index % sampleEvery === 0) seeded.organizationPaths.push(`/organizations/${ownStream.slice(ownStream.indexOf('org_'))}`);
    if (hasDomain) seeded.domainPaths.push(`/organizations?domains=bench-${index}.test`);
    // A word that many have, the beginning of a number that some have, and a number that one has.
    if (hasDomain) seeded.searchPaths.push(...[first, `${index}`.slice(0, 4), `${index}`].map((word) => `/organizations?search=${word}`));
    if (pending.length < TOGETHER) continue;
    await Promise.all(pending);
    pending = [];
  }
  await Promise.all(pending);
  return seeded;
}
