import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { parseArgs } from 'node:util';
import { filesBelow, git, root } from './files.mjs';
import { onlyWhereNamed } from './suites.mjs';

const USAGE = `npm run check:changed [-- --base main] [--list]

Runs the specs that a change since it left main can reach, committed or not, the shortest first, for at most a minute; what did not fit is named.
  --base REF   what the change is compared with, instead of main
  --list       names the specs and runs none`;

const SECONDS = 58;
/** Of them goes to the start of Jest and its workers. */
const START = 4;
/** Generated cases may keep others waiting for so long. */
const FOR_GENERATED = 20;
/** A change of nearly everything reaches them: from here on, it is only followed into its own slice. */
const PRODUCT = ['apps/suite/src/suite.ts', 'libs/testing/src/suite.ts', 'libs/testing/src/running-product.ts'];
/** Their cases are generated from operations, and named after them. */
const GENERATED = ['test/properties.spec.ts', 'test/isolation.spec.ts'];

const began = Date.now();
const { values } = parseArgs({ options: { base: { type: 'string' }, list: { type: 'boolean' }, help: { type: 'boolean' } } });
const durations = JSON.parse(readFileSync(join(root, '.ci/durations.json'), 'utf8'));
/** What nobody has measured is tried late, and not left out. */
const secondsOf = (spec) => durations[spec] ?? 5;

if (values.help) console.log(USAGE);
else process.exitCode = await checkChanged();

async function checkChanged() {
  const changed = changedFiles();
  if (changed === null) {
    console.error('gatehouse: this is no git checkout, or it has no such base: name one with --base.');
    return 1;
  }
  const sources = new Map(
    ['apps', 'libs', 'test']
      .flatMap(filesBelow)
      .filter(isSource)
      .map((file) => [file, readFileSync(join(root, file), 'utf8')]),
  );
  const { specs, names } = reachedBy(changed, sources);
  const cases = names.length === 0 ? [] : GENERATED.filter((spec) => sources.has(spec) && !specs.includes(spec));
  console.log(`${changed.length} files changed; ${specs.length} specs can be reached, and the generated cases of ${names.length} operations.`);
  if (values.list) {
    for (const spec of specs) console.log(spec);
    for (const spec of cases) console.log(`${spec} (${names.join(', ')})`);
    return 0;
  }
  return runFor({ specs, cases, names });
}

/** Since the base, with what is not committed yet. */
function changedFiles() {
  const bases = values.base === undefined ? ['main', 'origin/main'] : [values.base];
  const base = bases.map((each) => git('merge-base', each, 'HEAD')?.[0]).find((each) => each !== undefined);
  if (base === undefined) return null;
  return [...new Set([...git('diff', '--name-only', '--no-renames', base), ...git('ls-files', '--others', '--exclude-standard')])];
}

function isSource(file) {
  return file.endsWith('.ts');
}

function isSpec(file) {
  return file.endsWith('.spec.ts');
}

/** Specs, the shortest first, and names of operations. */
function reachedBy(changed, sources) {
  const importers = importersIn(sources);
  const reached = new Set();
  const follow = (file) => {
    if (reached.has(file)) return;
    reached.add(file);
    for (const importer of importers.get(file) ?? []) if (PRODUCT.includes(file) || !PRODUCT.includes(importer)) follow(importer);
  };
  for (const file of changed) follow(file);
  for (const file of changed.filter((each) => !isSource(each))) for (const spec of mentioning(file, sources)) reached.add(spec);

  const slices = new Set(changed.filter((file) => isSource(file) && !isSpec(file)).flatMap((file) => slicesOf(file, sources, importers)));
  for (const file of sources.keys()) if (slices.has(dirname(file))) reached.add(file);
  const names = [...sources]
    .filter(([file]) => slices.has(dirname(file)))
    .flatMap(([, text]) => [...text.matchAll(/@Handles\((\w+)\)/g)].map(([, name]) => name));
  const specs = [...reached].filter((file) => isSpec(file) && sources.has(file) && !onlyWhereNamed.includes(file));
  return { specs: specs.sort((one, other) => secondsOf(one) - secondsOf(other)), names: [...new Set(names)].sort() };
}

