import { createHash } from 'node:crypto';
import { git, hashOf } from './files.mjs';

/** What every choice by chance in a run begins with: the hash of the committed tree, so that a commit always runs the same and the next one something else. `SEED` repeats another run. */
export function seedOfTree() {
  return process.env.SEED || git('rev-parse', 'HEAD^{tree}')?.[0].slice(0, 12) || hashOf(['apps', 'libs', 'test']);
}

/** A number below 2^31 for each name. libs/testing/src/seed.ts says the same to specs. */
export function numberOf(seed, name) {
  return createHash('sha256').update(`${seed} ${name}`).digest().readUInt32BE() >>> 1;
}
