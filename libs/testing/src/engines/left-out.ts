import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';

/** Specs of this file do not run. The reporter of the run says it once, at the end, where it is seen: `libs/testing/engines/left-out.reporter.mjs`. */
export function noteLeftOut(missing: string): void {
  const folder = join(tmpdir(), 'gatehouse-left-out');
  mkdirSync(folder, { recursive: true });
  // The run is this process or its parent, depending on how many workers it has.
  writeFileSync(join(folder, `${process.ppid}-${process.pid}-${randomUUID()}`), `${missing}\n`);
}
