import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../process.ts';
import { EngineMissing } from './engine-definition.ts';

/** Of the engines. */
const ENGINES = join(ROOT, 'libs/testing/engines');
const CACHE = join(ROOT, 'node_modules/.cache/gatehouse-engines');
const OLDEST_JAVA = 17;
/** About 50 MB. */
const FETCH_MS = 300_000;
/** A program works in a folder that is removed, so nothing of it may stay in the system's own. */
const SHARED_FLAGS = ['-XX:+UseSerialGC', '-XX:-UsePerfData', '-Djava.io.tmpdir=.', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'];
const run = promisify(execFile);

/** A program that runs on Java. */
export interface JavaProgram {
  readonly main: string;
  /** Whether its main class is compiled here, and not part of a library. */
  readonly isOurs?: boolean;
  readonly flags?: readonly string[];
  readonly args: readonly string[];
}

/** A folder with the libraries that a `pom.xml` names, and the classes of the sources beside it. It is filled once, and known by the content of what it is made from. */
export class JavaLibraries {
  private constructor(
    private readonly sources: string,
    readonly folder: string,
  ) {}

  /** @throws EngineMissing */
  static async get(sources = ENGINES): Promise<JavaLibraries> {
    await requireJava();
    const hash = createHash('sha256');
    for (const file of ['pom.xml', ...programsIn(sources)]) hash.update(readFileSync(join(sources, file))).update('\0');
    const libraries = new JavaLibraries(sources, join(CACHE, hash.digest('hex').slice(0, 16)));
    await libraries.once('lib', (folder) => fetch(join(sources, 'pom.xml'), folder));
    if (programsIn(sources).length > 0) await libraries.once('classes', (folder) => libraries.compile(folder));
    return libraries;
  }

  command({ main, isOurs = false, flags = [], args }: JavaProgram): readonly string[] {
    const classes = [...(isOurs ? [join(this.folder, 'classes')] : []), join(this.folder, 'lib', '*')];
    return ['java', ...SHARED_FLAGS, ...flags, '-cp', classes.join(':'), main, ...args];
  }

  /** The same for the only library, which is a program with all that it needs. */
  commandOfJar(...flags: readonly string[]): readonly string[] {
    return ['java', ...SHARED_FLAGS, ...flags, '-jar', join(this.folder, 'lib', readdirSync(join(this.folder, 'lib'))[0]!)];
  }

  /** What `make` puts at a path, which is made once; elsewhere first and then renamed, since another process may do the same. */
  async once(name: string, make: (path: string) => Promise<void>): Promise<string> {
    const path = join(this.folder, name);
    if (existsSync(path)) return path;
    mkdirSync(this.folder, { recursive: true });
    const next = mkdtempSync(join(CACHE, 'next-'));
    try {
      await make(join(next, name));
      if (!existsSync(path)) renameSync(join(next, name), path);
    } catch (error) {
      if (!existsSync(path)) throw error;
    } finally {
      rmSync(next, { recursive: true, force: true });
    }
    return path;
  }

  private async compile(folder: string): Promise<void> {
    const lib = join(this.folder, 'lib');
    const programs = programsIn(this.sources).map((file) => join(this.sources, file));
    const jars = readdirSync(lib).map((file) => join(lib, file));
    const [program, ...words] = this.command({
      main: 'org.eclipse.jdt.internal.compiler.batch.Main',
      args: [`-${OLDEST_JAVA}`, '-nowarn', '-cp', jars.join(':'), '-d', folder, ...programs],
    });
    await run(program!, words);
  }
}

async function requireJava(): Promise<void> {
  const version = await run('java', ['-version']).then(
    ({ stderr }) => Number(/version "(?<major>\d+)/.exec(stderr)?.groups?.['major'] ?? 0),
    () => null,
  );
  if (version === null) throw new EngineMissing('there is no Java');
  if (version < OLDEST_JAVA) throw new EngineMissing(`Java ${OLDEST_JAVA} is needed, and this is ${version}`);
}

function programsIn(sources: string): readonly string[] {
  return readdirSync(sources)
    .filter((file) => file.endsWith('.java'))
    .sort();
}

async function fetch(pom: string, folder: string): Promise<void> {
  const words = ['-B', '-q', '-f', pom, 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`];
  try {
    await run('mvn', words, { timeout: FETCH_MS });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new EngineMissing('there is no Maven');
    throw new EngineMissing(
      `Maven could not fetch the libraries: ${
        String((error as { stdout?: string }).stdout ?? error)
          .trim()
          .split('\n')[0]
      }`,
    );
  }
}
