import { costly } from './suites.mjs';

/** Of these each commit runs a part. */
const shortened = ['apps/identity/src/directory-links/directory-standings.spec.ts', 'test/properties.spec.ts'];

/**
 * The parts of `npm run proofs`: what takes too long for every commit.
 * introduced  counts as the day on which it last held, until it is run
 * paths       what it says something of
 * lacks       what it cannot do without and is not here, by the variables of the run; null: nothing
 * steps       one after the other, those of a list at once, since each keeps one processor busy; each is a task of run.mjs. `counts`: how its numbers are read, as Jest's where nothing is said
 */
export const parts = {
  faults: {
    what: 'a cluster under load, whose processes and engines are killed and paused',
    introduced: '2026-11-22',
    paths: ['apps', 'libs', 'test/cluster.spec.ts', 'test/cluster', 'test/torture'],
    steps: () => [{ task: ['faults'] }],
  },
  interrupted: {
    what: "EventStoreDB's own server, three members: the leader killed and frozen under writers and followers, and all of it held to what was acknowledged",
    introduced: '2026-11-22',
    paths: ['libs/event-sourcing/src/eventstoredb', 'test/interrupted', 'test/interrupted-cluster.spec.ts'],
    lacks: ({ EVENTSTORE_COMMAND = '' }) =>
      ['{data}', '{port}', '{cluster_size}', '{gossip_seeds}'].every((each) => EVENTSTORE_COMMAND.includes(each))
        ? null
        : 'EVENTSTORE_COMMAND, which starts a member of a cluster of EventStoreDB (libs/testing/README.md)',
    steps: () => [{ task: ['interrupted'] }],
  },
  alerts: {
    what: 'the alert rules over a cluster that is hurt',
    introduced: '2026-11-22',
    paths: ['apps', 'libs', 'k8s', 'test/cluster-alerts.spec.ts'],
    steps: () => [{ task: ['alerts'] }],
  },
  kubernetes: {
    what: 'both overlays on the control plane of Kubernetes: installed, changed, upgraded, scaled, drained',
    introduced: '2026-11-22',
    paths: ['k8s', 'docs/operations.md', 'test/deployment', 'libs/testing/src/deployment/manifests.ts', 'test/kubernetes.spec.ts'],
    steps: () => [{ task: ['kubernetes'] }],
  },
  histories: {
    what: '500 random histories, every answer held to the log',
    introduced: '2026-11-22',
    paths: ['apps', 'libs', 'test/histories.spec.ts', 'test/histories', 'test/chance.ts'],
    steps: (numberOf) => [[0, 1].map((half) => histories(250, numberOf(`histories ${half}`)))],
  },
  'sign-in-model': {
    what: '300 random stories of people who sign in, every answer held to a model of it',
    introduced: '2026-11-23',
    paths: ['apps/gateway', 'apps/identity', 'libs', 'test/sign-in-model.spec.ts', 'test/sign-in', 'test/chance.ts'],
    steps: (numberOf) => [[0, 1].map((half) => signIns(150, numberOf(`sign-ins ${half}`)))],
  },
  'planted-bugs': {
    what: 'ten bugs of sign-in, planted one at a time, each of which the stories of its model have to find',
    introduced: '2026-11-23',
    paths: ['apps/identity', 'libs', '.ci/mutations.mjs', 'test/sign-in-model.spec.ts', 'test/sign-in', 'test/chance.ts'],
    steps: () => [{ task: ['mutations', '--planted'], counts: printed }],
  },
  'scim-histories': {
    what: '1,000 random histories of directories by SCIM and by full listings, held to a model of people, groups, memberships, checks and events',
    introduced: '2026-11-23',
    paths: ['apps/directory-sync', 'apps/identity', 'apps/authorization', 'libs'],
    steps: (numberOf) => [[0, 1].map((half) => scimHistories(500, numberOf(`scim-histories ${half}`)))],
  },
  torture: {
    what: '1,000 rounds of kill -9 under load',
    introduced: '2026-11-22',
    paths: ['apps', 'libs', 'test/torture.ts', 'test/torture', 'test/chance.ts'],
    steps: (numberOf) => [[0, 1].map((half) => rounds(500, numberOf(`torture ${half}`)))],
  },
  cluster: {
    what: 'every spec over HTTP on a cluster',
    introduced: '2026-11-22',
    paths: ['apps', 'libs', 'test/operations.spec.ts', 'test/isolation.spec.ts', 'test/sdk.spec.ts', 'test/histories.spec.ts', 'test/histories'],
    steps: () => ['shared', 'hurt'].map((suite) => ({ task: [suite], variables: { EVERYTHING: 'on' } })),
  },
  costly: {
    what: 'every spec that starts engines and several products, or fills them to their limits, and generated requests to every operation',
    introduced: '2026-11-22',
    paths: ['apps', 'libs', ...shortened, ...costly],
    // Interleavings have a part of their own, and more of them there.
    steps: () => [
      {
        task: ['working', ...costly.filter((path) => path.startsWith('test/') || path.startsWith('apps/')), ...shortened],
        variables: { EVERYTHING: 'on' },
      },
      { task: ['waiting', ...costly.filter((path) => path.startsWith('libs/') && !path.includes('interleavings'))], variables: { EVERYTHING: 'on' } },
    ],
  },
  mutations: {
    what: 'one condition negated or one throw dropped at a time, which the specs of its file are to notice; survivors are listed',
    introduced: '2026-11-22',
    paths: ['apps', 'libs/event-sourcing/src/deciding/log.repository.ts'],
    steps: () => [{ task: ['mutations'], counts: printed }],
  },
  interleavings: {
    what: 'the orders of the steps of processes that meet: of two of them all, of three 150,000 states',
    introduced: '2026-11-22',
    paths: ['apps/authorization', 'libs/event-sourcing', 'libs/platform', 'libs/read-models'],
    steps: () => [{ task: ['test', '\\.?interleavings\\.spec\\.ts$'], variables: { EVERYTHING: 'on' } }],
  },
};

function histories(count, seed) {
  return { task: ['working', 'test/histories.spec.ts'], variables: { HISTORIES: String(count), HISTORIES_SEED: String(seed) } };
}

function signIns(count, seed) {
  return { task: ['working', 'test/sign-in-model.spec.ts'], variables: { SIGN_INS: String(count), SIGN_INS_SEED: String(seed) } };
}

function scimHistories(count, seed) {
  return {
    task: ['working', 'apps/directory-sync/src/scim/scim-histories.spec.ts'],
    variables: { SCIM_HISTORIES: String(count), SCIM_HISTORIES_SEED: String(seed) },
  };
}

function rounds(count, seed) {
  return { task: ['torture', '--rounds', String(count), '--seed', String(seed)], counts: printed };
}

/** Of the last line, `name: 12, other: 3`. */
function printed(output) {
  return Object.fromEntries(
    [
      ...output
        .trim()
        .split('\n')
        .at(-1)
        .matchAll(/(\w+): (\d+)/g),
    ].map(([, name, count]) => [name, Number(count)]),
  );
}
