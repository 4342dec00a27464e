import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings, KafkaSettings } from '#libs/platform/src/config/settings';
import type { AppContainer, Deployed, EnginePorts } from '../deployment/app-container.ts';
import { mongodbUsers } from '../deployment/compose.ts';
import type { EngineUser } from '../engines/engine.ts';
import { eventstore, startGuardedEventstore } from '../engines/eventstore.ts';
import { kafka, startGuardedKafka } from '../engines/kafka.ts';
import { mongodb, startGuardedMongodb } from '../engines/mongodb.ts';
import { StartedEngines, type EngineStart } from '../engines/start-engine.ts';
import type { WatchedDirectory } from '../engines/watched-directory.ts';

interface Where {
  readonly directory: WatchedDirectory;
  readonly ports: EnginePorts;
  readonly say: (line: string) => void;
}

/** Engines as the containers expect them: in the open or behind TLS, and with the users whom they are told to be. @throws EngineMissing */
export function startGuardedEngines(deployed: Deployed, { directory, ports, say }: Where): Promise<StartedEngines> {
  const containers = [...deployed.apps, ...deployed.jobs].map((container) => ({ container, ...readSettings(EngineSettings, container.variables) }));
  const tlsWhere = (isWanted: boolean): Deployed['tls'] => (isWanted ? deployed.tls! : null);

  const logs = containers.map(({ container, EVENTSTORE_URL }) => ({ container, url: new URL(EVENTSTORE_URL!.replace(/^esdb:/, 'http:')) }));
  const records = new Set(logs.flatMap(({ container, url }) => (isService(container) ? [url.username] : [])));
  const ofLog = distinct(logs.map(({ url }) => userOf(url))).map((user) => ({ ...user, isReader: !records.has(user.name) }));

  const rows = containers.map(({ container, MONGODB_URL }) => ({ container, url: new URL(MONGODB_URL!) }));
  const stores = new Set(rows.flatMap(({ container, url }) => (container.name === 'gateway' ? [] : [url.username])));
  const ofRows = distinct(rows.map(({ url }) => userOf(url))).map((user) => ({ ...user, rights: stores.has(user.name) ? null : gatewayRights() }));
  const { searchParams } = rows[0]!.url;

  const announcing = containers.find(({ container }) => isService(container) && 'KAFKA_USERNAME' in container.variables)!.container;
  const { KAFKA_TLS, KAFKA_SASL_MECHANISM, KAFKA_USERNAME, KAFKA_PASSWORD } = readSettings(KafkaSettings, announcing.variables);
  const ofAnnouncements = [{ name: KAFKA_USERNAME!, password: KAFKA_PASSWORD! }];

  const starts: readonly EngineStart[] = [
    {
      definition: eventstore,
      start: () => startGuardedEventstore(directory, { port: ports.eventstore, tls: tlsWhere(logs[0]!.url.searchParams.get('tls') !== 'false'), users: ofLog }),
    },
    {
      definition: mongodb,
      start: () =>
        startGuardedMongodb(directory, {
          port: ports.mongodb,
          tls: tlsWhere(searchParams.get('tls') === 'true'),
          users: ofRows,
          database: containers[0]!.INSTALLATION,
          authSource: searchParams.get('authSource')!,
          replicaSet: searchParams.get('replicaSet'),
        }),
    },
    {
      definition: kafka,
      start: () => startGuardedKafka(directory, { port: ports.kafka, tls: tlsWhere(KAFKA_TLS), users: ofAnnouncements, mechanism: KAFKA_SASL_MECHANISM }),
    },
  ];
  return StartedEngines.startAll(starts, { variables: announcing.variables, directory, say });
}

/** The others record nothing. */
function isService({ name }: AppContainer): boolean {
  return !['gateway', 'views-fill'].includes(name);
}

/** Nobody, where the connection string has no name. */
function userOf({ username, password }: URL): EngineUser | null {
  return username === '' ? null : { name: decodeURIComponent(username), password: decodeURIComponent(password) };
}

function distinct(users: readonly (EngineUser | null)[]): readonly EngineUser[] {
  return [...new Map(users.flatMap((user) => (user === null ? [] : [[user.name, user] as const]))).values()];
}

/** As Compose gives them, and as they are asked for of whoever makes the user elsewhere. */
function gatewayRights(): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(mongodbUsers({}).roles['gateway']!.privileges.map(({ resource, actions }) => [resource.collection, actions]));
}
