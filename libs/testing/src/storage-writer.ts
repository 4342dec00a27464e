import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { newUlid } from '#libs/platform/src/ids';
import { byteTextKeys } from '#libs/platform/src/storage/lmdb-keys';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import type { StorageAnswer } from './storage-writer-process.ts';

/** Opens the data directory given and does as it is told, a line at a time, until it is killed or may not write any more. `unlocked`: as on a file system without locks. */
const [, , directory = '', locks = 'locked'] = process.argv;
const answer = (said: StorageAnswer): void => void writeSync(1, `${JSON.stringify(said)}\n`);
const end = (sentence: string): never => {
  writeSync(2, `${sentence}\n`);
  process.exit(1);
};

function withoutLocks(): never {
  throw Object.assign(new Error('no locks available'), { code: 'ENOLCK' });
}

const storage = await LmdbStorage.open({ directory, onFatal: end, ...(locks === 'unlocked' && { tryLock: withoutLocks }) }).catch((error: Error) =>
  end(error.message),
);
const store = new LmdbEventStore(storage);
const view = storage.views.db('view', byteTextKeys);
answer({ done: 'open', acknowledged: [] });

for await (const line of createInterface({ input: process.stdin })) {
  const [command, given = ''] = line.split(' ');
  // What this process was refused it has said by ending, or says here.
  const refused = (error: Error): void => answer({ done: 'refused', acknowledged: [], refusal: error.message });
  if (command === 'append') await append(Number(given)).catch(refused);
  if (command === 'row') await putRow(given).catch(refused);
  if (command === 'tree') await openTree(given).catch(refused);
}
await storage.close();

/** In one event turn, each to a stream of its own; each is told at once, not with the last of them. */
async function append(count: number): Promise<void> {
  const one = async (): Promise<void> => {
    const id = newUlid(Date.now());
    const appended = await store.append(`thing-${id}`, 0, [eventOf(id)]);
    answer({ done: 'one', acknowledged: [{ id, stream: `thing-${id}`, ...appended }] });
  };
  await Promise.all(Array.from({ length: count }, one));
  answer({ done: 'append', acknowledged: [] });
}

async function putRow(key: string): Promise<void> {
  view.put(key, Buffer.from(key));
  await storage.views.committed();
  answer({ done: 'row', acknowledged: [] });
}

async function openTree(name: string): Promise<void> {
  storage.log.db(name, byteTextKeys);
  answer({ done: 'tree', acknowledged: [] });
}

function eventOf(id: string): NewEvent {
  const meta = { environment: 'environment_1', actor: { id: 'key_1', source: 'api' as const, name: null }, requestId: id, commandId: id, at: 1 };
  return { id, type: 'thing.happened', shape: 1, data: null, subject: null, public: [], meta };
}
