import { availableParallelism } from 'node:os';
import { numberOf } from './seed.mjs';

/** A test waits, starts processes or computes: so many at a time for each processor keep it busy. */
const WAITING = 3;
const WORKING = 2;

/** Specs over HTTP that hurt nobody: each has an environment of its own on the cluster that all of them share. */
const shared = [
  'apps/audit-logs/src/retention/retention.spec.ts',
  'apps/audit-logs/src/trail/audit-events.spec.ts',
  'apps/authorization/src/assignments/group-role-assignments.spec.ts',
  'apps/authorization/src/assignments/role-assignments.spec.ts',
  'apps/authorization/src/guarded-pairs.spec.ts',
  'apps/authorization/src/model/organization-roles.spec.ts',
  'apps/authorization/src/model/permissions.spec.ts',
  'apps/authorization/src/model/resource-types.spec.ts',
  'apps/authorization/src/model/role-mappings.spec.ts',
  'apps/authorization/src/model/roles.spec.ts',
  'apps/authorization/src/resources/resources.spec.ts',
  'apps/directory-sync/src/scim/scim.spec.ts',
  'apps/identity/src/api-keys/api-keys.spec.ts',
  'apps/identity/src/directory-links/directory-links.spec.ts',
  'apps/identity/src/environments/environments.spec.ts',
  'apps/identity/src/groups/groups.spec.ts',
  'apps/identity/src/memberships/memberships.spec.ts',
  'apps/identity/src/organizations/organizations.spec.ts',
  'apps/identity/src/users/erasure.spec.ts',
  'apps/identity/src/users/users.spec.ts',
  'apps/notifications/src/webhook-endpoints/webhook-endpoints.spec.ts',
  'test/audit-exports.spec.ts',
  'test/isolation.spec.ts',
  'test/sdk.spec.ts',
];

/** As those, for which no commit has the time: the proof `cluster` runs them. */
const seldom = [
  'apps/audit-logs/src/streams/streams.spec.ts',
  'apps/directory-sync/src/directory-replicas.spec.ts',
  'apps/directory-sync/src/listings/listings.spec.ts',
  'apps/directory-sync/src/scim/scim-histories.spec.ts',
];

/** Specs over HTTP that restart its processes. */
const hurting = [
  'apps/audit-logs/src/administration/administration.spec.ts',
  'apps/audit-logs/src/streams/stream-replicas.spec.ts',
  'apps/authorization/src/checks/access-checks.spec.ts',
  'apps/identity/src/organizations/organization-domains.spec.ts',
];

/** As those, for which no commit has the time: the proof `cluster` runs them. */
const hurtingSeldom = ['test/cluster-directories.spec.ts'];

/** On every commit, on both clusters: how it was started. */
const started = 'test/deployed-start.spec.ts';
/** On every commit: one case for each operation. */
const onCluster = ['test/operations.spec.ts'];
const faults = ['test/cluster.spec.ts'];
const alerts = ['test/cluster-alerts.spec.ts'];
/** The control plane of Kubernetes, which has to be built first. */
const kubernetes = ['test/kubernetes.spec.ts'];

/** Three members of EventStoreDB's own server, which `EVENTSTORE_COMMAND` starts. */
const interrupted = ['test/interrupted-cluster.spec.ts'];

/** What takes more than this machine as it is, so that nothing runs it unless it is named. */
export const onlyWhereNamed = [started, ...onCluster, ...hurtingSeldom, ...faults, ...alerts, ...kubernetes, ...interrupted];

/** Specs that start engines and several products or programs, or fill what they start to its limits: up to a minute of both processors each. A commit runs one. */
const drawn = [
  'apps/authorization/src/model/largest-models.spec.ts',
  'apps/identity/src/largest-rows.spec.ts',
  'test/command-line.spec.ts',
  'test/damaged-log.spec.ts',
  'test/erased-people.spec.ts',
  'test/erased-rows-on-engines.spec.ts',
  'test/installations.spec.ts',
  'test/key-files.spec.ts',
  'test/restored-keys.spec.ts',
  'test/rolling-update.spec.ts',
];

