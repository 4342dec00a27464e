import { join } from 'node:path';
import type { AppContainer } from '../deployment/app-container.ts';
import { imageOfDockerfile } from '../deployment/image.ts';
import { isRootByNamespace } from '../namespaces.ts';
import { ROOT } from '../process.ts';

const CONTAINER = join(ROOT, 'libs/testing/engines/container.sh');

/** The words that start a process and what it is told. */
export interface Startable {
  readonly command: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * A container as a process of this machine.
 * @param way starts it in a mount namespace of its own, where it finds what the container would find; null: it sees this machine, and finds its files elsewhere
 */
export function startableOf(container: AppContainer, way: readonly string[] | null): Startable {
  const { args, variables, user, files, writable } = container;
  const [, program, ...words] = imageOfDockerfile().entrypoint;
  if (way === null) return { command: [process.execPath, join(ROOT, program!), ...words, ...args], variables: seenFromOutside(container) };
  const mounts = [...Object.entries(files).map(([path, folder]) => `${path}=${folder}`), ...Object.entries(writable).map(([path, size]) => `${path}:${size}`)];
  // Root by a namespace of users is nobody else, and cannot become it.
  const contained = ['/bin/sh', CONTAINER, ROOT, isRootByNamespace(way) ? '' : user, ...mounts, '--'];
  return { command: [...way, ...contained, process.execPath, program!, ...words, ...args], variables };
}

/** Its variables with files where they lie on this machine. */
export function seenFromOutside({ variables, files }: AppContainer): Readonly<Record<string, string>> {
  const moved = (value: string): string => Object.entries(files).reduce((text, [path, folder]) => text.replaceAll(`${path}/`, `${folder}/`), value);
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, moved(value)]));
}
