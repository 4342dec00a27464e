import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { PinoLog } from '#libs/platform/src/pino.log';
import { mayTake } from './until.ts';
import type { Engine } from './engines/engine.ts';
import { givenServerHere, type ServerHere } from './engines/eventstore-server/given-server-here.ts';
import { startEventstore, startEventstoreServer } from './engines/eventstore.ts';
import { WatchedDirectory } from './engines/watched-directory.ts';

/** What a file of specs opens is closed after each of its tests, the last first. */
export const opened: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** Lines of the log of all stores below. */
export const printed: string[] = [];
export const log = new PinoLog({ level: 'debug', readable: false, destination: { write: (line) => void printed.push(line) } });

/** A log of its own, empty: of EventStoreDB itself where `EVENTSTORE_COMMAND` names it. */
export function givenServer(options: Parameters<typeof startEventstore>[1] = {}): Promise<Engine> {
  return givenStarted((directory) => startEventstore(directory, options));
}

/** For what EventStoreDB itself cannot be made to do. */
export function givenSmallServer(...flags: string[]): Promise<Engine> {
  return givenStarted((directory) => startEventstoreServer(directory, { flags }));
}

async function givenStarted(start: (directory: WatchedDirectory) => Promise<Engine>): Promise<Engine> {
  const directory = WatchedDirectory.create('eventstore');
  opened.push(() => directory.remove());
  const engine = await start(directory);
  opened.push(() => engine.close());
  return engine;
}

/** The same in this process, for what needs an empty log and no server that fails: a process for each test costs more than most of the tests. */
export async function givenOwnServer(...how: Parameters<typeof givenServerHere>): Promise<ServerHere> {
  const server = await givenServerHere(...how);
  opened.push(() => server.close());
  return server;
}

export async function givenStore(url: string, installation = 'gatehouse'): Promise<EventstoredbEventStore> {
  const store = await EventstoredbEventStore.connect({ url, installation, log, timeoutMs: 10_000 });
  opened.push(() => store.close());
  return store;
}

export const hostOf = ({ address }: Engine): string => new URL(address).host;

/** Sooner than those give up who ask the store. */
export async function refusedWithin(milliseconds: number, ask: () => Promise<unknown>): Promise<void> {
  const askedAt = Date.now();
  const error = await ask().then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(isUnavailable(error)).toBe(true);
  expect(Date.now() - askedAt).toBeLessThan(mayTake(milliseconds));
}
