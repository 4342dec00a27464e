import { writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { seededNumbers } from './seed.ts';

interface Thing {
  readonly id: string;
  readonly tags: readonly string[];
}

/** Writes rows with changing tags to two tables in the directory given, as the seed given chooses them, until it is killed. Prints a dot at every round. */
const storage = await LmdbStorage.open({ directory: process.argv[2]! });
const readModels = new LmdbReadModels(storage);
const chosen = seededNumbers(Number(process.argv[3]));
const indexes = [{ name: 'tag', keys: ({ tags }: Thing) => tags }];
const tables = [
  readModels.table<Thing>({ name: 'things', rebuildable: true, indexes }),
  readModels.table<Thing>({ name: 'sorted', rebuildable: false, indexes, sortKey: ({ id }) => id.slice(-1) }),
];

for (let position = Date.now() * 100; ; await nextTurn()) {
  const writes = Array.from({ length: 60 }, () => {
    const id = `thing_${chosen(3_000)}`;
    const tags = [...new Set(Array.from({ length: chosen(5) }, () => `tag${chosen(20)}`))];
    return {
      environment: 'one',
      id,
      position: String(++position).padStart(16, '0'),
      revision: 1,
      text: chosen(10) === 0 ? null : JSON.stringify({ id, tags } satisfies Thing),
    };
  });
  for (const table of tables) {
    await table.write(writes);
    if (chosen(5) === 0) void table.compact();
  }
  writeSync(1, '.');
}
