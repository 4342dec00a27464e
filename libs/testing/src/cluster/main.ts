import { environmentVariables } from '#libs/platform/src/config/environment';
import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings, GatewaySettings, IdentitySettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { endWith } from '#libs/platform/src/runtime/ending';
import { StartRefused } from '#libs/platform/src/start-refused';
import { Cluster } from './cluster.ts';

// Everything as a cluster on this machine, with two processes of each app; Ctrl-C ends it.
const say = (line: string) => console.error(`gatehouse: ${line}`);
try {
  const variables = environmentVariables();
  const { PORT } = readSettings(GatewaySettings, variables);
  const { GATEHOUSE_API_KEY } = readSettings(IdentitySettings, variables);
  const { EVENTSTORE_URL, MONGODB_URL } = readSettings(EngineSettings, variables);
  if ((EVENTSTORE_URL ?? MONGODB_URL) !== null && readSettings(PlatformSettings, variables).MASTER_KEYS === null)
    throw new StartRefused('MASTER_KEYS must be set too where an engine is named: what this start encrypts, the next could not read.');
  const cluster = await Cluster.start({ variables, ports: PORT === 0 ? [] : [PORT, PORT + 1], say });
  say(`what the processes print is in ${cluster.directory}; Ctrl-C ends all of them, with the data of the engines that were started here.`);
  console.log(`Gatehouse is ready at ${cluster.gateways.map(({ url }) => url).join(' and ')}.`);
  console.log(`  API docs   ${cluster.gateways[0]!.url}/docs`);
  if (GATEHOUSE_API_KEY === null) console.log(`  first key  ${cluster.key}`);
  // The processes run by themselves; this one is here to end them.
  setInterval(() => {}, 2 ** 30);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      say('stopping …');
      cluster.stop().then(() => process.exit(0), endWith);
    });
} catch (error) {
  endWith(error);
}
