import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../process.ts';
import { EngineMissing } from './engine.ts';

const SOURCES = join(ROOT, 'libs/testing/engines');
const CACHE = join(ROOT, 'node_modules/.cache/gatehouse-engines');
const OLDEST_JAVA = 17;
/** Fetching is about 50 MB. */
const FETCH_MS = 300_000;
const run = promisify(execFile);

/**
 * The words that start a main class of the engines' libraries. They are fetched and compiled once, and kept by the content of what asks for them.
 * @throws EngineMissing
 */
export async function java(main: string, megabytes: number, ...args: readonly string[]): Promise<readonly string[]> {
  const libraries = await resolved();
  const classes = [join(libraries, 'classes'), join(libraries, 'lib', '*')].join(':');
  // It works in a folder that is removed: nothing of it may stay in the system's own.
  const flags = [`-Xmx${megabytes}m`, '-XX:+UseSerialGC', '-XX:-UsePerfData', '-Djava.io.tmpdir=.', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'];
  return ['java', ...flags, '-cp', classes, main, ...args];
}

async function resolved(): Promise<string> {
  await requireJava();
  const hash = createHash('sha256');
  for (const file of ['pom.xml', 'MongodbServer.java']) hash.update(readFileSync(join(SOURCES, file))).update('\0');
  const libraries = join(CACHE, hash.digest('hex').slice(0, 16));
  if (!existsSync(libraries)) await resolve(libraries);
  return libraries;
}

async function requireJava(): Promise<void> {
  const version = await run('java', ['-version']).then(
    ({ stderr }) => Number(/version "(?<major>\d+)/.exec(stderr)?.groups?.['major'] ?? 0),
    () => null,
  );
  if (version === null) throw new EngineMissing('there is no Java');
  if (version < OLDEST_JAVA) throw new EngineMissing(`Java ${OLDEST_JAVA} is needed, and this is ${version}`);
}

/** Elsewhere first and then renamed, since another process may do the same. */
async function resolve(libraries: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const next = mkdtempSync(`${libraries}-`);
  try {
    await fetch(join(next, 'lib'));
    const jars = readdirSync(join(next, 'lib')).map((file) => join(next, 'lib', file));
    const compiler = ['-cp', jars.join(':'), 'org.eclipse.jdt.internal.compiler.batch.Main', `-${OLDEST_JAVA}`];
    await run('java', [...compiler, '-cp', jars.join(':'), '-d', join(next, 'classes'), join(SOURCES, 'MongodbServer.java')]);
    renameSync(next, libraries);
  } catch (error) {
    rmSync(next, { recursive: true, force: true });
    if (!existsSync(libraries)) throw error;
  }
}

async function fetch(folder: string): Promise<void> {
  const words = ['-B', '-q', '-f', join(SOURCES, 'pom.xml'), 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`];
  try {
    await run('mvn', words, { timeout: FETCH_MS });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new EngineMissing('there is no Maven');
    throw new EngineMissing(
      `Maven could not fetch the engines: ${
        String((error as { stdout?: string }).stdout ?? error)
          .trim()
          .split('\n')[0]
      }`,
    );
  }
}
