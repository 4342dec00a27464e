import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { readSettings, settingsOf, type Variables } from '#libs/platform/src/config/setting';
import { EngineSettings, GatewaySettings, IdentitySettings, PlatformSettings, SETTINGS_CLASSES } from '#libs/platform/src/config/settings';
import { endWith } from '#libs/platform/src/ending';
import { StartRefused } from '#libs/platform/src/start-refused';
import { isFree } from '../engines/free-port.ts';
import { deployedToProduction } from '../deployment/production.ts';
import { Cluster } from './cluster.ts';

/** Settings that name engines. */
const ENGINES = ['EVENTSTORE_URL', 'MONGODB_URL', 'KEYS_URL', 'KAFKA_BROKERS'];
/** Settings that say where a process listens, who listens elsewhere, and which of the two modes this is. */
const PLACED = /^(PORT|HOST|GATEHOUSE_MODE|OPERATIONS_PORT|SERVICE_\w+|\w+_ADDRESS|DATA_DIR\w*|KAFKA_\w+)$/;

// Everything as a cluster on this machine, with two processes of each app; Ctrl-C ends it. With --secure as the manifests of production say: in production mode, with
// engines that want TLS and passwords, and with nothing to write to.
const say = (line: string) => console.error(`gatehouse: ${line}`);
try {
  const isSecure = readOptions();
  const { PORT } = readSettings(GatewaySettings, environmentVariables());
  const variables = isSecure ? settingsOfOperator(environmentVariables()) : environmentVariables();
  const { GATEHOUSE_API_KEY } = readSettings(IdentitySettings, variables);
  const { EVENTSTORE_URL, MONGODB_URL } = readSettings(EngineSettings, variables);
  if ((EVENTSTORE_URL ?? MONGODB_URL) !== null && readSettings(PlatformSettings, variables).MASTER_KEYS === null)
    throw new StartRefused('MASTER_KEYS must be set too where an engine is named: what this start encrypts, the next could not read.');
  const ports = PORT === 0 ? [] : [PORT, PORT + 1];
  // Before the engines, which take a while.
  for (const port of ports) await requireFree(port);
  const cluster = await Cluster.start({
    variables,
    ports,
    say,
    ...(isSecure && { deployment: deployedToProduction }),
  });
  say(`what the processes print is in ${cluster.directory}; Ctrl-C ends all of them, with the data of the engines that were started here.`);
  console.log(`Gatehouse is ready at ${cluster.gateways.map(({ url }) => url).join(' and ')}.`);
  console.log(`  API docs   ${cluster.gateways[0]!.url}/docs`);
  if (GATEHOUSE_API_KEY === null) console.log(`  first key  ${cluster.key}`);
  if (isSecure) printDeployment(cluster);
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

/** @throws StartRefused */
function readOptions(): boolean {
  try {
    return parseArgs({ options: { secure: { type: 'boolean', default: false } } }).values.secure;
  } catch (error) {
    throw new StartRefused(`${(error as Error).message.replace(/\.?$/, '.')} The one option is --secure.`);
  }
}

/** @throws StartRefused */
async function requireFree(port: number): Promise<void> {
  if (!(await isFree(port)))
    throw new StartRefused(`Port ${port} on 127.0.0.1 cannot be had, and the gateways listen on PORT and the port after it: set PORT to another one.`);
}

/** What somebody sets beside what the manifests say; where processes listen and what they store in is not theirs to say. */
function settingsOfOperator(variables: Variables): Variables {
  const engines = ENGINES.filter((name) => variables[name]);
  if (engines.length > 0) throw new StartRefused(`--secure starts engines of its own: leave out ${engines.join(', ')}.`);
  const theirs = SETTINGS_CLASSES.flatMap((type) => settingsOf(type)).filter(
    ({ name, secret }) => (!secret && !PLACED.test(name)) || name === 'GATEHOUSE_API_KEY',
  );
  return Object.fromEntries(theirs.map(({ name }) => [name, variables[name]]));
}

/** How to look at it, and at what it was made of. */
function printDeployment({ directory, settings, processes }: Cluster): void {
  const folder = join(directory, 'deployment');
  const file = join(folder, 'service.env');
  const lines = Object.entries(settings).map(([name, value]) => `export ${name}='${value.replaceAll("'", `'\\''`)}'\n`);
  writeFileSync(file, lines.join(''), { mode: 0o600 });
  console.log(`  rendered   k8s/overlays/production, with cluster.env, secrets.env, settings.env and engines-ca.crt in ${folder}`);
  console.log(`  commands   (. ${file}; npm run --silent gatehouse -- help)`);
  for (const { name, planned } of processes) console.log(`  ${name.padEnd(18)} ${[...new Set(Object.values(planned.asked))].join('  ')}`);
}
