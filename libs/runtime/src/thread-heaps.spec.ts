import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { leaveThreadsTheirLimits } from './thread-heaps.ts';

const MEBIBYTE = 2 ** 20;
/** Keeps enough alive for its young heap to grow as far as it may, and tells how far that is. */
const PROGRAM = `
  let kept = [];
  for (let count = 0; count < 3_000_000; count++) {
    kept.push({ count });
    if (kept.length > 200_000) kept = [];
  }
  const { getHeapSpaceStatistics } = require('node:v8');
  require('node:worker_threads').parentPort.postMessage(getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size);
`;

it('a thread has the young heap that it is limited to, and not that of the command line', async () => {
  setFlagsFromString('--max-semi-space-size=32');
  leaveThreadsTheirLimits();
  const worker = new Worker(PROGRAM, { eval: true, resourceLimits: { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 64 } });
  const [bytes] = (await once(worker, 'message')) as [number];
  expect(bytes).toBeLessThanOrEqual(8 * MEBIBYTE);
});
