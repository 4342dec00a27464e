// What every npm script runs: installs and builds what is missing, says so in a line, then runs the program.
// It imports nothing but Node, because it has to work before anything is installed.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));
const sources = ['apps', 'libs', 'bench', 'test'];
/** Young objects have the room that programs of the product give them: a file of specs takes a fourteenth less. */
const jestFlags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', '--max-semi-space-size=32'];

/** Each runs in this very process, so that a signal or a kill meets the program and not a parent of it. */
const programs = {
  start: 'programs/suite.js',
  gatehouse: 'programs/gatehouse.js',
  operations: 'libs/contracts/src/print-operations.js',
  asyncapi: 'libs/contracts/src/print-asyncapi.js',
  generated: 'apps/suite/src/generated.js',
  bench: 'bench/main.js',
  torture: 'test/torture.js',
  engines: 'libs/testing/src/engines/main.js',
  cluster: 'libs/testing/src/cluster/main.js',
  'fetch-engines': 'libs/testing/src/engines/fetch.js',
};

/** Those that use test tools. They start programs of the product as its users do. */
const withTools = new Set(['bench', 'torture', 'engines', 'fetch-engines', 'cluster']);

/** Tools of the full install, as `package: program inside it, arguments`. The caller's arguments come last. */
const tools = {
  jest: { program: 'jest/bin/jest.js', nodeFlags: jestFlags },
  types: { program: 'typescript/bin/tsc', args: ['-p', 'tsconfig.json'] },
  // With the types of the whole program, which its rules want to know as well.
  lint: { program: 'oxlint/bin/oxlint' },
  boundaries: { program: 'dependency-cruiser/bin/dependency-cruise.mjs', args: ['apps', 'libs', 'test', 'bench', '--config', '.dependency-cruiser.mjs'] },
  unused: { program: 'knip/bin/knip.js', args: [] },
  format: { program: 'prettier/bin/prettier.cjs', args: ['.', '--log-level=warn', '--write'] },
  formatted: { program: 'prettier/bin/prettier.cjs', args: ['.', '--log-level=warn', '--check'] },
};
/** Programs of .ci, which run tasks of this file. */
const scripts = { proofs: '.ci/proofs.mjs', durations: '.ci/durations.mjs', 'check:changed': '.ci/changed.mjs', mutations: '.ci/mutations.mjs' };
const suites = ['waiting', 'working', 'shared', 'hurt', 'faults', 'alerts', 'kubernetes', 'interrupted'];
const onCluster = new Set(['shared', 'hurt', 'faults', 'alerts']);
const checks = ['lint', 'boundaries', 'unused', 'formatted'];

const read = (path) => readFileSync(join(root, path), 'utf8');
const here = (path) => existsSync(join(root, path));
const say = (line) => console.error(`gatehouse: ${line}`);

function stop(line, code = 1) {
  say(line);
  process.exit(code);
}

function refuseOldNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  stop(`needs Node 20.19 or newer, and this is ${process.versions.node}. Install a current Node from nodejs.org and start again.`);
}

/** npm notes what it installed in a lockfile of its own; optional packages are for some platforms only, so they are not asked for. */
function isInstalled({ tools }) {
  if (!here('node_modules/.package-lock.json')) return false;
  const { packages: wanted } = JSON.parse(read('package-lock.json'));
  const { packages: installed } = JSON.parse(read('node_modules/.package-lock.json'));
  return Object.entries(wanted).every(
    ([path, entry]) => path === '' || entry.optional || entry.devOptional || (entry.dev && !tools) || installed[path]?.version === entry.version,
  );
}

async function install({ tools }) {
  if (isInstalled({ tools })) return;
  say(tools ? 'installing packages and test tools (npm ci), about a minute …' : 'installing packages (npm ci --omit=dev) …');
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...(tools ? ['--include=dev'] : ['--omit=dev'])];
  const npm = process.env.npm_execpath;
  const code = npm ? await run(process.execPath, [npm, ...args]) : await run('npm', args, { shell: process.platform === 'win32' });
  if (code !== 0) stop(`npm ci failed (exit code ${code}): see its message above, and check that the package registry can be reached.`, code);
}