/** Who imports a file; an import of a type is gone when it runs. */
function importersIn(sources) {
  const importers = new Map();
  for (const [file, text] of sources)
    for (const [, , specifier] of text.matchAll(/(?:^\s*(?:import|export)\s+(?!type\s)(?:[^'";]*?\sfrom\s+)?|(\bimport\())'([^']+)'/gm)) {
      const target = resolved(specifier, file);
      if (target !== null) importers.set(target, [...(importers.get(target) ?? []), file]);
    }
  return importers;
}

/** As the imports of package.json say. */
function resolved(specifier, from) {
  if (specifier.startsWith('#')) return `${specifier.slice(1)}.ts`;
  return specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : null;
}

/** The folders in an app whose use cases a change is part of: its own, those of its app that import it, and for a contract those that handle its operations. */
function slicesOf(file, sources, importers) {
  const [top, name, , folder] = file.split('/');
  if (top === 'apps' && file.split('/').length > 4)
    return [file, ...(importers.get(file) ?? []).filter((each) => each.startsWith(`apps/${name}/`) && each.split('/').length > 4)].map((each) => dirname(each));
  if (top !== 'libs' || name !== 'contracts' || folder === undefined || folder.endsWith('.ts')) return [];
  return [...sources]
    .filter(([, text]) => text.includes(`'#libs/contracts/src/${folder}/operations'`) && text.includes('@Handles('))
    .map(([each]) => dirname(each));
}

/** A manifest, a document or a script is read by path. */
function mentioning(file, sources) {
  const parts = file.split('/');
  const paths = parts.map((_, index) => parts.slice(0, index + 1).join('/')).filter((path) => path.length > 2);
  return [...sources]
    .filter(([spec, text]) => isSpec(spec) && paths.some((path) => text.includes(`'${path}'`) || text.includes(`/${path}'`) || text.includes(`'${path}/`)))
    .map(([spec]) => spec);
}

async function runFor({ specs, cases, names }) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-changed-'));
  const remaining = () => SECONDS - (Date.now() - began) / 1000;
  // Each worker takes one after the other.
  let room = (remaining() - START - (cases.length > 0 ? FOR_GENERATED : 0)) * availableParallelism();
  const chosen = specs.filter((spec) => (room -= secondsOf(spec)) >= 0 || spec === specs[0]);
  const finished = new Set();
  let failed = false;
  const run = async (files, named = []) => {
    const notes = join(folder, `${files.length}-${named.length}`);
    writeFileSync(notes, '');
    const args = ['jest', '--runTestsByPath', ...files, '--reporters=default', `--reporters=${join(root, '.ci/finished.reporter.mjs')}`];
    // Of generated cases a commit runs some, and whoever names them all of those.
    const variables = { ORDER: 'shortest', FINISHED: notes, ...(named.length > 0 && { EVERYTHING: 'on' }) };
    if (named.length > 0) args.push('--testNamePattern', `\\b(${named.join('|')})\\b`);
    const child = spawn(process.execPath, ['run.mjs', ...args], { cwd: root, stdio: 'inherit', env: { ...process.env, ...variables } });
    const late = setTimeout(() => child.kill('SIGTERM'), Math.max(0, remaining() * 1000));
    const code = await new Promise((resolve) => child.once('close', resolve));
    clearTimeout(late);
    for (const line of readFileSync(notes, 'utf8').split('\n').filter(Boolean)) {
      const [outcome, path] = line.split(' ');
      finished.add(path);
      if (outcome === 'failed') failed = true;
    }
    if (code !== 0 && remaining() > 0) failed = true;
  };
  if (chosen.length > 0) await run(chosen);
  if (cases.length > 0 && remaining() > START) await run(cases, names);
  rmSync(folder, { recursive: true, force: true });

  const left = [...specs, ...cases].filter((spec) => !finished.has(spec));
  for (const spec of left) console.log(`NOT RUN: ${spec} (${secondsOf(spec)} s)${cases.includes(spec) ? `, of it ${names.join(', ')}` : ''}`);
  const seconds = Math.round((Date.now() - began) / 1000);
  console.log(
    `${failed ? 'FAILED' : 'passed'}: ${finished.size} of ${specs.length + cases.length} spec files in ${seconds} s${left.length === 0 ? '' : '; the others are named above'}.`,
  );
  return failed ? 1 : 0;
}
