import { join } from 'node:path';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { StartRefused } from '#libs/platform/src/start-refused';
import { EngineProcess } from './engine-process.ts';
import { freePort } from './free-port.ts';
import type { WatchedDirectory } from './watched-directory.ts';

const PLACEHOLDER = /\{([a-z_]+)\}/g;
const NEEDED = ['data', 'port'];

/** Files in PEM, and a folder with the certificate of whoever signed. */
export interface ServerTls {
  readonly certificate: string;
  readonly key: string;
  readonly authorities: string;
}

interface CommandedServer {
  readonly name: string;
  readonly port: number;
  readonly address: string;
  readonly isReady: () => Promise<boolean>;
  readonly tls?: ServerTls;
  readonly user?: { readonly name: string; readonly password: string };
  /** All members of its cluster, as `host:port`. */
  readonly members?: readonly string[];
}

/** Starts EventStoreDB's own server, as `EVENTSTORE_COMMAND` says; the README of `libs/testing` has one. Null: nothing says how. */
export function eventstoreCommand(): string | null {
  const command = environmentVariables()['EVENTSTORE_COMMAND'];
  return command === undefined || command === '' ? null : command;
}

/** What a cluster of three needs. */
export const CLUSTER_COMMAND = 'EVENTSTORE_COMMAND, a command with {cluster_size} and {gossip_seeds} that starts EventStoreDB (libs/testing/README.md)';

/** Whether members started by it can find each other. */
export function isForClusters(command: string): boolean {
  return ['{gossip_seeds}', '{cluster_size}'].every((placeholder) => command.includes(placeholder));
}

/** The process is the server itself, whom signals reach: a script ends with `exec`. */
export async function startByCommand(command: string, directory: WatchedDirectory, server: CommandedServer): Promise<EngineProcess> {
  const { name, port, address, isReady, tls, user, members = [`127.0.0.1:${server.port}`] } = server;
  const others = members.filter((member) => !member.endsWith(`:${port}`));
  const values = {
    data: join(directory.path, name, 'data'),
    port: String(port),
    replication_port: String(await freePort()),
    insecure: String(tls === undefined),
    certificate: tls?.certificate,
    certificate_key: tls?.key,
    authorities: tls?.authorities,
    user: user?.name,
    password: user?.password,
    cluster_size: String(members.length),
    gossip_seeds: others.length === 0 ? undefined : others.join(','),
  };
  const { HOME } = environmentVariables();
  return EngineProcess.open(directory, { name, address, command: wordsOf(command, values), variables: { HOME }, isReady });
}

/**
 * The words of a command. One with a placeholder for what is not given is left out: `--certificate-file={certificate}` in clear.
 * @throws StartRefused when it names a placeholder that there is not, or lacks one that is needed
 */
export function wordsOf(command: string, values: Readonly<Record<string, string | undefined>>): readonly string[] {
  const named = [...command.matchAll(PLACEHOLDER)].map(([, name]) => name!);
  const unknown = named.find((name) => !(name in values));
  if (unknown !== undefined) throw new StartRefused(`EVENTSTORE_COMMAND has {${unknown}}; there is ${listOf(Object.keys(values))}.`);
  const missing = NEEDED.find((name) => !named.includes(name));
  if (missing !== undefined) throw new StartRefused(`EVENTSTORE_COMMAND needs ${listOf(NEEDED)}; {${missing}} is not in it.`);
  const words = command.trim().split(/\s+/);
  const isGiven = (word: string): boolean => [...word.matchAll(PLACEHOLDER)].every(([, name]) => values[name!] !== undefined);
  return words.filter(isGiven).map((word) => word.replace(PLACEHOLDER, (_, name: string) => values[name]!));
}

function listOf(names: readonly string[]): string {
  return names.map((name) => `{${name}}`).join(', ');
}
