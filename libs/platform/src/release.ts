import { existsSync, readFileSync } from 'node:fs';

/** The version of this release, from the package.json above the running code: sources and build lie at different depths. */
export function releaseVersion(): string {
  for (let folder = new URL('.', import.meta.url); ; folder = new URL('..', folder)) {
    const file = new URL('package.json', folder);
    if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
    if (folder.pathname === '/') throw new Error('There is no package.json above the running code.');
  }
}
