import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = join(tmpdir(), 'gatehouse-left-out');

/** Says in one line, at the end of a run, which engines its specs did without. Jest loads a reporter as it is, so it is no TypeScript. */
export default class LeftOutReporter {
  onRunComplete() {
    const notes = existsSync(folder) ? readdirSync(folder).filter((name) => name.split('-', 2).includes(String(process.pid))) : [];
    if (notes.length === 0) return;
    const missing = new Set(notes.map((name) => readFileSync(join(folder, name), 'utf8').trim()));
    for (const name of notes) rmSync(join(folder, name));
    console.error(`\nLEFT OUT: the specs that need ${[...missing].sort().join(' and ')}. Everything else ran; ENGINES=required refuses this.`);
  }
}
