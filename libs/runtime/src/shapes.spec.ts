import { AbsentBlobs } from '#libs/blobs/src/absent.blobs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventShapes } from '#libs/contracts/src/shapes';
import type { Decider, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { FollowerStates } from '#libs/event-sourcing/src/following/follower-states';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { publicEventsOf } from '#libs/event-sourcing/src/following/public-events';
import type { NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { WholeLog } from '#libs/event-sourcing/src/log/log-damage';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { tableOf, type View } from '#libs/event-sourcing/src/views/view';
import { AbsentMessageBus } from '#libs/messaging/src/absent.message-bus';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { OnlyReplica } from '#libs/platform/src/replicas';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { until } from '#libs/testing/src/until';
import { runtimeOver, type Runtime } from './runtime.ts';
import type { DeclaredDecider, Service } from './service.ts';

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const clock = new SystemClock();

type Named = Fact<'pen.named', { readonly name: { readonly full: string } }>;

/** First a text, then an object. */
const shapes = {
  upcasts: { 'pen.named': [({ data, subject }) => ({ data: { name: { full: (data as { name: string }).name } }, subject })] },
} satisfies EventShapes;

const penDecider: Decider<string | null, Named> = {
  ...shapes,
  category: 'pen',
  foldVersion: 1,
  initial: null,
  sealed: { 'pen.named': null },
  evolve: (_state, { data }) => data.name.full,
  toPublicEvent: () => null,
};

/** Of another service, which has no decider of pens. */
const pensElsewhere: View<unknown> = {
  name: 'pens',
  version: 1,
  handles: ['pen.named'],
  indexes: [],
  idsOf: ({ meta }) => [meta.commandId],
  evolve: (_row, { data }) => data,
};

describe('processes over the same engines', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let keys: LmdbKeyStore;
  let running: Runtime[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'shapes-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    keys = await LmdbKeyStore.open(storage.keys, []);
    running = [];
  });
  afterEach(async () => {
    for (const { lifecycle, projector } of running) {
      await lifecycle.stop();
      await projector.stop();
    }
    await storage.close();
    await rm(directory, { recursive: true });
  });

  async function start(
    owner: Service['owner'],
    known: readonly EventShapes[],
    { deciders = [], views = [] }: Partial<Pick<Service, 'deciders' | 'views'>>,
  ): Promise<Runtime> {
    const log = new PinoLog({ level: 'silent', readable: false });
    const runtime = await runtimeOver({
      engines: {
        events,
        keys,
        blobs: new AbsentBlobs(),
        damage: new WholeLog(),
        readModels: new LmdbReadModels(storage),
        shortLived: new LmdbShortLived(storage, clock),
        bus: new AbsentMessageBus('nobody'),
        directory: null,
        log: null,
        replicas: new OnlyReplica(),
        close: async () => {},
      },
      services: [{ owner, module: { module: class {} }, deciders, isForwarded: false, views }],
      settings: { of: <Settings extends object>() => ({ SWEEP_INTERVAL: 60_000 }) as Settings },
      clock,
      log,
      also: [],
      shapes: known,
    });
    running.push(runtime);
    await runtime.lifecycle.start();
    return runtime;
  }

  async function named(name: unknown, shape: number, changes: Partial<NewEvent> = {}): Promise<string> {
    const id = newUlid(clock.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'spec', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() };
    const event: NewEvent = { id, type: 'pen.named', shape, data: { name }, subject: null, public: [], meta, ...changes };
    await events.append(`pen-${ENVIRONMENT}-${id}`, 0, [event]);
    return id;
  }

  const row = async (id: string): Promise<unknown> => {
    const found = await new LmdbReadModels(storage).table(tableOf(pensElsewhere)).get(ENVIRONMENT, id);
    return found === null ? null : JSON.parse(found.text);
  };
  const elsewhere = { views: [pensElsewhere] };

  it('read what services record that they do not run in the last shape of it, and leave what they do not know to those that do', async () => {
    const early = await start('notifications', [], elsewhere);
    const text = await named('Ada', 1);
    await until(async () => (await row(text)) !== null);
    expect(await row(text)).toEqual({ name: 'Ada' });
    await start('identity', [shapes], { deciders: [penDecider] });
    const young = await start('notifications', [shapes], elsewhere);
    const object = await named({ full: 'Grace' }, 2);
    const again = await named('Ada', 1);
    await until(async () => (await row(again)) !== null);
    expect([await row(object), await row(again)]).toEqual([{ name: { full: 'Grace' } }, { name: { full: 'Ada' } }]);
    expect([early.projector.held().length, young.projector.held().length]).toEqual([0, 1]);
    const [told] = await new FollowerStates(new LmdbReadModels(storage), clock).read(['view.pens-v1']);
    expect(told!.halt).toBeNull();
  });

  it.each([
    ['of a type that the view handles', 'pen.named'],
    ['of none', 'pen.sold'],
  ])('leave what only a later release can announce to it, and whatever is behind: %s', async (_, type) => {
    const told: View<unknown> = {
      ...pensElsewhere,
      name: 'told',
      showsAnnounced: true,
      idsOf: (event) => publicEventsOf(event).map(({ id }) => id),
    };
    const early = await start('notifications', [], { views: [told] });
    expect(early.projector.held()).toHaveLength(1);
    await named('Ada', 1);
    await early.projector.caughtUpWith(await events.head());
    expect(early.projector.held()).toHaveLength(1);
    await named('Ada', 1, { type, public: [{ id: 'event_1', name: 'pen.sold' }] });
    await until(() => early.projector.held().length === 0);
    const [state] = await new FollowerStates(new LmdbReadModels(storage), clock).read(['view.told-v1']);
    expect(state!.halt).toBeNull();
    expect(early.projector.leavings()).toEqual([{ view: 'told', isLeft: true }]);
  });

  it('do not start where a decider knows shapes that the others would not', async () => {
    const deciders = [penDecider as unknown as DeclaredDecider];
    await expect(start('identity', [], { deciders })).rejects.toThrow('The shapes of pen.named are not among SHAPES');
  });

  it('do not start where a decider, or a view of what it seals, does not say whose the personal fields are', async () => {
    const users = (fields: readonly string[]): DeclaredDecider => ({ category: 'user', sealed: { 'user.deleted': [{ fields }] } });
    const all = ['email', 'first_name', 'last_name', 'name', 'profile_picture_url', 'external_id', 'metadata'];
    await expect(start('identity', [], { deciders: [users(all.slice(1))] })).rejects.toThrow(
      'The decider of user does not declare whose email of user.deleted are, which EventUser marks as personal.',
    );
    const views = [{ ...pensElsewhere, handles: ['user.deleted'] }];
    await expect(start('identity', [], { deciders: [users(all)], views })).rejects.toThrow('does not declare what of its rows is personal');
    const declared: View<unknown> = { ...views[0]!, personal: null };
    await start('identity', [], { deciders: [users(all)], views: [declared] });
  });
});