function filesOf(folder) {
  if (!here(folder)) return [];
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

function hashOfSources() {
  const hash = createHash('sha256');
  const files = sources.flatMap(filesOf).filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts'));
  for (const file of [...files.sort(), ...['.swcrc', 'bundle.mjs', 'package-lock.json'].map((name) => join(root, name))])
    hash.update(file.slice(root.length)).update('\0').update(readFileSync(file));
  return hash.digest('hex');
}

/**
 * Built beside dist and then renamed, so that a build that fails or is killed leaves the last good one.
 * `bundled`: with the programs of the product, each in few files; what runs from the compiled files alone does without.
 */
async function build({ bundled }) {
  const hash = hashOfSources();
  const isBuilt = (folder) => here(`${folder}/.sources`) && read(`${folder}/.sources`) === hash;
  if (isBuilt('dist') && (!bundled || isBuilt('dist/programs'))) return;
  say('building …');
  const next = `.dist-${process.pid}`;
  const folders = sources.filter(here);
  const args = ['node_modules/@swc/cli/bin/swc.js', ...folders, '--out-dir', next, '--config-file', '.swcrc', '--ignore', '**/*.spec.ts', '--quiet'];
  const compiled = await run(process.execPath, args);
  const code = compiled === 0 && bundled ? await run(process.execPath, ['bundle.mjs', next]) : compiled;
  if (code === 0) {
    for (const folder of [next, ...(bundled ? [join(next, 'programs')] : [])]) writeFileSync(join(root, folder, '.sources'), hash);
    // Put aside whole: another that builds at the same time does the same.
    const last = `${next}-last`;
    if (here('dist')) renameSync(join(root, 'dist'), join(root, last));
    renameSync(join(root, next), join(root, 'dist'));
    rmSync(join(root, last), { recursive: true, force: true });
    return;
  }
  rmSync(join(root, next), { recursive: true, force: true });
  stop(`the build failed (exit code ${code}): see the compiler's message above.`, code);
}

/** Resolves with the exit code; a signal to us is a signal to the child, and its end by a signal is told as 128 + number. */
function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options });
    const forward = (signal) => child.kill(signal);
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const signal of signals) process.on(signal, forward);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      for (const name of signals) process.off(name, forward);
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** A killed npm cannot pass its end on, so a program that npm started watches whether npm, or the shell between them, is gone. */
function endWithNpm() {
  if (!process.env.npm_lifecycle_event) return;
  const parents = ancestors();
  const watch = setInterval(() => ancestors() === parents || process.kill(process.pid, 'SIGTERM'), 500).unref();
  // A program that is ending already, as on Ctrl-C, must not hear it again: asked twice, it would not finish what is in flight.
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      clearInterval(watch);
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  }
}

function ancestors() {
  try {
    return `${process.ppid} ${/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${process.ppid}/status`, 'utf8'))?.[1]}`;
  } catch {
    return `${process.ppid}`;
  }
}

/** For processes that are started by specs and the bench: what was built by hand since may be newer than its bundle, what was built here is not. */
function asBundled() {
  process.env.PROGRAMS = 'bundled';
}

async function startProgram(name, args) {
  await install({ tools: withTools.has(name) });
  await build({ bundled: withTools.has(name) || programs[name].startsWith('programs/') });
  const file = join(root, 'dist', programs[name]);
  if (!existsSync(file)) stop(`${programs[name]} was not built: its source does not exist, so there is nothing to run.`);
  if (withTools.has(name)) asBundled();
  endWithNpm();
  process.argv = [process.execPath, file, ...args];
  await import(pathToFileURL(file).href);
}

async function runTool(name, args) {
  await install({ tools: true });
  const { program, args: own = [], nodeFlags = [] } = tools[name];
  return run(process.execPath, [...nodeFlags, join(root, 'node_modules', program), ...own, ...args]);
}

async function runScript(name, args) {
  await install({ tools: true });
  return run(process.execPath, [join(root, scripts[name]), ...args]);
}

async function check() {
  const failed = [];
  for (const name of checks) if ((await runTool(name, [])) !== 0) failed.push(name);
  say(failed.length === 0 ? `${checks.join(', ')}: all passed.` : `failed: ${failed.join(', ')}.`);
  return failed.length === 0 ? 0 : 1;
}

/** One of the suites of .ci/suites.mjs. Whoever names files wants to see those, whatever the seed leaves out. */
async function testSuite(name, args) {
  process.env.SPECS = name;
  if (onCluster.has(name)) process.env.SUITE = 'processes';
  if (args.some((arg) => !arg.startsWith('-'))) process.env.EVERYTHING ??= 'on';
  return test(args);
}

/** The product as processes: takes Java for engines that ask for passwords, kubectl for the manifests, and minutes. One cluster after the other: a machine has room for one. */
async function testCluster(args) {
  let failed = 0;
  for (const name of ['shared', 'hurt']) failed = (await testSuite(name, [...args, '--passWithNoTests'])) || failed;
  return failed;
}

async function test(args) {
  await install({ tools: true });
  await build({ bundled: true });
  asBundled();
  return runTool('jest', args);
}

const [task = 'start', ...args] = process.argv.slice(2);
refuseOldNode();
if (task in programs) await startProgram(task, args);
else if (task in tools) process.exitCode = await runTool(task, args);
else if (task === 'test') process.exitCode = await test(args);
else if (suites.includes(task)) process.exitCode = await testSuite(task, args);
else if (task in scripts) process.exitCode = await runScript(task, args);
else if (task === 'e2e') process.exitCode = await testCluster(args);
else if (task === 'check') process.exitCode = await check();
else if (task === 'install') await install({ tools: true });
else if (task === 'build') await install({ tools: false }).then(() => build({ bundled: true }));
else
  stop(
    `there is no task ${JSON.stringify(task)}. Tasks: ${[...Object.keys(programs), ...Object.keys(tools), 'test', ...suites, 'e2e', ...Object.keys(scripts), 'check', 'install', 'build'].join(', ')}.`,
  );
