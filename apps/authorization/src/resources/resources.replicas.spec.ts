import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CreateAuthorizationResource,
  DeleteAuthorizationResource,
  DeleteAuthorizationResourceByExternalId,
  UpdateAuthorizationResource,
} from '#libs/contracts/src/authorization-resources/operations';
import { metaOf } from '#libs/event-sourcing/src/deciding/records';
import { Deletions, deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { EventStore, NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf, type View } from '#libs/event-sourcing/src/views/view';
import { ViewFold } from '#libs/event-sourcing/src/views/view-fold';
import { SystemClock } from '#libs/platform/src/clock';
import type { AuthorizationSettings } from '#libs/platform/src/config/settings';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { FaultyRows } from '#libs/testing/src/faulty-rows';
import { AccessIndex } from '../access/access-index.ts';
import { authorization } from '../authorization.module.ts';
import { organizationResourceId } from '../domain/resource-tree.ts';
import { Reopening } from '../guards/reopening.ts';
import { ResourceRows } from '../repositories/resource-rows.ts';
import { ResourceTrees } from '../repositories/resource-trees.ts';
import { resourcesView } from '../views/resources.view.ts';
import { Resources } from './resources.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const ORGANIZATION = 'org_01J00000000000000000000000';

const deletions = deletionsView('authorization', ['resource.deleted']);

describe('resources in several processes', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let readModels: LmdbReadModels;
  let rows: FaultyRows;
  let indexes: AccessIndex[];
  let replicas: Resources[];
  /** Does something before each append of the first replica. */
  let beforeAppend: () => Promise<void>;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'resources-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    readModels = new LmdbReadModels(storage);
    rows = new FaultyRows(readModels);
    beforeAppend = async () => {};
    await record('organization', ORGANIZATION, 'organization.created', { id: ORGANIZATION, name: 'Acme' }, ORGANIZATION);
    await record('authorization_model', ENVIRONMENT, 'resource_type.created', folder);
    indexes = [];
    replicas = [0, 1].map((number) => replica(number === 0 ? slowed() : events));
    await Promise.all(indexes.map((index) => index.start()));
  });
  afterEach(async () => {
    await Promise.all(indexes.map((index) => index.stop()));
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const top = { id: null, slug: 'organization' };
  const folder = {
    id: 'resource_type_01J00000000000000000000000',
    slug: 'folder',
    name: 'Folder',
    description: null,
    parents: [top, { id: 'resource_type_01J00000000000000000000000', slug: 'folder' }],
  };

  function replica(log: EventStore): Resources {
    const clock = new SystemClock();
    const lines = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });
    const metrics = new Metrics();
    const settings = { ACCESS_INDEX_MEMORY: 1e9, RESOURCES_PER_TYPE: 1e9, MULTIPLE_ROLES: true } as AuthorizationSettings;
    // Resources have their rows with their events; what else follows the log is brought along where it is asked for.
    const views = Object.assign(Object.create(ReadYourWrites.prototype) as ReadYourWrites, { waitForHead: () => bringAlong(), waitForViews: async () => {} });
    const access = new AccessIndex(log, views, settings, clock, lines, new LogFollowing(log, clock, lines), rows, metrics);
    indexes.push(access);
    const resources = new ResourceRows(access, views, rows);
    const trees = new ResourceTrees(access, log, clock, lines, views, resources);
    // What intents close are the resources of these trees alone.
    const none = null as never;
    const reopening = new Reopening(none, none, trees, clock);
    return new Resources(access, trees, resources, reopening, log, settings, clock, new Deletions(rows, deletions), metrics);
  }

  function slowed(): EventStore {
    const append: EventStore['append'] = async (...given) => {
      await beforeAppend();
      return events.append(...given);
    };
    return new Proxy(events, {
      get: (target, name) => {
        if (name === 'append') return append;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }

  async function record(category: string, key: string, type: string, data: unknown, organization?: string): Promise<void> {
    const stream = streamName(category, ENVIRONMENT, key);
    const context = systemContext(ENVIRONMENT, Date.now());
    const event: NewEvent = { id: newUlid(Date.now()), type, shape: 1, data, subject: null, public: [], meta: metaOf(context, Date.now(), organization) };
    const { position, version } = await events.append(stream, (await events.last(stream))?.version ?? 0, [event]);
    if (category !== 'organization') return;
    const row = resourcesView.evolve(null, { ...event, stream, version, position }, '');
    const text = row === null ? null : JSON.stringify(row);
    const id = organizationResourceId(key);
    await readModels.table(tableOf(resourcesView)).write([{ environment: ENVIRONMENT, id, position, revision: version, text }]);
  }

  async function bringAlong(): Promise<void> {
    const recorded = await events.read(streamName('resource_tree', ENVIRONMENT, ORGANIZATION));
    for (const event of recorded) {
      await new ViewFold(resourcesView, readModels.table(tableOf(resourcesView))).apply([event]);
      await new ViewFold(deletions, readModels.table(tableOf(deletions))).apply([event]);
    }
  }

  function operation<O extends object>(type: new () => O, fields: Partial<O>, context: Partial<RequestContext> = {}): O {
    const actor = { id: 'key', source: 'api', name: null } as const;
    return Object.assign(new type(), { context: { ...systemContext(ENVIRONMENT, Date.now()), actor, ...context } }, fields);
  }
  const creation = (external_id: string, parent_resource_id?: string) =>
    operation(CreateAuthorizationResource, { organization_id: ORGANIZATION, resource_type_slug: 'folder', external_id, name: 'Name', parent_resource_id });
  /** The same command, handed on to another replica. */
  const again = <O extends { readonly context: RequestContext }>(command: O): O => ({ ...command, context: { ...command.context, receipt: {}, attempt: 2 } });
  const outcomes = async (work: readonly Promise<unknown>[]) =>
    (await Promise.allSettled(work)).map((result) => (result.status === 'fulfilled' ? 'done' : (result.reason as { code: string }).code));
  const recorded = async () => (await events.read(streamName('resource_tree', ENVIRONMENT, ORGANIZATION))).map(({ type }) => type);

  it('are created wherever they are asked for, at the same time', async () => {
    const work = Array.from({ length: 20 }, (_, number) => replicas[number % 2]!.create(creation(`folder-${number}`)));
    const ids = (await Promise.all(work)).map(({ id }) => id);
    expect(new Set(ids).size).toBe(20);
    expect(await recorded()).toHaveLength(20);
  });

  it("share an append where they wait for the same tree, and get in nobody else's way", async () => {
    let appends = 0;
    beforeAppend = async () => void appends++;
    const first = await replicas[0]!.create(creation('first'));
    const twin = creation('twin');
    const work = [
      ...Array.from({ length: 50 }, (_, number) => replicas[0]!.create(creation(`folder-${number}`, first.id))),
      replicas[0]!.create(creation('wanted')),
      replicas[0]!.create(twin),
      replicas[0]!.create({ ...twin, context: { ...twin.context, receipt: {} } }),
      replicas[0]!.create(creation('wanted')),
      replicas[0]!.create(creation('under nothing', 'authz_resource_01HZZZZZZZZZZZZZZZZZZZZZZZ')),
      replicas[0]!.update(operation(UpdateAuthorizationResource, { resource_id: first.id, name: 'Renamed' })),
      replicas[0]!.create(creation('after')),
    ];
    const done = await outcomes(work);
    expect(done.slice(0, 53).every((outcome) => outcome === 'done')).toBe(true);
    expect(done.slice(53)).toEqual(['authorization_resource_external_id_conflict', 'entity_not_found', 'done', 'done']);
    expect(await work[52]).toEqual(await work[51]);
    expect(await recorded()).toHaveLength(55);
    expect(appends).toBeLessThan(10);
    expect(await work[0]).toMatchObject({ external_id: 'folder-0', parent_resource_id: first.id });
  });

  it('get an external id once', async () => {
    const done = await outcomes(Array.from({ length: 6 }, (_, number) => replicas[number % 2]!.create(creation('wanted'))));
    expect([...done].sort()).toEqual([...Array.from({ length: 5 }, () => 'authorization_resource_external_id_conflict'), 'done']);
  });

  it('are created once by a command that both are asked for', async () => {
    const command = creation('once');
    const twin = { ...command, context: { ...command.context, receipt: {} } };
    const [one, other] = await Promise.all([replicas[0]!.create(command), replicas[1]!.create(twin)]);
    expect(other).toEqual(one);
    expect(await recorded()).toEqual(['resource.created']);
  });

  it('are not created again by a command whose resource was deleted since', async () => {
    const command = creation('gone');
    const { id } = await replicas[0]!.create(command);
    await replicas[1]!.delete(operation(DeleteAuthorizationResource, { resource_id: id, cascade_delete: false }));
    const others = Array.from({ length: 150 }, (_, number) => replicas[1]!.create(creation(`other-${number}`)));
    await Promise.all(others);
    // On every replica, one that has just read rows of which the deletion left none included, and in a turn with commands that come for the first time.
    const third = replica(events);
    await indexes.at(-1)!.start();
    for (const [number, asked] of [...replicas, third].entries()) {
      const [repeated, first] = [asked.create(again(command)), asked.create(creation(`first-${number}`))];
      expect(await outcomes([repeated, first])).toEqual(['entity_not_found', 'done']);
    }
    expect((await recorded()).filter((type) => type === 'resource.deleted')).toHaveLength(1);
    expect(await recorded()).toHaveLength(156);
  });

  it('are changed once by a command that comes again, and answered as they stand', async () => {
    const { id } = await replicas[0]!.create(creation('undone'));
    const command = operation(UpdateAuthorizationResource, { resource_id: id, name: 'First' });
    await replicas[0]!.update(command);
    await replicas[0]!.update(operation(UpdateAuthorizationResource, { resource_id: id, name: 'Second' }));
    expect(await replicas[1]!.update(again(command))).toMatchObject({ name: 'Second' });
    const old = { ...again(command), context: { ...command.context, receipt: {}, sentAt: performance.now() - 1_001 } };
    expect(await replicas[0]!.update(old)).toMatchObject({ name: 'Second' });
    expect(await recorded()).toEqual(['resource.created', 'resource.updated', 'resource.updated']);
  });

  it('are deleted once by a command that both are asked for', async () => {
    const { id } = await replicas[0]!.create(creation('ended'));
    // The other is asked when the first has not answered for a second.
    const handedOn = { sentAt: performance.now() - 1_001 };
    const command = operation(DeleteAuthorizationResource, { resource_id: id, cascade_delete: false }, handedOn);
    beforeAppend = async () => {
      beforeAppend = async () => {};
      await replicas[1]!.delete({ ...command, context: { ...command.context, receipt: {} } });
      await bringAlong();
    };
    await replicas[0]!.delete(command);
    expect(await recorded()).toEqual(['resource.created', 'resource.closing', 'resource.deleted']);
  });

  it('stay deleted, and the command is done, where it is repeated', async () => {
    const { id, external_id } = await replicas[0]!.create(creation('repeated'));
    const command = operation(DeleteAuthorizationResource, { resource_id: id, cascade_delete: false });
    await replicas[0]!.delete(command);
    const named = { organization_id: ORGANIZATION, resource_type_slug: 'folder', external_id, cascade_delete: false };
    const repeats = [
      replicas[1]!.delete(again(command)),
      replicas[1]!.deleteByExternalId(operation(DeleteAuthorizationResourceByExternalId, named, again(command).context)),
    ];
    expect(await outcomes(repeats)).toEqual(['done', 'done']);
    const other = operation(DeleteAuthorizationResource, { resource_id: id, cascade_delete: false });
    expect(await outcomes([replicas[1]!.delete(other)])).toEqual(['entity_not_found']);
    expect(await recorded()).toEqual(['resource.created', 'resource.closing', 'resource.deleted']);
  });

  it('never come to hang under each other', async () => {
    for (let round = 0; round < 5; round++) {
      const [one, other] = await Promise.all([replicas[0]!.create(creation(`one-${round}`)), replicas[1]!.create(creation(`other-${round}`))]);
      const move = (replica: number, id: string, parent_resource_id: string) =>
        replicas[replica]!.update(operation(UpdateAuthorizationResource, { resource_id: id, parent_resource_id }));
      const done = await outcomes([move(0, one.id, other.id), move(1, other.id, one.id)]);
      expect([...done].sort()).toEqual(['bad_request', 'done']);
    }
  });

  it('keep what each of two has changed', async () => {
    const { id } = await replicas[0]!.create(creation('shared'));
    await Promise.all([
      replicas[0]!.update(operation(UpdateAuthorizationResource, { resource_id: id, name: 'Renamed' })),
      replicas[1]!.update(operation(UpdateAuthorizationResource, { resource_id: id, description: 'Described' })),
    ]);
    const after = await replicas[0]!.update(operation(UpdateAuthorizationResource, { resource_id: id }));
    expect(after).toMatchObject({ name: 'Renamed', description: 'Described' });
  });

  it('keep what is in the log although its row could not be written', async () => {
    const { id } = await replicas[0]!.create(creation('stale'));
    rows.isWritable = false;
    await replicas[0]!.update(operation(UpdateAuthorizationResource, { resource_id: id, name: 'Renamed' }));
    rows.isWritable = true;
    const after = await replicas[1]!.update(operation(UpdateAuthorizationResource, { resource_id: id, description: 'Described' }));
    expect(after).toMatchObject({ name: 'Renamed', description: 'Described' });
  });

  it('are changed once by a command that both are asked for, whatever others do in between', async () => {
    const { id } = await replicas[0]!.create(creation('twice'));
    const command = operation(UpdateAuthorizationResource, { resource_id: id, name: 'First' });
    beforeAppend = async () => {
      beforeAppend = async () => {};
      await replicas[1]!.update(operation(UpdateAuthorizationResource, { resource_id: id, name: 'Before' }));
      await replicas[1]!.update({ ...command, context: { ...command.context, receipt: {} } });
      await replicas[1]!.update(operation(UpdateAuthorizationResource, { resource_id: id, name: 'Second' }));
    };
    expect(await replicas[0]!.update(command)).toMatchObject({ name: 'Second' });
    expect(await recorded()).toEqual(['resource.created', 'resource.updated', 'resource.updated', 'resource.updated']);
  });

  it('are created by a replica that has just read rows of which the last events left none', async () => {
    const { id } = await replicas[0]!.create(creation('last'));
    await replicas[0]!.delete(operation(DeleteAuthorizationResource, { resource_id: id, cascade_delete: false }));
    const head = await events.head();
    for (const view of authorization.views) await readModels.table(tableOf(view as View<unknown>)).write([], head);
    const third = replica(events);
    await indexes.at(-1)!.start();
    await third.create(creation('next'));
    expect(await recorded()).toEqual(['resource.created', 'resource.closing', 'resource.deleted', 'resource.created']);
  });

  it('are refused in the end where others are always faster', async () => {
    let number = 0;
    beforeAppend = async () => void (await replicas[1]!.create(creation(`faster-${number++}`)));
    expect(await outcomes([replicas[0]!.create(creation('slow'))])).toEqual(['lock_timeout']);
    expect(number).toBe(10);
    expect(await recorded()).toHaveLength(10);
  });

  it('are not decided by a type that changes meanwhile', async () => {
    beforeAppend = async () => {
      beforeAppend = async () => {};
      await replicas[1]!.create(creation('first'));
      await record('authorization_model', ENVIRONMENT, 'resource_type.updated', { id: folder.id, parents: [] });
    };
    expect(await outcomes([replicas[0]!.create(creation('second'))])).toEqual(['resource_type_update_in_progress']);
  });

  it('are refused again by a command that comes again, where what it did was taken back', async () => {
    const [above, below] = [await replicas[0]!.create(creation('above')), await replicas[0]!.create(creation('below'))];
    const move = operation(UpdateAuthorizationResource, { resource_id: below.id, parent_resource_id: above.id });
    const late = creation('late');
    const works: readonly (readonly [() => Promise<unknown>, () => Promise<unknown>])[] = [
      [() => replicas[0]!.update(move), () => replicas[1]!.update(again(move))],
      [() => replicas[0]!.create(late), () => replicas[1]!.create(again(late))],
    ];
    for (const [number, [first, repeat]] of works.entries()) {
      const intent = { id: folder.id, intent: `intent-${number}` };
      beforeAppend = async () => {
        beforeAppend = async () => {};
        await record('authorization_model', ENVIRONMENT, 'resource_type.closing', intent);
      };
      expect(await outcomes([first()])).toEqual(['resource_type_update_in_progress']);
      await record('authorization_model', ENVIRONMENT, 'resource_type.reopened', intent);
      expect(await outcomes([repeat()])).toEqual(['resource_type_update_in_progress']);
    }
    expect(await recorded()).toEqual([
      ...['resource.created', 'resource.created', 'resource.moved', 'resource.moved'],
      ...['resource.created', 'resource.deleted'],
    ]);
  });

  it('are ended at once where their organization was deleted just before', async () => {
    await replicas[0]!.create(creation('warm'));
    beforeAppend = async () => {
      beforeAppend = async () => {};
      await record('organization', ORGANIZATION, 'organization.deleted', { id: ORGANIZATION }, ORGANIZATION);
    };
    expect(await outcomes([replicas[0]!.create(creation('late'))])).toEqual(['entity_not_found']);
    expect(await recorded()).toEqual(['resource.created', 'resource.created', 'resource.deleted']);
  });

  it('answer unavailable past the deadline, and nothing happened', async () => {
    const late = creation('late');
    expect(await outcomes([replicas[0]!.create({ ...late, context: { ...late.context, deadline: Date.now() - 1 } })])).toEqual(['service_unavailable']);
    expect(await recorded()).toEqual([]);
  });
});
