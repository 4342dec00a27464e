import { ServerCredentials } from '@grpc/grpc-js';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { eventstore } from '../eventstore.ts';
import { freePort } from '../free-port.ts';
import { WatchedDirectory } from '../watched-directory.ts';
import { Members } from './members.ts';
import { serverOf } from './server.ts';
import { Streams } from './streams.ts';

interface ServerHere {
  readonly url: string;
  readonly streams: Streams;
  close(): Promise<void>;
}

/** The small server in this process, with an empty log. */
export async function givenServerHere(): Promise<ServerHere> {
  const directory = WatchedDirectory.create('eventstore');
  const storage = await LmdbStorage.open({ directory: directory.path, minFree: 0 });
  const port = await freePort();
  const members = new Members({ self: `127.0.0.1:${port}` });
  const streams = new Streams(new LmdbEventStore(storage), members);
  const server = serverOf(members, streams);
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error))),
  );
  const close = async (): Promise<void> => {
    server.forceShutdown();
    await storage.close();
    directory.remove();
  };
  return { url: eventstore.addressAt(port), streams, close };
}
