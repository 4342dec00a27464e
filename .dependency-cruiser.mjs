/** What each library may import: those before it. */
const LIBS = ['platform', 'contracts', 'blobs', 'read-models', 'messaging', 'event-sourcing', 'runtime'];
/** What features of an app share, from the ground up: each of these folders may import those before it. */
const SHARED = {
  authorization: ['domain', 'views', 'access', 'repositories', 'guards'],
  'audit-logs': ['domain', 'views', 'sealing', 'readers', 'retention', 'tree', 'export-format', 'due-work', 'checkpoints', 'trail'],
  'directory-sync': ['domain', 'views', 'readers', 'directories', 'people'],
  identity: ['domain', 'views', 'readers', 'passwords', 'risk', 'codes', 'mailbox', 'authentication-factors'],
  notifications: ['domain', 'views', 'readers', 'targets'],
  suite: ['backup'],
};
/** What specs are made with, and all that is run by them alone. */
const FIXTURES = '(\\.contract\\.ts$|/testing/)';
const TESTING = ['\\.spec\\.ts$', FIXTURES];

/** The boundaries of the architecture. Each is seen failing on a planted import in test/boundaries.spec.ts. */
export default {
  forbidden: [
    {
      name: 'deciders-stay-pure',
      comment: 'A decision is repeated on every retry and runs without Nest, so all it may use is other deciders and the error it refuses with.',
      severity: 'error',
      from: { path: '\\.decider\\.ts$' },
      to: { pathNot: '(\\.decider|domain-error)\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'ports-know-no-driver',
      comment: 'A port that names a driver has one adapter for ever.',
      severity: 'error',
      from: { path: '^libs/.*/(event-store|message-bus|read-models|short-lived|operation-transport|blobs)\\.ts$' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'privates-of-the-driver-in-one-place',
      comment: 'What a driver promises nobody may be gone with its next release: then one file is to be read again.',
      severity: 'error',
      from: { pathNot: ['^libs/event-sourcing/src/eventstoredb/driver\\.ts$', '^(libs/testing|test)/'] },
      to: { path: '@eventstore/db-client/generated/' },
    },
    {
      name: 'apps-do-not-import-apps',
      comment: 'Services become processes of their own; only the suite puts them together. The language they share is libs/contracts.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: '^apps/suite/' },
      to: { path: '^apps/', pathNot: '^apps/$1/', dependencyTypesNot: ['type-only'] },
    },
    ...Object.entries(SHARED).flatMap(([app, shared]) => [
      ...shared.map((folder, at) => beyond(app, `(${folder})`, shared.slice(0, at))),
      beyond(app, `((?!(?:${shared.join('|')})/)[^/]+)`, shared),
    ]),
    {
      name: 'libs-do-not-import-apps',
      comment: 'A library that knows a service cannot serve another.',
      severity: 'error',
      // libs/testing starts the whole suite.
      from: { path: '^libs/', pathNot: '^libs/testing/' },
      to: { path: '^apps/', dependencyTypesNot: ['type-only'] },
    },
    ...LIBS.slice(0, -1).map((lib, at) => ({
      name: 'libs-stand-on-lower-ones',
      comment: 'Libraries that know each other are one library. Nothing but apps imports libs/runtime, which puts a process together out of all others.',
      severity: 'error',
      from: { path: `^libs/${lib}/`, pathNot: TESTING },
      to: { path: `^libs/(${LIBS.slice(at + 1).join('|')})/` },
    })),
    {
      name: 'contracts-do-no-io',
      comment: 'The public language is loaded by every process, by the document generator and by tests: nothing in it may open a file or a socket.',
      severity: 'error',
      from: { path: '^libs/contracts/', pathNot: '\\.spec\\.ts$' },
      to: {
        path: '^(node:)?(child_process|cluster|dgram|dns|fs|http|http2|https|net|readline|repl|tls|worker_threads)(/|$)|node_modules/(lmdb|undici|fastify|pino)/',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'no-cycles',
      comment: 'Files of a cycle cannot be read, moved or tested one by one, be it types that close it.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'specs-are-not-imported',
      comment: 'Shared test code is a *.contract.ts or lives in libs/testing.',
      severity: 'error',
      from: {},
      to: { path: '\\.spec\\.ts$' },
    },
    {
      name: 'products-know-no-fixtures',
      comment: 'What only specs need lies in libs/testing, in a folder `testing` of an app, or is the contract of a port; nobody is served by it.',
      severity: 'error',
      from: { pathNot: [...TESTING, '^(bench|test)/'] },
      to: { path: FIXTURES },
    },
    {
      name: 'imports-resolve',
      comment: 'An import that is not found is not checked by any rule above.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)dist/' },
    tsConfig: { fileName: 'tsconfig.json' },
    // Without it type-only imports cannot be told apart.
    tsPreCompilationDeps: 'specify',
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['source', 'import', 'require', 'node', 'default', 'types'] },
  },
};

/** What a folder of an app may not import: whatever of the app is neither in it nor below it. */
function beyond(app, folder, below) {
  return {
    name: 'features-share-what-lies-below',
    comment: 'Features that import each other are one feature. What several need lies in a folder below them; the files beside the folders put them together.',
    severity: 'error',
    from: { path: `^apps/${app}/src/${folder}/`, pathNot: TESTING },
    to: { path: `^apps/${app}/src/`, pathNot: `^apps/${app}/src/(${['$1', ...below].join('|')})/` },
  };
}
