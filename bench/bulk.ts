import { JointWrites } from '#libs/event-sourcing/src/following/joint-writes';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { setTimeout as pause } from 'node:timers/promises';
import { identity } from '#apps/identity/src/identity.module';
import { FollowerStates } from '#libs/event-sourcing/src/following/follower-states';
import { Forwarders } from '#libs/event-sourcing/src/following/forwarder';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { Projector, ProjectorMetrics } from '#libs/event-sourcing/src/views/projector';
import { StoppedViews } from '#libs/event-sourcing/src/views/stopped-views';
import type { View } from '#libs/event-sourcing/src/views/view';
import { KafkaMessageBus } from '#libs/messaging/src/kafka.message-bus';
import { SystemClock } from '#libs/platform/src/clock';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Readiness } from '#libs/platform/src/readiness';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { MongodbReadModels } from '#libs/read-models/src/mongodb.read-models';
import { MongodbShortLived } from '#libs/read-models/src/mongodb.short-lived';

export interface Bulk {
  readonly events: number;
  readonly milliseconds: number;
  /** Processor time of this process, which is not the engine's. */
  readonly ownMilliseconds: number;
}

const clock = new SystemClock();
const log = new PinoLog({ level: 'warn', readable: false, destination: process.stderr });

/** Fills the views of identity in MongoDB from a log in this directory. */
export function fillViews(directory: string, url: string): Promise<Bulk> {
  return withLog(directory, async (events) => {
    const storage = await MongodbStorage.connect({ url, log });
    try {
      const metrics = new Metrics();
      const readModels = new MongodbReadModels(storage);
      const projector = new Projector('identity', identity.views as readonly View<never>[], {
        events,
        following: new LogFollowing(events, clock, log),
        writes: new JointWrites(readModels),
        readModels,
        leases: new Leases(new MongodbShortLived(storage, clock), 'bench', log, metrics),
        states: new FollowerStates(readModels, clock),
        stopped: new StoppedViews(),
        readiness: new Readiness(),
        metrics: new ProjectorMetrics(metrics),
      });
      const bulk = await timed(events, () => projector.start());
      await projector.stop();
      return bulk;
    } finally {
      await storage.close();
    }
  });
}

/** Announces a log in this directory on Kafka, with the checkpoints beside the log. */
export function forward(directory: string, brokers: readonly string[]): Promise<Bulk> {
  return withLog(directory, async (events, storage) => {
    const bus = await KafkaMessageBus.connect({
      brokers,
      installation: 'bench',
      tls: null,
      sasl: null,
      partitions: 12,
      replication: 1,
      retentionMs: 3_600_000,
      clientId: 'bench',
      log,
    });
    try {
      const metrics = new Metrics();
      const lifecycle = new Lifecycle();
      const readModels = new LmdbReadModels(storage);
      const leases = new Leases(new LmdbShortLived(storage, clock), 'bench', log, metrics);
      const followers = new LeasedFollowers({
        following: new LogFollowing(events, clock, log),
        writes: new JointWrites(readModels),
        leases,
        states: new FollowerStates(readModels, clock),
        lifecycle,
        metrics,
      });
      new Forwarders(followers, readModels, bus, log, metrics).add({ service: 'identity', categories: ['organization'] });
      const head = await events.head();
      const bulk = await timed(events, async () => {
        await lifecycle.start();
        while ((await followers.status()).some(({ position }) => position < head)) await pause(20);
      });
      await lifecycle.stop();
      return bulk;
    } finally {
      await bus.close();
    }
  });
}

async function withLog<Result>(directory: string, measure: (events: EventStore, storage: LmdbStorage) => Promise<Result>): Promise<Result> {
  const storage = await LmdbStorage.open({ directory });
  try {
    return await measure(new LmdbEventStore(storage), storage);
  } finally {
    await storage.close();
  }
}

async function timed(events: EventStore, work: () => Promise<void>): Promise<Bulk> {
  const [began, used] = [performance.now(), process.cpuUsage()];
  await work();
  const milliseconds = performance.now() - began;
  const { user, system } = process.cpuUsage(used);
  // Of the embedded log, positions count the records.
  return { events: Number(await events.head()), milliseconds, ownMilliseconds: (user + system) / 1_000 };
}
