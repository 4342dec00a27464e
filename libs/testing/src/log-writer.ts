import { writeSync } from 'node:fs';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { type Acknowledged, eventsAt } from './log-writer-process.ts';

/** Appends to the log in the directory given, from many writers, until it is killed or the disk fails. Prints what was acknowledged, each line at once. */
const [, , directory = '', writers = '16', padding = '200'] = process.argv;
const storage = await LmdbStorage.open({
  directory,
  onFatal: (sentence) => {
    writeSync(2, `${sentence}\n`);
    process.exit(1);
  },
}).catch((error: Error) => {
  writeSync(2, `${error.message}\n`);
  process.exit(1);
});
const store = new LmdbEventStore(storage);
const session = newUlid(Date.now());

async function write(writer: number): Promise<void> {
  const stream = `thing-${session}-${writer}`;
  for (let version = 0; ;) {
    const events = Array.from({ length: eventsAt(version) }, (): NewEvent => {
      const id = newUlid(Date.now());
      return {
        id,
        type: 'thing.happened',
        shape: 1,
        data: 'x'.repeat(Number(padding)),
        subject: null,
        public: [],
        meta: { environment: 'environment_1', actor: { id: 'key_1', source: 'api', name: null }, requestId: id, commandId: id, at: 1 },
      };
    });
    const appended = await store.append(stream, version, events);
    ({ version } = appended);
    writeSync(1, `${JSON.stringify({ stream, ...appended, id: events.at(-1)!.id } satisfies Acknowledged)}\n`);
  }
}

await Promise.all(Array.from({ length: Number(writers) }, (_, writer) => write(writer)));
