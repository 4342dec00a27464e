import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { metaOf } from '#libs/event-sourcing/src/deciding/records';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type NewEvent, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { ViewFold } from '#libs/event-sourcing/src/views/view-fold';
import { SystemClock } from '#libs/platform/src/clock';
import type { AuthorizationSettings } from '#libs/platform/src/config/settings';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { Positions } from '#libs/platform/src/positions';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { AccessIndex } from '../access/access-index.ts';
import { authorization } from '../authorization.module.ts';
import { organizationResourceId } from '../domain/resource-tree.ts';
import { hangings } from '../guards/hangings.ts';
import { ParentRows } from '../repositories/parent-rows.ts';
import { ResourceRows } from '../repositories/resource-rows.ts';
import { ResourceTrees } from '../repositories/resource-trees.ts';
import { DeleteResourcesOfDeletedOrganization, DeleteResourcesUnderDeleted } from './delete-resources.reaction.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const ORGANIZATION = 'org_01J00000000000000000000000';
const [WORKSPACE, PROJECT] = ['authz_resource_01J00000000000000000000001', 'authz_resource_01J00000000000000000000002'] as const;

/** Whoever tells of what died, and whoever else does so at the same time. */
describe('what dies with something deleted is told of once', () => {
  const clock = new SystemClock();
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let access: AccessIndex;
  let trees: ResourceTrees;
  let resources: ResourceRows;
  let readModels: LmdbReadModels;
  let created: readonly RecordedEvent[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ends-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    readModels = new LmdbReadModels(storage);
    const log = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });
    const views = Object.assign(Object.create(ReadYourWrites.prototype) as ReadYourWrites, { waitForHead: () => follow(), waitForViews: async () => {} });
    const settings = { ACCESS_INDEX_MEMORY: 1e9 } as AuthorizationSettings;
    access = new AccessIndex(events, views, settings, clock, log, new LogFollowing(events, clock, log), readModels, new Metrics());
    resources = new ResourceRows(access, views, readModels);
    trees = new ResourceTrees(access, events, clock, log, views, resources);
    await tell('organization', 'organization.created', { id: ORGANIZATION, name: 'Acme' });
    created = [
      await tell('resource_tree', 'resource.created', resource(WORKSPACE, organizationResourceId(ORGANIZATION))),
      await tell('resource_tree', 'resource.created', resource(PROJECT, WORKSPACE)),
    ];
    await follow();
    await access.start();
  });
  afterEach(async () => {
    await access.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const resource = (id: string, parent_resource_id: string) => ({
    ...{ id, organization_id: ORGANIZATION, resource_type_id: 'resource_type_01J00000000000000000000000', resource_type_slug: 'slug' },
    ...{ parent_resource_id, external_id: id, name: 'Thing', description: null },
  });

  async function tell(category: string, type: string, data: object): Promise<RecordedEvent> {
    const stream = streamName(category, ENVIRONMENT, ORGANIZATION);
    const meta = metaOf(systemContext(ENVIRONMENT, clock.now()), clock.now(), ORGANIZATION);
    const event: NewEvent = { id: newUlid(clock.now()), type, shape: 1, data, subject: null, public: [], meta };
    await events.append(stream, (await events.last(stream))?.version ?? 0, [event]);
    return (await events.last(stream))!;
  }

  /** Brings the rows along, up to a position and no further. */
  async function follow(upTo?: Position): Promise<void> {
    const end = upTo ?? (await events.head());
    const records: RecordedEvent[] = [];
    const reading = new AbortController();
    for await (const batch of events.subscribe(START, reading.signal)) {
      records.push(...batch);
      if (batch.at(-1)!.position >= end) break;
    }
    reading.abort();
    const shown = records.filter(({ position }) => position <= end);
    for (const view of authorization.views) await new ViewFold(view as never, readModels.table(tableOf(view as never))).apply(shown);
  }

  /** As one replica has it. `afterPage`: what happens once it has seen what is left. */
  function reactions(afterPage = async (): Promise<void> => {}) {
    const page: ResourceRows['table']['page'] = async (...given) => {
      const found = await resources.table.page(...given);
      await afterPage();
      return found;
    };
    const positions: Positions = { reached: (position) => follow(position) };
    const needs = [trees, { table: { page } } as ResourceRows, positions, clock] as const;
    const [withOrganization, underDeleted]: readonly Reaction[] = [
      new DeleteResourcesOfDeletedOrganization(...needs),
      new DeleteResourcesUnderDeleted(...needs),
    ];
    return { withOrganization: withOrganization!, underDeleted: underDeleted! };
  }

  function once(work: () => Promise<unknown>): () => Promise<void> {
    let isDone = false;
    return async () => {
      if (isDone) return;
      isDone = true;
      await work();
    };
  }

  const deleted = () => tell('organization', 'organization.deleted', { id: ORGANIZATION });
  async function ended(): Promise<readonly string[]> {
    const records = await events.read(streamName('resource_tree', ENVIRONMENT, ORGANIZATION));
    return records.filter(({ type }) => type === 'resource.deleted').map(({ data }) => (data as { readonly id: string }).id);
  }
  /** The beginning of a resource, as it comes by the reaction that takes back what may not hang. */
  function undo(event: RecordedEvent): Promise<unknown> {
    const repository = null as never;
    const [ofResources] = hangings({ parents: new ParentRows(readModels), repository, trees, clock }) as [ReturnType<typeof hangings>[number]];
    return ofResources.undo(event);
  }

  it('where another replica takes over while the first has only looked', async () => {
    const event = await deleted();
    await reactions(once(() => reactions().withOrganization.react(event))).withOrganization.react(event);
    expect(await ended()).toEqual([WORKSPACE, PROJECT]);
  });

  it('where it is told of below while the rows do not show yet that it was told of with its organization', async () => {
    await deleted();
    const [first] = [await tell('resource_tree', 'resource.deleted', { id: WORKSPACE }), await tell('resource_tree', 'resource.deleted', { id: PROJECT })];
    await reactions().underDeleted.react(first);
    expect(await ended()).toEqual([WORKSPACE, PROJECT]);
  });

  it('where one of them is deleted meanwhile', async () => {
    const event = await deleted();
    await reactions(once(() => tell('resource_tree', 'resource.deleted', { id: PROJECT }))).withOrganization.react(event);
    expect(await ended()).toEqual([PROJECT, WORKSPACE]);
  });

  it('where all of them are deleted meanwhile', async () => {
    const event = await deleted();
    const all = async () => {
      for (const id of [PROJECT, WORKSPACE]) await tell('resource_tree', 'resource.deleted', { id });
    };
    await reactions(once(all)).withOrganization.react(event);
    expect(await ended()).toEqual([PROJECT, WORKSPACE]);
  });

  it('where others write to the same tree meanwhile', async () => {
    const event = await tell('resource_tree', 'resource.deleted', { id: WORKSPACE });
    await reactions(once(() => tell('resource_tree', 'resource.updated', { id: organizationResourceId('other'), name: 'Other' }))).underDeleted.react(event);
    expect(await ended()).toEqual([WORKSPACE, PROJECT]);
  });

  it('where the beginning of one of them comes by after its organization is gone', async () => {
    const event = await deleted();
    await reactions(once(() => undo(created[1]!))).withOrganization.react(event);
    for (const beginning of [...created, ...created]) await undo(beginning);
    expect(await ended()).toEqual([PROJECT, WORKSPACE]);
  });

  it('where its organization is gone and nothing else tells of it', async () => {
    await deleted();
    for (const beginning of [...created, ...created]) await undo(beginning);
    expect(await ended()).toEqual([WORKSPACE, PROJECT]);
  });
});
