import { writeSync } from 'node:fs';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb.event-store';
import { LogForReading } from '#libs/platform/src/storage/log-storage';
import type { VerifyLine } from './verify.ts';

/** Walks the log of a directory. A process of its own, because a damaged page can end it without a word: so each step is told before it is taken. */
const [, , directory = '', from = '', chunk = ''] = process.argv;
const tell = (line: VerifyLine): void => void writeSync(1, `${JSON.stringify(line)}\n`);

const store = new LmdbEventStore(new LogForReading(directory));
const options = { from, ...(chunk !== '' && { chunk: Number(chunk) }), onChunk: (reading: string) => tell({ reading }) };
for await (const problem of store.verify(options)) tell({ problem });
tell({ head: await store.head() });
process.exit(0);
