import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from './files.mjs';

/**
 * node .ci/outcome.mjs failing RESULTS         the files of specs that failed, one a line
 * node .ci/outcome.mjs counts RESULTS [AGAIN]  how many tests passed and how many did not, of files that were run again (AGAIN) as they ended then
 *
 * A test that was skipped is a rule that nobody checked, and a Jest that wrote no results never got to its end: both count as failed.
 */
const [question, ...files] = process.argv.slice(2);
const [first, again] = files.map((file) => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null));
console.log(question === 'failing' ? failing(first).join('\n') : counts().join(' '));

function failing(results) {
  return (results?.testResults ?? []).filter((file) => file.status === 'failed').map((file) => relative(root, file.name));
}

function counts() {
  if (!first) return [0, 1];
  let passed = first.numPassedTests;
  let failed = first.numFailedTests + first.numPendingTests + first.numRuntimeErrorTestSuites;
  for (const file of again?.testResults ?? []) {
    const [before, now] = [first.testResults.find((each) => each.name === file.name), file].map(numbersOf);
    passed += now.passed - before.passed;
    failed += now.failed - before.failed;
  }
  return [passed, failed];
}

function numbersOf({ status, assertionResults }) {
  const passed = assertionResults.filter((test) => test.status === 'passed').length;
  const others = assertionResults.length - passed;
  // A file that could not be loaded has no tests.
  return { passed, failed: status === 'failed' ? Math.max(1, others) : others };
}
