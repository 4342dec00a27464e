import type { DynamicModule } from '@nestjs/common';
import type { Gauge } from 'prom-client';
import { Blobs } from '#libs/blobs/src/blobs';
import { WITH_SECRETS } from '#libs/contracts/src/sealed';
import { type EventShapes, SHAPES } from '#libs/contracts/src/shapes';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { followErasures } from '#libs/event-sourcing/src/erasure/eraser';
import { CurrentStates } from '#libs/event-sourcing/src/following/current-states';
import { FollowerStates } from '#libs/event-sourcing/src/following/follower-states';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { Forwarders } from '#libs/event-sourcing/src/following/forwarder';
import { JointWrites } from '#libs/event-sourcing/src/following/joint-writes';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { Reactions } from '#libs/event-sourcing/src/following/reaction';
import { EventStore, START } from '#libs/event-sourcing/src/log/event-store';
import { type Damage, DAMAGE_CAUSES } from '#libs/event-sourcing/src/log/log-damage';
import { MeasuredEventStore } from '#libs/event-sourcing/src/log/measured.event-store';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { requireKnown, shapesOf, UpcastingEventStore } from '#libs/event-sourcing/src/log/upcasts';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { requireDeclared, requirePersonalDeclared } from '#libs/event-sourcing/src/sealing/declared-sealing';
import { markedFieldsOf } from '#libs/event-sourcing/src/sealing/marked-fields';
import { SealingEventStore } from '#libs/event-sourcing/src/sealing/sealing.event-store';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { LogPositions } from '#libs/event-sourcing/src/views/log.positions';
import { Projector, ProjectorMetrics } from '#libs/event-sourcing/src/views/projector';
import { differences, type Difference } from '#libs/event-sourcing/src/views/rebuild';
import { GuardedReadModels } from '#libs/event-sourcing/src/views/guarded.read-models';
import { StoppedViews } from '#libs/event-sourcing/src/views/stopped-views';
import type { PrimaryView, View } from '#libs/event-sourcing/src/views/view';
import { DirectOperationTransport } from '#libs/messaging/src/direct.operation-transport';
import { Handlers, LocalServices } from '#libs/messaging/src/handlers';
import { MessageBus } from '#libs/messaging/src/message-bus';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { RemoteOperations, RoutedOperationTransport } from '#libs/messaging/src/routed.operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { PlatformSettings } from '#libs/platform/src/config/settings';
import { newUlid } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { OperationsSurface } from '#libs/platform/src/operations/operations-surface';
import { patiently } from '#libs/platform/src/patience';
import { Positions } from '#libs/platform/src/positions';
import { Readiness } from '#libs/platform/src/readiness';
import { Replicas } from '#libs/platform/src/replicas';
import { StartRefused } from '#libs/platform/src/start-refused';
import { Leases } from '#libs/read-models/src/leases';
import { ListedReadModels } from '#libs/read-models/src/listed.read-models';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { Stamps } from '#libs/read-models/src/stamps';
import { Sweepers } from '#libs/read-models/src/sweepers';
import type { Engines } from './engines.ts';
import { provided, RuntimeModule, type Provided } from './runtime.module.ts';
import type { Service, SettingsOfProcess } from './service.ts';

interface Needs {
  readonly engines: Engines;
  readonly services: readonly Service[];
  readonly settings: SettingsOfProcess;
  readonly clock: Clock;
  readonly log: Log;
  /** What the apps themselves want to have injected: their settings. */
  readonly also: readonly Provided[];
  /** Of the events of all services, here or elsewhere, instead of those that this release has. */
  readonly shapes?: readonly EventShapes[];
}

/** Everything that stands between the engines and the services, whichever engines these are. */
export interface Runtime {
  /** `remote` calls the owners that live in other processes; null where there are none. */
  readonly module: (remote: RemoteOperations | null) => DynamicModule;
  readonly lifecycle: Lifecycle;
  readonly readiness: Readiness;
  readonly surface: OperationsSurface;
  readonly metrics: Metrics;
  readonly projector: Projector;
  /** All tables that this process has opened, in that order. */
  readonly tables: () => readonly Table<never>[];
  /** The rows that are not what the log says. */
  readonly differences: () => AsyncIterable<Difference>;
}

