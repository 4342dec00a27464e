import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { ContainerEngine } from './container-engine.ts';
import { EngineMissing, type EngineDefinition } from './engine-definition.ts';
import type { Engine } from './engine.ts';
import { eventstore } from './eventstore.ts';
import { JavaLibraries } from './java.ts';
import { kafka } from './kafka.ts';
import { noteLeftOut } from './left-out.ts';
import { mongodb } from './mongodb.ts';
import { SmallReplicaSet } from './mongodb-set/small-replica-set.ts';
import { S3Server } from './s3-server.ts';
import { sharedEngine } from './shared-engine.ts';
import { startEngine } from './start-engine.ts';
import { WatchedDirectory } from './watched-directory.ts';

/**
 * Brokers for the specs of a file, as `KAFKA_BROKERS` names them. Other specs use them at the same time: topics and groups need names of their own.
 * Null where there are none: those specs are left out, and a line at the end of the run says so. `ENGINES=required` refuses that.
 */
export function givenKafka(): Promise<string | null> {
  return given(kafka);
}

/** A connection string to MongoDB, each time to a database that nobody else uses; null as above. */
export async function givenMongodb(): Promise<string | null> {
  const address = await given(mongodb);
  if (address === null) return null;
  return databaseAt(address);
}

/**
 * What makes the primary of the MongoDB above step down, as `rs.stepDown()` does. Null where there is none, and where it stands alone, as the server for tests does, since
 * then there is nobody to take over.
 */
export async function givenStepDown(): Promise<(() => Promise<void>) | null> {
  const address = await given(mongodb);
  if (address === null) return null;
  const client = new MongoClient(address);
  endings.push(() => client.close());
  const admin = client.db('admin');
  // The server for tests knows the older name alone.
  const { setName } = await admin.command({ isMaster: 1 });
  if (setName === undefined) return null;
  // It may have stepped down without saying so: its connections end.
  return () =>
    admin.command({ replSetStepDown: 2, secondaryCatchUpPeriodSecs: 1, force: true }).then(
      () => {},
      () => {},
    );
}

/** Members of a replica set, in front of MongoDB as above, which can be made to forget and to elect; null as above. */
export async function givenSmallReplicaSet(): Promise<SmallReplicaSet | null> {
  const address = await given(mongodb);
  if (address === null) return null;
  const set = await SmallReplicaSet.over(databaseAt(address));
  endings.push(() => set.close());
  return set;
}

/** A connection string to EventStoreDB, which other specs write to at the same time; null as above. */
export function givenEventstore(): Promise<string | null> {
  return given(eventstore);
}

/** One for the specs of this file alone, which may hurt it; null as above. It ends after them. */
export async function givenEngine(definition: EngineDefinition): Promise<Engine | null> {
  const directory = WatchedDirectory.create(`${definition.name}-spec`);
  endings.push(async () => directory.remove());
  const engine = await orLeftOut(definition, () => startEngine(definition, directory));
  if (engine !== null) endings.push(() => engine.close());
  return engine;
}

/** A store that speaks the protocol of S3, with one bucket, for the specs of this file alone; null as above. */
export async function givenS3(): Promise<S3Server | null> {
  const directory = WatchedDirectory.create('s3-spec');
  endings.push(async () => directory.remove());
  try {
    const server = await S3Server.start(directory);
    endings.push(() => server.kill());
    return server;
  } catch (error) {
    return leftOut('a store with the protocol of S3', error);
  }
}

/** Programs of a folder with a `pom.xml`, compiled, with the libraries that it names; null as above. */
export async function givenJavaLibraries(folder: string): Promise<JavaLibraries | null> {
  try {
    return await JavaLibraries.get(folder);
  } catch (error) {
    return leftOut(`the Java programs in ${folder}`, error);
  }
}

/** What was given to this file, by setting. */
const addresses = new Map<string, Promise<string | null>>();
/** What ends what was started for this file, in the order of starting. */
const endings: (() => Promise<void>)[] = [];

// Where this file is imported, so that it stands outside of any test or hook.
afterAll(async () => {
  for (const end of endings.reverse()) await end();
});

function given(definition: EngineDefinition): Promise<string | null> {
  const { setting } = definition;
  const known = addresses.get(setting) ?? found(definition);
  addresses.set(setting, known);
  return known;
}

async function found(definition: EngineDefinition): Promise<string | null> {
  const named = environmentVariables()[definition.setting];
  if (named !== undefined && named !== '') return named;
  return orLeftOut(definition, async () => {
    const container = await ContainerEngine.start(definition);
    if (container === null) return sharedEngine(definition);
    // A container goes with the process that started it, so other processes start their own.
    endings.push(() => container.close());
    return container.address;
  });
}

async function orLeftOut<Given>({ title, setting }: EngineDefinition, start: () => Promise<Given>): Promise<Given | null> {
  try {
    return await start();
  } catch (error) {
    return leftOut(`${title} (${setting} is not set, Docker does not answer)`, error);
  }
}

/** There may be several hosts, of which `URL` knows nothing. */
function databaseAt(address: string): string {
  const [, hosts, options = ''] = /^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?(\?.*)?$/.exec(address)!;
  return `${hosts}/test_${randomUUID().replaceAll('-', '').slice(0, 16)}${options}`;
}

/** @throws Error what else went wrong, and what is missing where nothing may be */
function leftOut(what: string, error: unknown): null {
  if (!(error instanceof EngineMissing)) throw error;
  const missing = `${what}: ${error.message}`;
  if (environmentVariables()['ENGINES'] === 'required') throw new Error(`ENGINES=required, and there is no ${missing}.`, { cause: error });
  noteLeftOut(missing);
  return null;
}
