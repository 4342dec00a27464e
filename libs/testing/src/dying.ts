import { readFileSync, rmSync } from 'node:fs';
import { environmentVariables } from '#libs/platform/src/config/environment';

/** Names the moment at which the process is to end; it is gone by then, so that whoever is started next goes on. */
export const DIES_AT = environmentVariables()['DIES_AT']!;

type Calls = readonly unknown[];

/** Ends this process as `kill -9` does, where this is the moment that the file names. */
function dies(moment: string): void {
  try {
    if (readFileSync(DIES_AT, 'utf8') !== moment) return;
  } catch {
    return;
  }
  rmSync(DIES_AT);
  process.kill(process.pid, 'SIGKILL');
}

/** Both moments of a method, before and after it, at those calls that `isMeant` tells. */
export function dyingAt(owner: object, method: string, step: string, isMeant: (given: Calls) => boolean = () => true): void {
  const own = Reflect.get(owner, method) as (...given: unknown[]) => unknown;
  Reflect.set(owner, method, function (this: unknown, ...given: unknown[]): unknown {
    if (!isMeant(given)) return Reflect.apply(own, this, given);
    dies(`before ${step}`);
    const done = Reflect.apply(own, this, given);
    if (!(done instanceof Promise)) return (dies(`after ${step}`), done);
    return done.then((answer: unknown) => (dies(`after ${step}`), answer));
  });
}