export async function runtimeOver({ engines, services, settings, clock, log, also, shapes = SHAPES }: Needs): Promise<Runtime> {
  const { shortLived, keys, bus } = engines;
  const readModels = new ListedReadModels(engines.readModels);
  const lifecycle = new Lifecycle();
  const readiness = new Readiness();
  const metrics = new Metrics();
  const surface = new OperationsSurface(readiness, metrics, engines.damage);
  metrics.gauge({
    name: 'log_damages',
    help: 'Places of the log that are damaged, as this process knows: calls on their streams are refused.',
    labels: ['cause'],
    collect: (gauge) => setDamages(gauge, engines.damage.list()),
  });
  engines.directory?.measure(metrics);

  const primaries = services.flatMap(viewsOf).filter(isPrimary);
  const known = shapesOf(shapes);
  requireKnown(
    services.flatMap(({ deciders }) => deciders),
    known,
  );
  const deciders = services.flatMap((service) => service.deciders);
  requireDeclared(deciders);
  requirePersonalDeclared(services.flatMap(viewsOf), deciders);
  const events = logOf(engines, known, metrics);
  const stopped = new StoppedViews();
  // A process without services decides nothing, so it starts while the log is away. Data without keys is left as it is: no table has been opened yet, nor made.
  const naming = services.length > 0 ? new Naming(await patiently(() => namingKey(events, keys), { log, what: 'The naming key' })) : null;
  const leases = new Leases(shortLived, engines.replicas.id, log, metrics);
  const states = new FollowerStates(readModels, clock);
  // Of each there is one for all that run here: the log is read once, and what is stored of that goes to the store together.
  const [following, writes] = [new LogFollowing(events, clock, log), new JointWrites(readModels)];
  const followers = new LeasedFollowers({ following, writes, leases, states, lifecycle, metrics });
  const needs = { events, following, writes, readModels, leases, states, stopped, readiness, metrics: new ProjectorMetrics(metrics) };
  const projector = new Projector(services.map(({ owner }) => owner).join(' and '), services.flatMap(viewsOf), needs);
  const elsewhere = services.flatMap(({ awaits = [] }) => awaits);
  const awaited = new ReadYourWrites({ views: services.flatMap(viewsOf), elsewhere, readModels, projector, following, metrics });
  const repository = naming === null ? null : new LogRepository(events, readModels, naming, clock, log, stopped, awaited);
  const current = repository === null ? null : new CurrentStates(repository, following);
  for (const view of primaries) repository?.registerPrimaryView(view);
  if (services.length > 0) await followErasures(followers, { events, keys, readModels, clock, log });

  const sweepers = new Sweepers({
    clock,
    log,
    metrics,
    leases: shortLived,
    intervalMs: settings.of(PlatformSettings).SWEEP_INTERVAL,
    holder: newUlid(clock.now()),
  });
  sweepers.add('short_lived', (now, limit) => shortLived.sweep(now, limit));
  const stamps = new Stamps({ readModels, clock, log, metrics });
  for (const part of [projector, stamps, sweepers]) lifecycle.add(part);
  if (current !== null) lifecycle.add(current);

  const module = (remote: RemoteOperations | null): DynamicModule =>
    RuntimeModule.with(
      [
        provided(Clock, clock),
        provided(Log, log),
        provided(Metrics, metrics),
        provided(Readiness, readiness),
        provided(OperationsSurface, surface),
        provided(Replicas, engines.replicas),
        provided(Lifecycle, lifecycle),
        provided(Sweepers, sweepers),
        provided(Stamps, stamps),
        provided(EventStore, events),
        provided(ReadModels, new GuardedReadModels(readModels, stopped, awaited)),
        provided(ShortLived, shortLived),
        provided(Leases, leases),
        provided(LeasedFollowers, followers),
        provided(MessageBus, bus),
        provided(KeyStore, keys),
        provided(Blobs, engines.blobs),
        provided(Vault, new Vault(keys)),
        ...(repository === null ? [] : [provided(Repository, repository), provided(Naming, naming), provided(CurrentStates, current)]),
        provided(LogFollowing, following),
        provided(Positions, new LogPositions(following, projector)),
        provided(ReadYourWrites, awaited),
        provided(LocalServices, new LocalServices(services.map(({ owner }) => owner))),
        ...also,
        ...(remote === null ? [] : [provided(RemoteOperations, remote)]),
      ],
      [
        { port: DirectOperationTransport, by: DirectOperationTransport },
        { port: OperationTransport, by: remote === null ? DirectOperationTransport : RoutedOperationTransport },
        { port: Handlers, by: Handlers },
        { port: Reactions, by: Reactions },
        // It decides, and who has no service decides nothing.
        ...(repository === null ? [] : [{ port: Cascade, by: Cascade }]),
        { port: Forwarders, by: Forwarders },
      ],
    );
  return {
    module,
    lifecycle,
    readiness,
    surface,
    metrics,
    projector,
    tables: () => readModels.tables,
    differences: () => differences(services.flatMap(viewsOf), { events, readModels }),
  };
}

/** As everybody sees it: of this release's shapes, personal fields in clear; and below that as it lies on disk. */
function logOf({ events, keys }: Engines, shapes: EventShapes, metrics: Metrics): EventStore {
  return new UpcastingEventStore(new SealingEventStore(new MeasuredEventStore(events, metrics), keys, markedFieldsOf(WITH_SECRETS)), shapes);
}

/** @throws StartRefused when the keys were lost: under a new naming key, every value that is taken would be free */
async function namingKey(events: EventStore, keys: KeyStore): Promise<Uint8Array> {
  // The head first: whoever recorded something had the key before, so it is found after.
  if ((await events.head()) !== START && !(await keys.findMany(['naming'])).has('naming'))
    throw new StartRefused('There is data, but its keys are missing: put the directory of keys back that was backed up with it, or restore both.');
  return (await keys.obtain('naming')).bytes;
}

/** Each cause, also where there is none: what was never shown cannot be told from what is gone. */
function setDamages(gauge: Gauge<'cause'>, damages: readonly Damage[]): void {
  for (const cause of DAMAGE_CAUSES) gauge.set({ cause }, damages.filter((damage) => damage.cause === cause).length);
}

function viewsOf({ views }: Service): readonly View<never>[] {
  return views as readonly View<never>[];
}

function isPrimary(view: View<never>): view is View<never> & PrimaryView<unknown, never, never> {
  return 'decider' in view;
}
