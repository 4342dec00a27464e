import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Loaded before a program, with a folder after `?into=`: there lies what its processor did, under the name of the folder it works in, once it has ended. At SIGWINCH, which
 * does nothing to other programs, another profile begins: what was done until then lies there under a number.
 */
const directory = fileURLToPath(new URL(import.meta.url).searchParams.get('into')!);
const file = `${directory}/${basename(process.cwd())}`;
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.start');
let parts = 0;
process.on('SIGWINCH', () => {
  write(`${file}.${++parts}`);
  session.post('Profiler.start');
});
process.on('exit', () => write(file));

/** Answered before `post` returns, since it asks its own thread. */
function write(path: string): void {
  session.post('Profiler.stop', (error, answer) => {
    if (error === null) writeFileSync(`${path}.cpuprofile`, JSON.stringify(answer.profile));
  });
}
