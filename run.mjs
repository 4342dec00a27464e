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
const jestFlags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];

/** Each runs in this very process, so that a signal or a kill meets the program and not a parent of it. */
const programs = {
  start: 'apps/suite/src/main.js',
  gatehouse: 'apps/suite/src/cli.js',
  operations: 'libs/contracts/src/print-operations.js',
  asyncapi: 'libs/contracts/src/print-asyncapi.js',
  generated: 'apps/suite/src/generated.js',
  bench: 'bench/main.js',
  torture: 'test/torture.js',
  engines: 'libs/testing/src/engines/main.js',
  cluster: 'libs/testing/src/cluster/main.js',
};

/** Those that use test tools. */
const withTools = new Set(['bench', 'torture', 'engines', 'cluster']);

/** Tools of the full install, as `package: program inside it, arguments`. The caller's arguments come last. */
const tools = {
  jest: { program: 'jest/bin/jest.js', nodeFlags: jestFlags },
  types: { program: 'typescript/bin/tsc', args: ['-p', 'tsconfig.json'] },
  lint: { program: 'eslint/bin/eslint.js', args: ['.', '--max-warnings=0'] },
  boundaries: { program: 'dependency-cruiser/bin/dependency-cruise.mjs', args: ['apps', 'libs', 'test', 'bench', '--config', '.dependency-cruiser.mjs'] },
  unused: { program: 'knip/bin/knip.js', args: [] },
  format: { program: 'prettier/bin/prettier.cjs', args: ['.', '--log-level=warn', '--write'] },
  formatted: { program: 'prettier/bin/prettier.cjs', args: ['.', '--log-level=warn', '--check'] },
};
const checks = ['types', 'lint', 'boundaries', 'unused', 'formatted'];

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
  for (const file of [...files.sort(), join(root, '.swcrc'), join(root, 'package-lock.json')])
    hash.update(file.slice(root.length)).update('\0').update(readFileSync(file));
  return hash.digest('hex');
}

/** Built beside dist and then renamed, so that a build that fails or is killed leaves the last good one. */
async function build() {
  const hash = hashOfSources();
  if (here('dist/.sources') && read('dist/.sources') === hash) return;
  say('building …');
  const next = `.dist-${process.pid}`;
  const folders = sources.filter(here);
  const args = ['node_modules/@swc/cli/bin/swc.js', ...folders, '--out-dir', next, '--config-file', '.swcrc', '--ignore', '**/*.spec.ts', '--quiet'];
  const code = await run(process.execPath, args);
  if (code === 0) {
    writeFileSync(join(root, next, '.sources'), hash);
    rmSync(join(root, 'dist'), { recursive: true, force: true });
    renameSync(join(root, next), join(root, 'dist'));
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

async function startProgram(name, args) {
  await install({ tools: withTools.has(name) });
  await build();
  const file = join(root, 'dist', programs[name]);
  if (!existsSync(file)) stop(`${programs[name].replace(/\.js$/, '.ts')} does not exist, so there is nothing to run.`);
  endWithNpm();
  process.argv = [process.execPath, file, ...args];
  await import(pathToFileURL(file).href);
}

async function runTool(name, args) {
  await install({ tools: true });
  const { program, args: own = [], nodeFlags = [] } = tools[name];
  return run(process.execPath, [...nodeFlags, join(root, 'node_modules', program), ...own, ...args]);
}

async function check() {
  const failed = [];
  for (const name of checks) if ((await runTool(name, [])) !== 0) failed.push(name);
  say(failed.length === 0 ? `${checks.join(', ')}: all passed.` : `failed: ${failed.join(', ')}.`);
  return failed.length === 0 ? 0 : 1;
}

/** The product as a cluster of processes: takes engines, Java or Docker for them, and minutes. */
async function testCluster(suite, args) {
  process.env.SUITE = suite;
  return test(args);
}

async function test(args) {
  await install({ tools: true });
  await build();
  return runTool('jest', args);
}

const [task = 'start', ...args] = process.argv.slice(2);
refuseOldNode();
if (task in programs) await startProgram(task, args);
else if (task in tools) process.exitCode = await runTool(task, args);
else if (task === 'test') process.exitCode = await test(args);
else if (task === 'e2e') process.exitCode = await testCluster('processes', args);
else if (task === 'faults') process.exitCode = await testCluster('faults', args);
else if (task === 'check') process.exitCode = await check();
else if (task === 'install') await install({ tools: true });
else if (task === 'build') await install({ tools: false }).then(build);
else
  stop(
    `there is no task ${JSON.stringify(task)}. Tasks: ${[...Object.keys(programs), ...Object.keys(tools), 'test', 'e2e', 'faults', 'check', 'install', 'build'].join(', ')}.`,
  );
