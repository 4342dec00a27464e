import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { ROOT } from './process.ts';

/** Where the choices of this name begin in this run, below 2^31: the same for the same commit, and another one for the next. A failure has to name it. */
export function seedOf(name: string): number {
  // jest.config.mjs sets it.
  const seed = environmentVariables()['SEED'];
  if (seed === undefined) throw new Error('SEED is not set.');
  return createHash('sha256').update(`${seed} ${name}`).digest().readUInt32BE() >>> 1;
}

/** Seeds that once found a fault: they are run for ever. */
export function failedSeeds(name: 'histories' | 'torture' | 'sign-ins' | 'scim-histories'): readonly number[] {
  const all = JSON.parse(readFileSync(join(ROOT, '.ci/failed-seeds.json'), 'utf8')) as Readonly<Record<string, readonly number[]>>;
  return all[name] ?? [];
}

/** Whether also that is to be run which takes too long for every commit, as `npm run proofs` does it. */
export function isEverythingWanted(): boolean {
  return environmentVariables()['EVERYTHING'] === 'on';
}

/** Numbers below a limit, the same from every seed (mulberry32). */
export function seededNumbers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}
