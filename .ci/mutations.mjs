// Looks for specs that cannot fail: negates one condition, or drops one throw, at a time in the deciders and the repository, and runs their own specs.
// A mutant that no spec notices is printed as a survivor. Works on a copy, so that the tree stays as it is.
//
//   npm run mutations [-- part of a path] [--seconds 1800]
//   npm run mutations -- --planted        the bugs of test/sign-in/planted-bugs.json instead, each of which the model of sign-in has to find
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** A mutant that makes a loop endless has been noticed. */
const MUTANT_TIMEOUT_MS = 120_000;
/** A bug was found by a story that failed, and by nothing else. */
const STORIES_TIMEOUT_MS = 900_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '1800' }, planted: { type: 'boolean', default: false } },
});
const deadline = Date.now() + Number(values.seconds) * 1_000;

/** Bugs of sign-in, and the random stories that find them. */
const PLANTED = 'test/sign-in/planted-bugs.json';
const STORIES = 'test/sign-in-model.spec.ts';
/** The spec that tells them: what else is beside it knows that the code has changed. */
const STORIES_TOLD = '--testNamePattern=lets in whom';
/** So many stories are told until one fails; why it does is not asked. */
const stories = { SIGN_INS: '40', SIGN_INS_RETELLINGS: '0' };

/** Each file with the specs that say what it does: those beside it that need no product. */
const subjects = [
  ...filesIn('apps', (name) => name.endsWith('.decider.ts')).map((file) => ({ file, specs: specsBeside(file) })),
  {
    file: 'libs/event-sourcing/src/deciding/log.repository.ts',
    specs: ['deciding/log.repository', 'views/read-your-writes', 'deciding/natural-keys', 'deciding/claims.interleavings'].map(
      (name) => `libs/event-sourcing/src/${name}.spec.ts`,
    ),
  },
].filter(({ file }) => positionals.every((part) => file.includes(part)));
if (subjects.length === 0) throw new Error(`No decider, and not the repository, has ${positionals.join(' and ')} in its path.`);

function filesIn(folder, isWanted) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .filter((path) => isWanted(basename(path)))
    .map((path) => join(folder, path))
    .sort();
}

function specsBeside(file) {
  return filesIn(dirname(file), (name) => /\.(decider|examples)\.spec\.ts$/.test(name));
}

/** Where the text changes, to what, and how that is told. */
function mutationsOf(file) {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found = [];
  const note = (node, replacement, what) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    const told = node.getText().replace(/\s+/g, ' ').slice(0, 90);
    found.push({ file, told: `${file}:${line + 1} ${what}: ${told}`, text: text.slice(0, node.getStart()) + replacement + text.slice(node.getEnd()) });
  };
  const negate = (condition) => note(condition, `!(${condition.getText()})`, 'negated');
  const visit = (node) => {
    if (ts.isIfStatement(node)) negate(node.expression);
    else if (ts.isConditionalExpression(node)) negate(node.condition);
    else if (ts.isThrowStatement(node)) note(node, ';', 'dropped');
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** What is wrong in each stands in one place of its file, or the file has changed since. */
function plantedBugs() {
  const bugs = JSON.parse(readFileSync(join(ROOT, PLANTED), 'utf8')).filter(({ file }) => positionals.every((part) => file.includes(part)));
  return bugs.map(({ bug, file, from, to }) => {
    const [before, after, ...more] = readFileSync(join(ROOT, file), 'utf8').split(from);
    if (after === undefined || more.length > 0) throw new Error(`${file} has no one place for the bug: ${bug}.`);
    return { file, told: bug, text: before + to + after, specs: [STORIES] };
  });
}

/** A tree of its own, whose packages are those of the project. */
function copyOfTree() {
  const copy = mkdtempSync(join(tmpdir(), 'gatehouse-mutations-'));
  for (const path of ['.ci', 'apps', 'libs', 'package.json', 'jest.config.mjs', '.swcrc', 'tsconfig.json', 'tsconfig.base.json'])
    cpSync(join(ROOT, path), join(copy, path), { recursive: true });
  // Jest wants each of its roots.
  if (values.planted) cpSync(join(ROOT, 'test'), join(copy, 'test'), { recursive: true });
  else mkdirSync(join(copy, 'test'));
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Whether the specs pass; a run that takes too long has not. */
function passes(copy, specs) {
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', join(copy, 'node_modules/jest/bin/jest.js')];
  const child = spawn(
    process.execPath,
    [...jest, '--maxWorkers=1', '--bail', '--silent', ...(values.planted ? [STORIES_TOLD] : []), '--runTestsByPath', ...specs],
    {
      cwd: copy,
      stdio: 'ignore',
      env: { ...process.env, ...(values.planted && stories) },
      timeout: values.planted ? STORIES_TIMEOUT_MS : MUTANT_TIMEOUT_MS,
    },
  );
  return new Promise((resolve) => child.on('close', (code) => resolve(code === 0 || (values.planted && code === null))));
}

async function work(queue, survivors) {
  const copy = copyOfTree();
  try {
    for (let mutant = queue.shift(); mutant !== undefined && Date.now() < deadline; mutant = queue.shift()) {
      const path = join(copy, mutant.file);
      const original = readFileSync(path, 'utf8');
      writeFileSync(path, mutant.text);
      if (await passes(copy, mutant.specs)) survivors.push(mutant.told);
      writeFileSync(path, original);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

const queue = values.planted ? plantedBugs() : subjects.flatMap(({ file, specs }) => mutationsOf(file).map((mutation) => ({ ...mutation, specs })));
const all = queue.length;
const unchanged = copyOfTree();
for (const { file, specs } of values.planted ? [{ file: STORIES, specs: [STORIES] }] : subjects)
  if (specs.length === 0 || !(await passes(unchanged, specs))) throw new Error(`The specs of ${file} are missing or do not pass as they are.`);
rmSync(unchanged, { recursive: true, force: true });
const survivors = [];
await Promise.all(Array.from({ length: availableParallelism() }, () => work(queue, survivors)));
for (const survivor of survivors.sort()) console.log(`survived ${survivor}`);
if (values.planted && survivors.length + queue.length > 0) process.exitCode = 1;
console.log(`noticed: ${all - queue.length - survivors.length}, survived: ${survivors.length}, untried: ${queue.length}`);
