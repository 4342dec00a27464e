// The first program of the image: becomes the app that its first argument names, in this very process, so that signals meet the app and nothing between.
import { existsSync, readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const [name = 'suite', ...args] = process.argv.slice(2);
const apps = new URL('../dist/apps/', import.meta.url);
const main = (app) => new URL(app === 'gatehouse' ? 'suite/src/cli.js' : `${app}/src/main.js`, apps);
const names = [...readdirSync(apps), 'gatehouse'].filter((app) => existsSync(main(app)));

if (!names.includes(name)) {
  console.error(`gatehouse: there is no app ${JSON.stringify(name)}. Apps: ${names.join(', ')}.`);
  process.exit(64);
}

// The kernel spares the first process of a container every signal that it does not handle, and an app handles them only once it has started.
for (const signal of ['SIGTERM', 'SIGINT'])
  process.once(signal, () => {
    if (process.listenerCount(signal) === 0) process.exit(128 + constants.signals[signal]);
  });

process.argv = [process.execPath, fileURLToPath(main(name)), ...args];
await import(main(name));
