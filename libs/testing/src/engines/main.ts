import { environmentVariables } from '#libs/platform/src/config/environment';
import { endWith } from '#libs/platform/src/ending';
import { StartedEngines } from './start-engine.ts';
import { WatchedDirectory } from './watched-directory.ts';

// Starts the engines whose settings are not set, prints the settings of all, and stops them on Ctrl-C.
const say = (line: string) => console.error(`gatehouse: ${line}`);
const directory = WatchedDirectory.create('engines');
try {
  const engines = await StartedEngines.start({ variables: environmentVariables(), directory, say });
  for (const [setting, address] of Object.entries(engines.settings)) console.log(`export ${setting}='${address}'`);
  say(`the engines are ready; Ctrl-C ends them and removes their data, which is in ${directory.path}.`);
  // The engines run by themselves; this process is here to end them.
  setInterval(() => {}, 2 ** 30);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      engines.close().then(() => {
        directory.remove();
        process.exit(0);
      }, endWith);
    });
} catch (error) {
  directory.remove();
  endWith(error);
}
