/**
 * Loaded before a program (`NODE_OPTIONS=--import`), whose process then ends by `kill -9` right before or behind a step of an erasure: whichever the file says that `DIES_AT`
 * names, at the first such step once it is there. The file is gone by then, so that whoever is started next goes on.
 */
import fs, { existsSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { ERASED } from '#libs/event-sourcing/src/erasure/erasing';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { MongodbKeyStore } from '#libs/event-sourcing/src/sealing/mongodb.key-store';
import { Table } from '#libs/read-models/src/read-models';
import { DIES_AT, dyingAt } from './dying.ts';

const records = ([, , appended]: readonly unknown[]): boolean => (appended as readonly NewEvent[]).some(({ type }) => type === ERASED);
for (const log of [LmdbEventStore, EventstoredbEventStore]) dyingAt(log.prototype, 'append', 'the fact', records);
let isBuried = false;
const noteBurial = (): boolean => {
  isBuried ||= existsSync(DIES_AT);
  return true;
};
for (const keys of [LmdbKeyStore, MongodbKeyStore]) {
  dyingAt(keys.prototype, 'bury', 'the tombstones', noteBurial);
  // It notes how far it has come where there was nothing to erase as well.
  dyingAt(keys.prototype, 'setErasedUpTo', 'the checkpoint', () => isBuried);
}
dyingAt(MongodbKeyStore.prototype, 'buryOne', 'one tombstone');
dyingAt(Table.prototype, 'rewrite', 'the rows');
// Files of keys and of views that are replaced by copies without what was erased, and the mark that says that one is owed.
dyingAt(promises, 'rename', 'the new keys', ([from]) => String(from).includes('keys/compacted'));
dyingAt(promises, 'rename', 'the new views', ([from]) => String(from).includes('views.compacted'));
dyingAt(fs, 'rmSync', 'the debt', ([path]) => String(path).endsWith('views.owed'));
syncBuiltinESMExports();
