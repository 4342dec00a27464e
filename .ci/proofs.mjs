import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashOf, root } from './files.mjs';
import { parts } from './parts.mjs';
import { numberOf, seedOfTree } from './seed.mjs';

/** Days after which `.ci/run` asks for it, and after which nothing lands without it. */
const ASKED = 14;
const DEMANDED = 45;
const DAY = 86_400_000;

const records = join(root, '.ci/proofs');
const fileOf = (name) => join(records, `${name}.json`);
/** What a part cannot do without and is not here. */
const lackOf = (name) => parts[name].lacks?.(process.env) ?? null;
const recordOf = (name) => (existsSync(fileOf(name)) ? JSON.parse(readFileSync(fileOf(name), 'utf8')) : null);

const USAGE = `npm run proofs [-- PART …]      runs what takes too long for every commit, and notes in .ci/proofs that it held
npm run proofs -- --check       says which parts are due; fails where one has not held for ${DEMANDED} days

${Object.entries(parts)
  .map(([name, { what }]) => `  ${name.padEnd(15)}${what}`)
  .join('\n')}`;

const words = process.argv.slice(2);
const unknown = words.filter((word) => !(word in parts) && word !== '--check');
if (unknown.length > 0) {
  console.error(`${words.includes('--help') ? '' : `There is no part ${unknown.join(', ')}.\n\n`}${USAGE}`);
  process.exitCode = words.includes('--help') ? 0 : 1;
} else if (words.includes('--check')) process.exitCode = check();
else process.exitCode = await proveAll(words.length > 0 ? words : Object.keys(parts), words.length > 0);

function check() {
  let isOverdue = false;
  const lost = existsSync(records) ? readdirSync(records).filter((file) => !(file.replace(/\.json$/, '') in parts)) : [];
  for (const file of lost) console.log(`WARNING: .ci/proofs/${file} is of no part.`);
  for (const [name, { introduced, paths }] of Object.entries(parts)) {
    const record = recordOf(name);
    const since = record?.date ?? introduced;
    const days = Math.floor((Date.now() - Date.parse(since)) / DAY);
    const held = record === null ? `has NEVER been run, since it was introduced on ${since}` : `last held on ${since}, ${days} days ago`;
    const lack = lackOf(name);
    // Whoever cannot run it is told of it, and goes on.
    if (lack !== null && (record === null || days > ASKED)) console.log(`WARNING: the proof ${name} ${held}, and it cannot be run here: there is no ${lack}.`);
    // A day ahead is a time zone.
    else if (!(days <= DEMANDED && days >= -1)) {
      isOverdue = true;
      console.log(`FAILED: the proof ${name} ${held}: npm run proofs -- ${name}`);
    } else if (record === null || days > ASKED) console.log(`WARNING: the proof ${name} ${held}: npm run proofs -- ${name}`);
    else if (record.tree !== hashOf(paths)) console.log(`WARNING: the proof ${name} ${held}, and what it is about has changed since.`);
  }
  return isOverdue ? 1 : 0;
}

async function proveAll(names, isNamed) {
  const outcomes = { held: [], failed: [], left: [] };
  for (const name of names) {
    const lack = lackOf(name);
    if (lack !== null) console.log(`\n== ${name}: NOT RUN, and not noted as held: there is no ${lack}.`);
    outcomes[lack !== null ? 'left' : (await prove(name)) ? 'held' : 'failed'].push(name);
  }
  const { held, failed, left } = outcomes;
  console.log(failed.length > 0 ? `\nfailed: ${failed.join(', ')}.` : `\n${held.length === 0 ? 'Nothing' : `${held.join(', ')}: all`} held.`);
  if (left.length > 0) console.log(`NOT RUN: ${left.join(', ')}.`);
  // Who asks for one by name wants to have it.
  return failed.length > 0 || (isNamed && left.length > 0) ? 1 : 0;
}

async function prove(name) {
  const { what, paths, steps } = parts[name];
  // Of this day too: whoever runs it again on the same tree wants to see more of it.
  const seed = process.env.SEED || `${seedOfTree()}-${new Date().toISOString().slice(0, 10)}`;
  const [tree, began] = [hashOf(paths), Date.now()];
  console.log(`\n== ${name}: ${what} (SEED=${seed})`);
  const outcomes = [];
  for (const step of steps((each) => numberOf(seed, each))) outcomes.push(...(await Promise.all([step].flat().map((each) => run(each, seed)))));
  const seconds = Math.round((Date.now() - began) / 1000);
  const counts = {};
  for (const outcome of outcomes) for (const [each, count] of Object.entries(outcome.counts)) counts[each] = (counts[each] ?? 0) + count;
  console.log(`== ${name}: ${JSON.stringify(counts)} in ${seconds} s`);
  keepFailed(outcomes);
  if (outcomes.some(({ isHeld }) => !isHeld)) return false;
  if (hashOf(paths) !== tree) {
    console.log(`${name} held, but what it is about was changed meanwhile: it is not noted.`);
    return false;
  }
  mkdirSync(records, { recursive: true });
  writeFileSync(fileOf(name), `${JSON.stringify({ tree, date: new Date().toISOString().slice(0, 10), seed, seconds, counts }, null, 2)}\n`);
  return true;
}

/** Its output is shown as it comes. */
async function run({ task, variables = {}, counts }, seed) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-proofs-'));
  const results = join(folder, 'results.json');
  const args = counts === undefined ? [...task, '--json', `--outputFile=${results}`] : task;
  const child = spawn(process.execPath, ['run.mjs', ...args], {
    cwd: root,
    env: { ...process.env, ENGINES: 'required', ...variables, SEED: seed },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    // Jest's is the results once more.
    if (counts !== undefined) process.stdout.write(text);
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
    process.stderr.write(text);
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  const counted = counts !== undefined ? counts(output) : countsOf(results);
  rmSync(folder, { recursive: true });
  return { isHeld: code === 0 && !(counted.failed > 0), counts: counted, said: output + errors };
}

function countsOf(results) {
  if (!existsSync(results)) return { failed: 1 };
  const { numPassedTests, numFailedTests, numPendingTests, numRuntimeErrorTestSuites } = JSON.parse(readFileSync(results, 'utf8'));
  // A test that was skipped is a rule that nobody checked; none at all are no proof.
  const failed = numFailedTests + numPendingTests + numRuntimeErrorTestSuites + (numPassedTests === 0 ? 1 : 0);
  return { passed: numPassedTests, failed };
}

/** What found a fault once is run for ever. */
function keepFailed(outcomes) {
  const file = join(root, '.ci/failed-seeds.json');
  const kept = JSON.parse(readFileSync(file, 'utf8'));
  const found = outcomes.filter(({ isHeld }) => !isHeld).flatMap(({ said }) => [...said.matchAll(/\b(History|Torture|Sign-in story|SCIM history) (\d+): /g)]);
  for (const [, kind, seed] of found) {
    const list = (kept[{ History: 'histories', Torture: 'torture', 'Sign-in story': 'sign-ins', 'SCIM history': 'scim-histories' }[kind]] ??= []);
    if (!list.includes(Number(seed))) list.push(Number(seed));
  }
  if (found.length === 0) return;
  writeFileSync(file, `${JSON.stringify(kept, null, 2)}\n`);
  console.log(`The seeds that failed are in .ci/failed-seeds.json: commit it, with what corrects them.`);
}
