import { readFileSync } from 'node:fs';
import { seedOfTree } from './.ci/seed.mjs';
import { suiteOf } from './.ci/suites.mjs';

const { jsc } = JSON.parse(readFileSync(new URL('.swcrc', import.meta.url), 'utf8'));
const { SPECS, EVERYTHING } = process.env;

// Specs, in processes of their own, begin with it too.
const seed = (process.env.SEED = seedOfTree());
const { folders, workers, testMatch } = suiteOf(SPECS, { seed, isEverything: EVERYTHING === 'on' });
const isOnCluster = process.env.SUITE !== undefined;

/** Specs run from the sources, as the `source` condition of package.json's imports says; nothing in dist is looked at. */
export default {
  roots: folders.map((folder) => `<rootDir>/${folder}`),
  testMatch,
  testSequencer: '<rootDir>/.ci/longest-first.mjs',
  extensionsToTreatAsEsm: ['.ts'],
  globalSetup: '<rootDir>/.ci/packages.mjs',
  resolver: '<rootDir>/.ci/packages.mjs',
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  // Jest resolves a relative import as it is written, so its `.ts` ending has to stay.
  transform: { '\\.ts$': ['@swc/jest', { swcrc: false, sourceMaps: 'inline', jsc: { ...jsc, rewriteRelativeImportExtensions: false } }] },
  // Some specs start servers and kill processes; a busy machine is not a failed test.
  testTimeout: isOnCluster ? 120_000 : 60_000,
  maxWorkers: workers,
  reporters: ['default', '<rootDir>/libs/testing/engines/left-out.reporter.mjs', '<rootDir>/.ci/seed.reporter.mjs'],
};
