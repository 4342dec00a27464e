import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Notes each file of specs as it ends (`FINISHED`), for whoever ends the run before its time. */
export default class FinishedReporter {
  onTestFileResult({ path, context }, { numFailingTests, testExecError }) {
    appendFileSync(process.env.FINISHED, `${numFailingTests > 0 || testExecError ? 'failed' : 'passed'} ${relative(context.config.rootDir, path)}\n`);
  }
}
