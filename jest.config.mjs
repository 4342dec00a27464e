import { readFileSync } from 'node:fs';

const { jsc } = JSON.parse(readFileSync(new URL('.swcrc', import.meta.url), 'utf8'));

/** Every app as processes of its own, two of each, on engines of their own; one file at a time, since each takes the whole machine. */
const clusters = {
  // Specs that ask over HTTP alone.
  processes: [
    'apps/identity/src/environments/environments.spec.ts',
    'apps/identity/src/organizations/{organizations,organization-domains}.spec.ts',
    'apps/identity/src/{users/users,memberships/memberships,groups/groups}.spec.ts',
    'apps/authorization/src/{model/{roles,organization-roles,permissions,resource-types},resources/resources}.spec.ts',
    'apps/authorization/src/{assignments/{role-assignments,group-role-assignments},access/access-checks}.spec.ts',
    'apps/notifications/src/webhook-endpoints/webhook-endpoints.spec.ts',
    'test/{sdk,isolation,histories}.spec.ts',
  ],
  // What only a cluster can show: processes and engines that are hurt.
  faults: ['test/cluster{,-alerts}.spec.ts'],
};
const cluster = clusters[process.env.SUITE];

/** Specs run from the sources, as the `source` condition of package.json's imports says; nothing in dist is looked at. */
export default {
  roots: ['apps', 'libs', 'test'].map((folder) => `<rootDir>/${folder}`),
  testMatch: cluster?.map((path) => `<rootDir>/${path}`) ?? ['**/*.spec.ts', '!**/test/cluster{,-alerts}.spec.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  // Jest resolves a relative import as it is written, so its `.ts` ending has to stay.
  transform: { '\\.ts$': ['@swc/jest', { swcrc: false, sourceMaps: 'inline', jsc: { ...jsc, rewriteRelativeImportExtensions: false } }] },
  // Some specs start servers and kill processes; a busy machine is not a failed test.
  testTimeout: cluster ? 120_000 : 30_000,
  maxWorkers: cluster ? 1 : '100%',
  reporters: ['default', '<rootDir>/libs/testing/engines/left-out.reporter.mjs'],
};
