import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** What git prints, in lines. Null where this is no checkout of its own: an archive may lie in somebody's repository, and has nothing to do with its commits. */
export function git(...words) {
  try {
    const run = (...each) => execFileSync('git', each, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 26 });
    if (realpathSync(run('rev-parse', '--show-toplevel').trim()) !== realpathSync(root)) return null;
    return run(...words)
      .split('\n')
      .filter((line) => line !== '');
  } catch {
    return null;
  }
}

/** A hash of what lies below these paths now, committed or not. */
export function hashOf(paths) {
  const hash = createHash('sha256');
  for (const file of paths.flatMap(filesBelow).sort())
    hash
      .update(file)
      .update('\0')
      .update(readFileSync(join(root, file)))
      .update('\0');
  return hash.digest('hex').slice(0, 12);
}

/** Relative to the root, with slashes. */
export function filesBelow(path) {
  if (!existsSync(join(root, path))) return [];
  if (statSync(join(root, path)).isFile()) return [path];
  return readdirSync(join(root, path)).flatMap((name) => filesBelow(`${path}/${name}`));
}
