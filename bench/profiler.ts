import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Loaded before a program, with a folder after `?into=`: there lies what its processor did, once it has ended, under the name of the folder it works in. */
const directory = fileURLToPath(new URL(import.meta.url).searchParams.get('into')!);
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.start');
process.on('exit', () => {
  // Answered before `post` returns, since it asks its own thread.
  session.post('Profiler.stop', (error, answer) => {
    if (error === null) writeFileSync(`${directory}/${basename(process.cwd())}.cpuprofile`, JSON.stringify(answer.profile));
  });
});
