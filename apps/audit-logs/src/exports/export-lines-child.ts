import { constants, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { linesOf, type SealedBatch } from './export-lines.ts';

// The whole program of a thread. On Linux a priority is that of the thread which sets it; elsewhere it would be that of the whole process.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

parentPort!.on('message', ({ number, batch }: { readonly number: number; readonly batch: SealedBatch }) => {
  const written = linesOf(batch);
  parentPort!.postMessage({ number, written }, 'bytes' in written ? [written.bytes.buffer as ArrayBuffer] : []);
});
