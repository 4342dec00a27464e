import { PinoLog } from '#libs/platform/src/pino.log';
import { eventstore } from '#libs/testing/src/engines/eventstore';
import type { Engine } from '#libs/testing/src/engines/engine';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { eventStoreContract } from './event-store.contract.ts';
import { EventstoredbEventStore } from './eventstoredb.event-store.ts';

const log = new PinoLog({ level: 'silent', readable: false });
const engines: Engine[] = [];
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});

/** A log of its own, empty. */
async function started(): Promise<Engine> {
  const engine = await eventstore.startProcess(WatchedDirectory.create('eventstore'));
  engines.push(engine);
  return engine;
}

eventStoreContract('EventStoreDB', async () => {
  const { address: url } = await started();
  return async () => {
    const store = await EventstoredbEventStore.connect({ url, log });
    return { store, close: () => store.close() };
  };
});
