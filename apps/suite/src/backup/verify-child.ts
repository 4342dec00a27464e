import { existsSync, writeSync } from 'node:fs';
import { trailKeyOf } from '#apps/audit-logs/src/sealing/trail-keys';
import { WITH_SECRETS } from '#libs/contracts/src/sealed';
import { ErasureCheck } from '#libs/event-sourcing/src/erasure/erasure-check';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { keyProblems } from '#libs/event-sourcing/src/sealing/key-check';
import { markedFieldsOf } from '#libs/event-sourcing/src/sealing/marked-fields';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { readSettings } from '#libs/platform/src/config/setting';
import { PlatformSettings } from '#libs/platform/src/config/settings';
import { expectKnownFormat } from '#libs/platform/src/storage/lmdb-storage';
import { LogForReading } from '#libs/platform/src/storage/log-storage';
import type { VerifyLine } from './verify.ts';

/**
 * Walks the log of a directory, and then its keys where `keys` says where they lie. A process of its own, because a damaged page can end it without a word: so each step
 * is told before it is taken.
 */
const [, , directory = '', keys = '', from = '', chunk = ''] = process.argv;
const tell = (line: VerifyLine): void => void writeSync(1, `${JSON.stringify(line)}\n`);

try {
  expectKnownFormat(directory);
} catch (error) {
  tell({ refusal: (error as Error).message });
  process.exit(0);
}
const store = new LmdbEventStore(new LogForReading(directory));
const options = { from, ...(chunk !== '' && { chunk: Number(chunk) }), onChunk: (reading: string) => tell({ reading }) };
let isWhole = true;
for await (const problem of store.verify(options)) {
  isWhole = false;
  tell({ problem });
}
if (isWhole && keys !== '' && !existsSync(keys)) tell({ refusal: `There are no keys in ${keys}: put the directory of keys back that belongs to this log.` });
else if (isWhole && keys !== '') {
  const { MASTER_KEYS } = readSettings(PlatformSettings, environmentVariables());
  try {
    const stored = await LmdbKeyStore.openForReading(keys, MASTER_KEYS ?? []);
    const erasures = new ErasureCheck(stored);
    for await (const problem of keyProblems(store, { keys: stored, marked: markedFieldsOf(WITH_SECRETS), alsoNeeded: trailKeyOf }, (records) =>
      erasures.look(records),
    ))
      tell({ problem });
    for (const erasure of await erasures.unfinished()) tell({ erasure });
  } catch (error) {
    tell({ refusal: (error as Error).message });
  }
}
tell({ head: await store.head() });
process.exit(0);
