import { readFileSync } from 'node:fs';

const { jsc } = JSON.parse(readFileSync(new URL('.swcrc', import.meta.url), 'utf8'));

/** Specs run from the sources, as the `source` condition of package.json's imports says; nothing in dist is looked at. */
export default {
  roots: ['apps', 'libs', 'test'].map((folder) => `<rootDir>/${folder}`),
  testMatch: ['**/*.spec.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  // Jest resolves a relative import as it is written, so its `.ts` ending has to stay.
  transform: { '\\.ts$': ['@swc/jest', { swcrc: false, sourceMaps: 'inline', jsc: { ...jsc, rewriteRelativeImportExtensions: false } }] },
  // Some specs start servers and kill processes; a busy machine is not a failed test.
  testTimeout: process.env.SUITE === 'processes' ? 120_000 : 30_000,
  maxWorkers: '100%',
  reporters: ['default', '<rootDir>/libs/testing/engines/left-out.reporter.mjs'],
};
