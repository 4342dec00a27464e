import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { lockDirectory } from '#libs/platform/src/storage/kernel-lock';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Members } from './members.ts';
import { serverOf } from './server.ts';
import { Streams } from './streams.ts';

/**
 * One of several small servers on one log, for specs of what happens when a leader is killed: `standby.js DIRECTORY PORT SHARED`. Whoever holds the lock on SHARED leads. The others
 * name the leader, are not ready, and wait for its end. A leader that is frozen keeps the lock, so nobody takes over from it.
 */
const [directory, port, shared] = process.argv.slice(2) as [string, string, string];
const self = `127.0.0.1:${port}`;
const named = join(shared, 'leader');
let isLeader = false;

const openLog = async (place: string): Promise<LmdbEventStore> => new LmdbEventStore(await LmdbStorage.open({ directory: place, minFree: 0 }));
const members = new Members({
  self,
  get leader() {
    if (isLeader) return undefined;
    return existsSync(named) ? readFileSync(named, 'utf8') : '127.0.0.1:1';
  },
  get readyAt() {
    return isLeader ? 0 : Infinity;
  },
});
// Nobody sees its own log: it is not ready before it has the shared one.
const streams = new Streams(await openLog(directory), members);
const server = serverOf(members, streams);
await new Promise<void>((resolve, reject) =>
  server.bindAsync(self, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error))),
);

await lockDirectory(shared, { wait: Infinity });
streams.log = await openLog(join(shared, 'log'));
writeFileSync(named, self);
isLeader = true;
