import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/* oxlint-disable typescript/no-explicit-any -- what runs without being built says nothing of its types */

const root = process.cwd();
const load = (name: string): Promise<any> => import(pathToFileURL(join(root, '.ci', name)).href);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-ci-'));
  cpSync(join(root, '.ci'), join(folder, '.ci'), { recursive: true });
  rmSync(join(folder, '.ci/proofs'), { recursive: true, force: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

function git(...words: readonly string[]): void {
  execFileSync('git', ['-c', 'user.name=spec', '-c', 'user.email=spec@acme.test', '-c', 'commit.gpgsign=false', ...words], { cwd: folder, stdio: 'ignore' });
}

function commit(): void {
  git('add', '--all');
  git('commit', '--no-verify', '--message', 'More');
}

/** Runs a program of the copy, as a machine does that knows nothing of this run. */
function run(program: string, ...given: readonly (string | Record<string, string>)[]): { readonly code: number | null; readonly said: string } {
  const words = given.filter((each) => typeof each === 'string');
  const env = Object.assign({ PATH: pathOfPrograms() }, ...given.filter((each) => typeof each !== 'string')) as Record<string, string>;
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], { cwd: folder, encoding: 'utf8', env });
  return { code: status, said: stdout + stderr };
}

function pathOfPrograms(): string {
  // Of node and git.
  return [dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(':');
}

describe('the seed of a run', () => {
  const seed = (): string => {
    write({ 'say.mjs': `import { seedOfTree } from './.ci/seed.mjs'; console.log(seedOfTree());` });
    return run('say.mjs').said.trim();
  };

  it('is the same for the same commit, and another one for the next', () => {
    write({ 'say.mjs': '', 'apps/one.ts': '1' });
    git('init', '--initial-branch=main');
    commit();
    const first = seed();
    expect(first).toMatch(/^[0-9a-f]{12}$/);
    write({ 'apps/one.ts': '2' });
    expect(seed()).toBe(first);
    commit();
    const second = seed();
    expect(second).not.toBe(first);
    write({ 'apps/one.ts': '1', 'say.mjs': '' });
    commit();
    expect(seed()).toBe(first);
  });

  it('is that of the files where there is no commit, also inside of another checkout', () => {
    write({ 'apps/one.ts': '1' });
    const alone = seed();
    expect(alone).toMatch(/^[0-9a-f]{12}$/);
    write({ 'apps/one.ts': '2' });
    expect(seed()).not.toBe(alone);
    write({ 'apps/one.ts': '1' });
    const inner = mkdtempSync(join(folder, 'archive-'));
    cpSync(join(folder, '.ci'), join(inner, '.ci'), { recursive: true });
    for (const path of ['apps', 'say.mjs']) cpSync(join(folder, path), join(inner, path), { recursive: true });
    git('init', '--initial-branch=main');
    commit();
    expect(run(join(inner, 'say.mjs')).said.trim()).toBe(alone);
  });
});

describe('what a commit runs of the costly specs', () => {
  const left = async (seed: string, isEverything = false, name = 'working'): Promise<readonly string[]> => {
    const { costly, suiteOf } = await load('suites.mjs');
    const { testMatch } = suiteOf(name || undefined, { seed, isEverything });
    return (costly as readonly string[]).filter((path) => !testMatch.includes(`!**/${path}`));
  };

  /** They take longer than a commit has time for. */
  const proven = [
    'test/cluster-restore.spec.ts',
    'test/hurt-directories.spec.ts',
    'test/killed-erasures.spec.ts',
    'test/killed-exports.spec.ts',
    'test/killed-listings.spec.ts',
  ];

  it('is one of the costliest and a quarter of those of limits, others by and by, but for the longest; whoever names them, or asks for everything, has all', async () => {
    const all = await left('', true);
    const counts = new Set<number>();
    const met = new Set<string>();
    for (let seed = 0; seed < 40; seed++) {
      const some = await left(`seed ${seed}`);
      counts.add(some.length);
      for (const path of some) met.add(path);
    }
    const [count, ...others] = counts;
    expect([count! > 1, count! < all.length / 3, others]).toEqual([true, true, []]);
    expect(met).toEqual(new Set(all.filter((path) => !proven.includes(path))));
    // As where Jest is called with a path.
    expect(await left('seed', false, '')).toEqual(all);
    for (const path of all) expect([path, existsSync(join(root, path))]).toEqual([path, true]);
  });
});

describe('what a commit runs on a cluster', () => {
  const chosen = async (seed: string, isEverything = false): Promise<readonly string[]> => {
    const { suiteOf } = await load('suites.mjs');
    return ['shared', 'hurt'].flatMap((name) => suiteOf(name, { seed, isEverything }).testMatch);
  };

  const seldom = [
    'streams/streams.spec.ts',
    'directory-replicas.spec.ts',
    'listings/listings.spec.ts',
    'scim-histories.spec.ts',
    'cluster-directories.spec.ts',
  ];
  /** But for those, which a proof runs. */
  const drawn = async (): Promise<readonly string[]> => {
    const everything = await chosen('', true);
    const all = everything.filter((path) => !seldom.some((each) => path.endsWith(each)));
    expect(everything.length - all.length).toBe(seldom.length);
    return all;
  };

  it('is a quarter of the specs over HTTP, and always those of every operation, the histories, and on both clusters how they start', async () => {
    const always = ['deployed-start', 'operations', 'deployed-start', 'histories'].map((name) => `<rootDir>/test/${name}.spec.ts`);
    const all = await drawn();
    const some = await chosen('a seed');
    expect(await chosen('a seed')).toEqual(some);
    expect(all).toEqual(expect.arrayContaining([...some]));
    expect(some.length - always.length).toBe(Math.ceil((all.length - always.length) / 4));
    for (const seed of ['a', 'b', 'c']) {
      const those = (await chosen(seed)).filter((path) => always.includes(path));
      expect(those).toEqual(always);
    }
  });

  it('goes round', async () => {
    const met = new Set<string>();
    for (let seed = 0; seed < 40; seed++) for (const path of await chosen(`seed ${seed}`)) met.add(path);
    expect(met).toEqual(new Set(await drawn()));
  });

  it('is there', async () => {
    for (const path of await chosen('', true)) expect([path, existsSync(path.replace('<rootDir>', root))]).toEqual([path, true]);
  });
});

it('the longest specs begin first, and before them those that nobody has measured', async () => {
  const { default: LongestFirst } = await load('longest-first.mjs');
  const durations = JSON.parse(readFileSync(join(root, '.ci/durations.json'), 'utf8')) as Readonly<Record<string, number>>;
  const known = Object.entries(durations).sort(([, one], [, other]) => other - one);
  const context = { config: { rootDir: root } };
  const paths = [known.at(-1)![0], 'test/new.spec.ts', known[0]![0], known[20]![0]];
  const sorted = new LongestFirst().sort(paths.map((path) => ({ path: join(root, path), context })));
  expect(sorted.map(({ path }: { readonly path: string }) => path.slice(root.length + 1))).toEqual([
    'test/new.spec.ts',
    known[0]![0],
    known[20]![0],
    known.at(-1)![0],
  ]);
});

describe('npm run proofs', () => {
  const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  /** A step whose numbers are those that `run.mjs` prints or writes. */
  const given = (introduced: number, program: string): void =>
    write({
      'apps/one.ts': '1',
      '.ci/parts.mjs': `export const parts = { it: { what: 'that it holds', introduced: '${day(introduced)}', paths: ['apps'], steps: () => [{ task: ['it'] }] } };`,
      'run.mjs': `import { writeFileSync } from 'node:fs';
        const file = process.argv.find((word) => word.startsWith('--outputFile='))?.slice(13);
        ${program}`,
    });
  const results = (numbers: object): string =>
    `writeFileSync(file, JSON.stringify(${JSON.stringify({ numPassedTests: 3, numFailedTests: 0, numPendingTests: 0, numRuntimeErrorTestSuites: 0, ...numbers })}));`;
  const check = () => run('.ci/proofs.mjs', '--check');
  const record = (): any => JSON.parse(readFileSync(join(folder, '.ci/proofs/it.json'), 'utf8'));

  it('notes what held, which is asked for again when it is old or changed', () => {
    given(0, results({}));
    expect(check()).toEqual({ code: 0, said: expect.stringMatching(/^WARNING: the proof it has NEVER been run/) });
    expect(run('.ci/proofs.mjs', 'it')).toMatchObject({ code: 0 });
    expect(record()).toEqual({
      tree: expect.stringMatching(/^[0-9a-f]{12}$/),
      date: day(0),
      seed: expect.any(String),
      seconds: expect.any(Number),
      counts: { passed: 3, failed: 0 },
    });
    expect(check()).toEqual({ code: 0, said: '' });
    write({ 'apps/one.ts': '2' });
    expect(check()).toEqual({ code: 0, said: expect.stringMatching(/^WARNING: .* has changed since\.\n$/) });
    write({ 'apps/one.ts': '1', '.ci/proofs/it.json': JSON.stringify({ ...record(), date: day(15) }) });
    expect(check()).toEqual({ code: 0, said: expect.stringMatching(/^WARNING: .* 15 days ago/) });
    write({ '.ci/proofs/it.json': JSON.stringify({ ...record(), date: day(46) }) });
    expect(check()).toEqual({ code: 1, said: expect.stringMatching(/^FAILED: .* 46 days ago/) });
    write({ '.ci/proofs/it.json': JSON.stringify({ ...record(), date: 'some day' }) });
    expect(check()).toMatchObject({ code: 1 });
  });

  it('demands what was never run, 45 days after it was thought of', () => {
    given(45, results({}));
    expect(check()).toMatchObject({ code: 0 });
    given(46, results({}));
    expect(check()).toEqual({ code: 1, said: expect.stringMatching(/^FAILED: .* NEVER/) });
  });

  it.each([
    ['failed', results({ numFailedTests: 1 })],
    ['was skipped', results({ numPendingTests: 1 })],
    ['could not be read', results({ numRuntimeErrorTestSuites: 1 })],
    ['was not there', results({ numPassedTests: 0 })],
    ['never got to its end', 'process.exitCode = 1;'],
    ['changed what it is about', `${results({})} writeFileSync('apps/one.ts', '2');`],
  ])('notes nothing where something %s', (_, program) => {
    given(0, program);
    expect(run('.ci/proofs.mjs')).toMatchObject({ code: 1 });
    expect(existsSync(join(folder, '.ci/proofs/it.json'))).toBe(false);
  });

  it('runs nothing that this machine lacks something for, says so, and takes it for no proof', () => {
    given(46, results({}));
    const parts = readFileSync(join(folder, '.ci/parts.mjs'), 'utf8');
    const lacking = parts.replace('steps:', `lacks: ({ SERVER }) => (SERVER === undefined ? 'SERVER' : null), steps:`);
    write({
      '.ci/parts.mjs': lacking.replace(' };', `, other: { what: 'another', introduced: '${day(0)}', paths: ['apps'], steps: () => [{ task: ['it'] }] } };`),
    });
    const all = run('.ci/proofs.mjs');
    expect(all).toEqual({ code: 0, said: expect.stringContaining('== it: NOT RUN, and not noted as held: there is no SERVER.') });
    expect(all.said.trim().split('\n').slice(-2)).toEqual(['other: all held.', 'NOT RUN: it.']);
    expect(existsSync(join(folder, '.ci/proofs/it.json'))).toBe(false);
    expect(run('.ci/proofs.mjs', 'it')).toMatchObject({ code: 1 });
    // Nothing lands later for the lack of a server that most machines cannot have.
    expect(check()).toEqual({
      code: 0,
      said: expect.stringMatching(/^WARNING: the proof it has NEVER been run, .* it cannot be run here: there is no SERVER\.$/m),
    });
    const here = run('.ci/proofs.mjs', '--check', { SERVER: 'there' });
    expect(here).toEqual({ code: 1, said: expect.stringMatching(/^FAILED: the proof it has NEVER/m) });
    expect(run('.ci/proofs.mjs', 'it', { SERVER: 'there' })).toMatchObject({ code: 0 });
    expect(record()).toMatchObject({ counts: { passed: 3 } });
  });

  it('keeps the seeds that failed, each once', () => {
    write({ '.ci/failed-seeds.json': '{ "histories": [7], "torture": [] }' });
    given(
      0,
      `console.error('History 7: was answered\\n  Error: History 8: was answered\\ntorture: Torture 9: lost\\nError: Sign-in story 10: was answered'); process.exitCode = 1;`,
    );
    run('.ci/proofs.mjs', 'it');
    expect(JSON.parse(readFileSync(join(folder, '.ci/failed-seeds.json'), 'utf8'))).toEqual({ histories: [7, 8], torture: [9], 'sign-ins': [10] });
  });

  it('knows its parts', () => {
    given(0, results({}));
    expect(run('.ci/proofs.mjs', 'that')).toEqual({ code: 1, said: expect.stringContaining('There is no part that.') });
  });
});

describe('.ci/run', () => {
  const suites = ['waiting', 'working', 'shared', 'hurt'];
  const numbers = { numPassedTests: 3, numFailedTests: 0, numPendingTests: 0, numRuntimeErrorTestSuites: 0 };
  /** On a machine that lacks nothing; each task of run.mjs ends with 0, and each suite with three tests that passed, unless `instead` says otherwise. */
  const ci = (instead: Readonly<Record<string, number | object>> = {}): { readonly code: number | null; readonly lines: readonly string[] } => {
    write({
      'run.mjs': `import { writeFileSync } from 'node:fs';
        const [task, ...words] = process.argv.slice(2);
        const answers = [${JSON.stringify({ ...Object.fromEntries(suites.map((suite) => [suite, numbers])), ...instead })}[task] ?? 0].flat();
        const found = answers.at(words.some((word) => word.endsWith('.spec.ts')) ? 1 : 0);
        if (typeof found === 'number') process.exit(found);
        console.error(process.env.TMPDIR === undefined ? 'SPECS nowhere' : 'DATA ' + process.env.TMPDIR);
        console.error(['SPECS', task, process.env.ENGINES, ...words.filter((word) => word.endsWith('.spec.ts'))].join(' '));
        writeFileSync(words.find((word) => word.startsWith('--outputFile=')).slice(13), JSON.stringify(found));
        process.exit(found.numFailedTests > 0 ? 1 : 0);`,
      '.ci/deployment-tools': '#!/bin/sh\n',
    });
    for (const program of ['chromium', 'java', 'mvn', 'oathtool']) write({ [`bin/${program}`]: '#!/bin/sh\n' });
    execFileSync('chmod', ['-R', '+x', 'bin', '.ci/run', '.ci/deployment-tools'], { cwd: folder });
    const path = `${join(folder, 'bin')}:${pathOfPrograms()}`;
    const { status, stdout, stderr } = spawnSync(join(folder, '.ci/run'), [], { cwd: tmpdir(), encoding: 'utf8', env: { PATH: path, HOME: folder } });
    return { code: status, lines: `${stderr}${stdout}`.trim().split('\n') };
  };

  it('ends with what passed and what failed, stages and tests together, and says how long installing took', () => {
    const { code, lines } = ci();
    expect([code, lines.at(-1)]).toEqual([0, '28 passed, 0 failed']);
    expect(lines.at(-3)).toMatch(/^\d+ s for installing, \d+ s for everything else; \d+ s of processors, beside those of clusters\.$/);
    expect(lines.filter((line) => line.startsWith('SPECS'))).toEqual(suites.map((suite) => `SPECS ${suite} required`));
  });

  it('gives specs one folder for their data, which is gone at its end', () => {
    const folders = new Set(ci().lines.flatMap((line) => /^DATA (.+)$/.exec(line)?.[1] ?? []));
    expect(folders.size).toBe(1);
    expect([...folders].map((path) => existsSync(path))).toEqual([false]);
  });

  it('fails where one test was skipped', () => {
    const { code, lines } = ci({ shared: { ...numbers, numPendingTests: 1 } });
    expect([code, lines.at(-1)]).toEqual([1, '27 passed, 2 failed']);
  });

  /** What Jest says of files whose tests ended so. */
  const resultsOf = (files: Readonly<Record<string, readonly ('passed' | 'failed' | 'pending')[]>>): object => {
    const all = Object.values(files).flat();
    const numberOf = (status: string): number => all.filter((each) => each === status).length;
    return {
      numPassedTests: numberOf('passed'),
      numFailedTests: numberOf('failed'),
      numPendingTests: numberOf('pending'),
      numRuntimeErrorTestSuites: Object.values(files).filter((tests) => tests.length === 0).length,
      testResults: Object.entries(files).map(([name, tests]) => ({
        name: join(folder, name),
        status: tests.length === 0 || tests.includes('failed') ? 'failed' : 'passed',
        assertionResults: tests.map((status) => ({ status })),
      })),
    };
  };

  it('runs a file that failed once more, and tells of what passes only then', () => {
    const working = [
      resultsOf({ 'a.spec.ts': ['passed', 'failed'], 'b.spec.ts': ['passed'], 'c.spec.ts': [] }),
      resultsOf({ 'a.spec.ts': ['passed', 'passed'], 'c.spec.ts': [] }),
    ];
    const { code, lines } = ci({ working });
    expect(lines.filter((line) => line.startsWith('SPECS working'))).toEqual(['SPECS working required', 'SPECS working required a.spec.ts c.spec.ts']);
    expect(lines.filter((line) => line.startsWith('WARNING'))).toEqual([
      'WARNING: a.spec.ts failed, and passed when it was run once more alone: it is to be mended.',
    ]);
    expect([code, lines.at(-1)]).toEqual([1, '27 passed, 2 failed']);
  });

  it('takes what passes the second time, of three files in all', () => {
    const [failed, held] = [resultsOf({ 'a.spec.ts': ['failed'], 'b.spec.ts': ['failed'] }), resultsOf({ 'a.spec.ts': ['passed'], 'b.spec.ts': ['passed'] })];
    const twice = ci({ waiting: [failed, held] });
    expect([twice.code, twice.lines.at(-1)]).toEqual([0, '27 passed, 0 failed']);
    const fourTimes = ci({ waiting: [failed, held], working: [failed, held] });
    expect([fourTimes.code, fourTimes.lines.at(-1)]).toEqual([1, '23 passed, 3 failed']);
  });

  it('counts whatever fails, and goes on', () => {
    const { code, lines } = ci({
      install: 1,
      boundaries: 1,
      // Jest is ended before it has counted.
      waiting: 137,
      working: { ...numbers, numFailedTests: 2 },
      shared: { ...numbers, numRuntimeErrorTestSuites: 1 },
      hurt: { ...numbers, numPassedTests: 0 },
      proofs: 1,
    });
    expect([code, lines.at(-1)]).toEqual([1, '15 passed, 11 failed']);
    expect(lines.filter((line) => /^== .* (passed|FAILED) \(/.test(line))).toHaveLength(16);
  });
});

describe('npm run check:changed', () => {
  beforeEach(() => {
    write({
      'libs/contracts/src/things/operations.ts': 'export class CreateThing {}',
      'libs/contracts/src/things/operations.spec.ts': `import { CreateThing } from './operations.ts';`,
      'libs/platform/src/clock.ts': 'export const clock = 1;',
      'libs/platform/src/clock.spec.ts': `import { clock } from './clock.ts';`,
      'libs/platform/src/words.ts': `import type { clock } from './clock.ts';`,
      'libs/platform/src/words.spec.ts': `import './words.ts';`,
      'apps/shop/src/domain/thing.decider.ts': 'export const thing = 1;',
      'apps/shop/src/things/things.ts': `import { thing } from '../domain/thing.decider.ts';\nimport { CreateThing } from '#libs/contracts/src/things/operations';\nimport { clock } from '#libs/platform/src/clock';\n@Handles(CreateThing)`,
      'apps/shop/src/things/things.replicas.spec.ts': `const { things } = await import('./things.ts');`,
      'apps/shop/src/things/things.spec.ts': `import { givenSuite } from '#libs/testing/src/suite';`,
      'apps/shop/src/app.module.ts': `export { things } from './things/things.ts';`,
      'apps/suite/src/suite.ts': `import '#apps/shop/src/app.module';`,
      'apps/shop/src/other/other.spec.ts': `import { givenSuite } from '#libs/testing/src/suite';`,
      'libs/testing/src/suite.ts': `import { Suite } from '#apps/suite/src/suite';`,
      'test/properties.spec.ts': `import { givenSuite } from '#libs/testing/src/suite';`,
      'test/compose.spec.ts': `readFileSync('docker-compose.yml')`,
      'docker-compose.yml': '',
    });
    git('init', '--initial-branch=main');
    commit();
    git('checkout', '-b', 'change');
  });
  const listed = (): readonly string[] => run('.ci/changed.mjs', '--list').said.trim().split('\n').slice(1).sort();

  it('names the specs that import what changed, in whatever way, but not through the whole product', () => {
    write({ 'libs/platform/src/clock.ts': 'export const clock = 2;' });
    expect(listed()).toEqual(['apps/shop/src/things/things.replicas.spec.ts', 'libs/platform/src/clock.spec.ts']);
  });

  it('names those of the slice, and the generated ones of its operations, also when it is committed', () => {
    write({ 'libs/contracts/src/things/operations.ts': 'export class CreateThing { name; }' });
    commit();
    expect(listed()).toEqual([
      'apps/shop/src/things/things.replicas.spec.ts',
      'apps/shop/src/things/things.spec.ts',
      'libs/contracts/src/things/operations.spec.ts',
      'test/properties.spec.ts (CreateThing)',
    ]);
  });

  it('names those of the slices that stand on what changed', () => {
    write({ 'apps/shop/src/domain/thing.decider.ts': 'export const thing = 2;' });
    expect(listed()).toEqual(['apps/shop/src/things/things.replicas.spec.ts', 'apps/shop/src/things/things.spec.ts', 'test/properties.spec.ts (CreateThing)']);
  });

  it('names those that read a file which is no source, and those that are new', () => {
    write({ 'docker-compose.yml': 'services:', 'test/new.spec.ts': '' });
    expect(listed()).toEqual(['test/compose.spec.ts', 'test/new.spec.ts']);
  });

  it('names those over HTTP where the whole product itself changed', () => {
    write({ 'apps/suite/src/suite.ts': '' });
    expect(listed()).toEqual(['apps/shop/src/other/other.spec.ts', 'apps/shop/src/things/things.spec.ts', 'test/properties.spec.ts']);
  });

  it('says so where there is nothing to compare with', () => {
    rmSync(join(folder, '.git'), { recursive: true });
    expect(run('.ci/changed.mjs')).toEqual({ code: 1, said: expect.stringContaining('no git checkout') });
  });
});

describe('packages that specs load in few files', () => {
  it('are those files for everything but packages', async () => {
    const { files, sync } = await load('packages.mjs');
    const from = (basedir: string, name: string): string => sync(name, { basedir, defaultResolver: () => 'as it is' });
    expect(from(join(root, 'libs/platform/src'), 'fastify')).toBe(files.get('fastify'));
    expect(from(join(root, 'libs/platform/src'), 'lmdb')).toBe('as it is');
    expect(from(join(root, 'node_modules/@nestjs/platform-fastify'), 'fastify')).toBe('as it is');
    expect(import.meta.resolve('fastify')).toBe(pathToFileURL(files.get('fastify')).href);
  });

  it('export what the packages export', async () => {
    const { files } = await load('packages.mjs');
    const program = `
      const { pathToFileURL } = await import('node:url');
      for (const [name, file] of ${JSON.stringify([...files])}) {
        const [one, other] = [await import(name), await import(pathToFileURL(file))].map((module) => Object.keys(module).filter((key) => key !== 'module.exports'));
        console.log(JSON.stringify([name, one.length > 0 && one.join() === other.join() ? 'the same' : [one, other]]));
      }`;
    const said = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { cwd: root, encoding: 'utf8' });
    const found = said
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(found).toEqual([...files.keys()].map((name) => [name, 'the same']));
  });
});
