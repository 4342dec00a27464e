import { readdir } from 'node:fs/promises';
import { StartRefused } from '../start-refused.ts';

/** @throws StartRefused when the directory is there and holds something beside these */
export async function expectEmpty(directory: string, besides: readonly string[] = []): Promise<void> {
  const found = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new StartRefused(`${directory} cannot be used (${error.code}): name another directory.`);
  });
  if (found.some((name) => !besides.includes(name))) throw new StartRefused(`${directory} is not empty: name a directory that is empty or does not exist yet.`);
}
