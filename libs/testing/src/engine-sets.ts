import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { MongodbReadModels } from '#libs/read-models/src/mongodb.read-models';
import type { ReadModels } from '#libs/read-models/src/read-models';
import { givenEventstore, givenMongodb } from './engines/given.ts';

/** A log and rows, opened. Others may write to the same log. */
export interface EngineSet {
  readonly events: EventStore;
  readonly readModels: ReadModels;
  close(): Promise<void>;
}

const log = new PinoLog({ level: 'silent', readable: false });

/** For what has to hold on the engines of either way to run: how to open those of each, null where they are not at hand. */
export async function givenEngineSets(): Promise<readonly (readonly [name: string, open: (() => Promise<EngineSet>) | null])[]> {
  const [eventstore, mongodb] = [await givenEventstore(), await givenMongodb()];
  return [
    ['embedded engines', openEmbedded],
    ['the engines of a cluster', eventstore === null || mongodb === null ? null : () => openDistributed(eventstore)],
  ];
}

async function openEmbedded(): Promise<EngineSet> {
  const directory = await mkdtemp(join(tmpdir(), 'engines-'));
  const storage = await LmdbStorage.open({ directory });
  return {
    events: new LmdbEventStore(storage),
    readModels: new LmdbReadModels(storage),
    close: async () => {
      await storage.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** Rows each time in a database of their own. */
async function openDistributed(eventstore: string): Promise<EngineSet> {
  const events = await EventstoredbEventStore.connect({ url: eventstore, installation: 'gatehouse', log });
  const storage = await MongodbStorage.connect({ url: (await givenMongodb())!, log });
  return {
    events,
    readModels: new MongodbReadModels(storage),
    close: async () => {
      await Promise.all([events.close(), storage.close()]);
    },
  };
}
