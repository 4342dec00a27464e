import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { noteLeftOut } from './engines/left-out.ts';

/** As `unshare` is told of each, and what has to work then. */
const KINDS = {
  net: { words: ['--net'], tried: ['true'] },
  pid: { words: ['--pid', '--fork', '--kill-child'], tried: ['true'] },
  mount: { words: ['--mount'], tried: ['mount', '-t', 'tmpfs', 'tmpfs', tmpdir()] },
} as const;
/** Whoever is not root may become it in a namespace of users. */
const AS_ROOT = ['--user', '--map-root-user'];

type Kind = keyof typeof KINDS;

/**
 * What starts a program as in a container of its own, as `ownNamespaces`. Nothing where this machine lets nobody do so: specs run as they can, a line at the end of
 * the run says so, and `ENGINES=required` refuses that.
 */
export function throughNamespaces(...kinds: readonly Kind[]): readonly string[] {
  const way = ownNamespaces(...kinds);
  if (way !== null) return way;
  const missing = 'namespace for a process of its own (unshare)';
  if (environmentVariables()['ENGINES'] === 'required') throw new Error(`ENGINES=required, and there is no ${missing}.`);
  noteLeftOut(missing);
  return [];
}

/** What starts a program with other network addresses, process numbers or file systems; null where this machine lets nobody do so. */
export function ownNamespaces(...kinds: readonly Kind[]): readonly string[] | null {
  const own = kinds.flatMap((kind) => KINDS[kind].words);
  const ways = [
    ['unshare', ...own],
    ['unshare', ...AS_ROOT, ...own],
  ];
  const works = ([program, ...args]: readonly string[]): boolean => kinds.every((kind) => spawnSync(program!, [...args, ...KINDS[kind].tried]).status === 0);
  return ways.find(works) ?? null;
}

/** Whether who starts a program this way becomes root by it alone. */
export function isRootByNamespace(way: readonly string[]): boolean {
  return way.includes(AS_ROOT[0]!);
}