/** Specs that hold one way to do a thing to its limits, beside a contract or slice that every commit runs: interleavings, servers that fail, replicas, kills. Up to a minute each. A commit runs a quarter. */
const limits = [
  'apps/audit-logs/src/retention/retention-on-engines.spec.ts',
  'apps/audit-logs/src/streams/stream-replicas.spec.ts',
  'apps/directory-sync/src/directory-replicas.spec.ts',
  'apps/directory-sync/src/listings/hung-listings.spec.ts',
  'apps/directory-sync/src/listings/interrupted-listings.spec.ts',
  'apps/directory-sync/src/people/hung-announcements.spec.ts',
  'apps/directory-sync/src/scim/scim-histories.spec.ts',
  'apps/notifications/src/webhook-deliveries/webhook-replicas.spec.ts',
  'libs/event-sourcing/src/deciding/claims.interleavings.spec.ts',
  'libs/event-sourcing/src/eventstoredb/damaged-streams.spec.ts',
  'libs/event-sourcing/src/eventstoredb/failing-servers.spec.ts',
  'libs/event-sourcing/src/eventstoredb/log-subscriptions.spec.ts',
  'libs/event-sourcing/src/eventstoredb/server-users.spec.ts',
  'libs/event-sourcing/src/following/log-reader.interleavings.spec.ts',
  'libs/event-sourcing/src/views/lmdb.replicas.spec.ts',
  'libs/event-sourcing/src/views/mongodb.replicas.spec.ts',
  'libs/messaging/src/kafka.faults.spec.ts',
  'libs/messaging/src/tcp.operation-server.spec.ts',
  'libs/read-models/src/mongodb.short-lived.spec.ts',
  'libs/read-models/src/shared-leases.spec.ts',
  'test/erased-rows.spec.ts',
  'test/interrupted.spec.ts',
  'test/killed-commands.spec.ts',
  'test/killed-streams.spec.ts',
  'test/start-refusals.spec.ts',
  'test/table-queries.spec.ts',
  'test/typed-sdks.spec.ts',
];

/** Those, and the ones that take more than that, for which no commit has the time: the proof `costly` runs them. */
export const costly = [
  ...drawn,
  ...limits,
  'test/cluster-restore.spec.ts',
  'test/hurt-directories.spec.ts',
  'test/killed-erasures.spec.ts',
  'test/killed-exports.spec.ts',
  'test/killed-listings.spec.ts',
];

/** Of the specs over HTTP a commit runs so many on the cluster, where embedded it runs all of them. */
const ONE_OF = 4;
/** Of the specs of limits a commit runs so many. */
const LIMITS_OF = 4;

/**
 * What runs together, by name (`SPECS`). Without a name: all that need no cluster.
 * `workers`: how many files at a time; on a cluster one, since it takes the whole machine.
 */
const suites = {
  waiting: { folders: ['libs'], workers: WAITING * availableParallelism() },
  working: { folders: ['apps', 'test'], workers: WORKING * availableParallelism() },
  shared: { paths: [started, ...onCluster, ...shared, ...seldom], always: [started, ...onCluster] },
  // Histories leave so much behind that nobody wants to be beside them.
  hurt: { paths: [started, ...hurting, ...hurtingSeldom, 'test/histories.spec.ts'], always: [started, 'test/histories.spec.ts'] },
  faults: { paths: faults, always: faults },
  alerts: { paths: alerts, always: alerts },
  kubernetes: { paths: kubernetes, always: kubernetes },
  interrupted: { paths: interrupted, always: interrupted },
};

/** What Jest is to run; `isEverything`: also what the seed leaves out. */
export function suiteOf(name, { seed, isEverything }) {
  const { folders = ['apps', 'libs', 'test'], workers = WORKING * availableParallelism(), paths, always } = suites[name] ?? {};
  if (paths === undefined) {
    const chosen = [...shareOf(drawn, drawn.length, seed), ...shareOf(limits, LIMITS_OF, seed)];
    const skipped = name === undefined || isEverything ? [] : costly.filter((path) => !chosen.includes(path));
    return { folders, workers: Math.ceil(workers), testMatch: ['**/*.spec.ts', ...[...onlyWhereNamed, ...skipped].map((path) => `!**/${path}`)] };
  }
  const chosen = isEverything ? paths : [...always, ...shareOf([...shared, ...hurting], ONE_OF, seed).filter((path) => paths.includes(path))];
  return { folders, workers: 1, testMatch: chosen.map((path) => `<rootDir>/${path}`) };
}

/** One of so many; of both suites together, since they are unequal. */
function shareOf(paths, oneOf, seed) {
  return [...paths].sort((one, other) => numberOf(seed, one) - numberOf(seed, other)).slice(0, Math.ceil(paths.length / oneOf));
}
