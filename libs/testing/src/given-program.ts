import { accessSync, constants } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { noteLeftOut } from './engines/left-out.ts';

/** Where `.ci/deployment-tools` puts what it had to bring. */
const BROUGHT = join(homedir(), '.cache/gatehouse/bin');

/**
 * The path of a program of the machine that specs need, of the first name that is there. Null where none is: those specs are left out, and a line at the end of the run says so.
 * `ENGINES=required` refuses that.
 */
export function givenProgram(...names: readonly string[]): string | null {
  const found = findProgram(...names);
  if (found !== null) return found;
  const missing = `${names.join(' or ')} (.ci/run brings it)`;
  if (environmentVariables()['ENGINES'] === 'required') throw new Error(`ENGINES=required, and there is no ${missing}.`);
  noteLeftOut(missing);
  return null;
}

/** The path of the first that this machine has; null: it has none of them. */
export function findProgram(...names: readonly string[]): string | null {
  const folders = [...(environmentVariables()['PATH'] ?? '').split(delimiter), BROUGHT];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
