import { ServerCredentials } from '@grpc/grpc-js';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { eventstore } from '../eventstore.ts';
import { freePort } from '../free-port.ts';
import { WatchedDirectory } from '../watched-directory.ts';
import type { Access } from './access.ts';
import { Members } from './members.ts';
import { serverOf } from './server.ts';
import { Streams } from './streams.ts';

interface GivenServerOptions {
  /** Absent: whoever comes may do everything. */
  readonly access?: Access;
  readonly credentials?: ServerCredentials;
}

export interface ServerHere {
  readonly url: string;
  readonly members: Members;
  readonly streams: Streams;
  close(): Promise<void>;
}

/** The small server in this process, with an empty log. */
export async function givenServerHere({ access, credentials = ServerCredentials.createInsecure() }: GivenServerOptions = {}): Promise<ServerHere> {
  const directory = WatchedDirectory.create('eventstore');
  const storage = await LmdbStorage.open({ directory: directory.path, minFree: 0 });
  const port = await freePort();
  const members = new Members({ self: `127.0.0.1:${port}`, ...(access && { access }) });
  const streams = new Streams(new LmdbEventStore(storage, Infinity), members);
  const server = serverOf(members, streams);
  await new Promise<void>((resolve, reject) => server.bindAsync(`127.0.0.1:${port}`, credentials, (error) => (error === null ? resolve() : reject(error))));
  const close = async (): Promise<void> => {
    server.forceShutdown();
    await storage.close();
    directory.remove();
  };
  return { url: eventstore.addressAt(port), members, streams, close };
}
