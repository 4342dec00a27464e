import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';

const PROBE_TIMEOUT_MS = 10_000;

/**
 * Run in a child: a damaged page can end in a native abort or a bus error, which no `catch` sees. Reads the ends of every tree, newest first, for as long
 * as it takes to touch 2,000 entries of each or 100 ms in all: what a crash can have damaged lies there.
 */
const CHILD = `
const { open } = require(process.argv[1]);
const root = open({ path: process.argv[2], readOnly: true, encoding: 'binary', keyEncoding: 'binary', maxDbs: 1_024 });
const names = [...root.getKeys({ start: Buffer.from([0]), limit: 256 })].map((key) => Buffer.from(key).toString().replace(/\\0$/, ''));
const deadline = Date.now() + 100;
const high = Buffer.alloc(64, 255), low = Buffer.from([0]);
for (const name of names) {
  const db = root.openDB({ name, encoding: 'binary', keyEncoding: 'binary' });
  let bytes = 0;
  for (const { value } of db.getRange({ start: high, end: low, reverse: true, limit: 2000 })) {
    for (let i = 0; i < value.length; i += 512) bytes += value[i];
    if (Date.now() > deadline) break;
  }
  for (const { value } of db.getRange({ start: low, limit: 10 })) bytes += value.length;
}
process.exit(0);
`;

/** @throws Error that says how the child ended */
export async function probe(path: string): Promise<void> {
  const binding = createRequire(import.meta.url).resolve('lmdb');
  await new Promise<void>((resolve, reject) => {
    execFile(process.execPath, ['-e', CHILD, binding, path], { timeout: PROBE_TIMEOUT_MS }, (error, _stdout, stderr) => {
      if (!error) return resolve();
      const { signal, code } = error;
      const [reason] = /^\w*Error: .*$/m.exec(stderr) ?? [];
      reject(new Error(`reading it ended with ${signal ? `signal ${signal}` : (reason ?? `code ${code}`)}`));
    });
  });
}
