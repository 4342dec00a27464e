// The first program of the image: becomes the app that its first argument names, in this very process, so that signals meet the app and nothing between.
import { readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const [name = 'suite', ...args] = process.argv.slice(2);
const programs = new URL('../dist/programs/', import.meta.url);
const command = 'gatehouse';
const names = readdirSync(programs).flatMap((file) => /^([^.]+)\.js$/.exec(file)?.[1] ?? []);
const apps = names.filter((each) => each !== command);

if (!names.includes(name)) {
  console.error(`gatehouse: there is no app ${JSON.stringify(name)}. Apps: ${[...apps, command].join(', ')}.`);
  process.exit(64);
}

// The kernel spares the first process of a container every signal that it does not handle, and an app handles them only once it has started.
for (const signal of ['SIGTERM', 'SIGINT'])
  process.once(signal, () => {
    if (process.listenerCount(signal) === 0) process.exit(128 + constants.signals[signal]);
  });

const main = new URL(`${name}.js`, programs);
process.argv = [process.execPath, fileURLToPath(main), ...args];
await import(main);
