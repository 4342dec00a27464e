import { environmentVariables } from '#libs/platform/src/config/environment';
import { readSettings } from '#libs/platform/src/config/setting';
import { GatewaySettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { PinoLog } from '#libs/platform/src/pino.log';
import { endWith, endWithSentence } from './ending.ts';

const LOCAL = new Set(['127.0.0.1', '::1', 'localhost']);

try {
  const variables = environmentVariables();
  const { GATEHOUSE_MODE: mode, LOG_LEVEL: level, SHUTDOWN_TIMEOUT } = readSettings(PlatformSettings, variables);
  const { HOST } = readSettings(GatewaySettings, variables);
  const log = new PinoLog({ level, readable: mode === 'development' && process.stdout.isTTY });
  if (mode === 'development' && !LOCAL.has(HOST)) log.warn(`Development mode listens on ${HOST}: others can reach it, and its key manages everything.`);

  // Most of the time to the start goes into loading, so a wrong setting is told before.
  const { Suite } = await import('./suite.ts');
  const suite = await Suite.start({ variables, log, onFatal: endWithSentence });
  suite.runtime.metrics.observeProcess();
  stopOnSignals(suite, SHUTDOWN_TIMEOUT);
  endOnBugs(log, (reason) => suite.engines.storage.fail(reason));
  log.info(`Gatehouse is ready at ${suite.url} in ${mode} mode, after ${process.uptime().toFixed(1)} s.`);
  if (suite.firstKey !== null) console.log(introduction(suite.url, suite.firstKey));
} catch (error) {
  endWith(error);
}

function introduction(url: string, { value, path, isNew }: { readonly value: string; readonly path: string; readonly isNew: boolean }): string {
  return [`  API docs   ${url}/docs`, ...(isNew ? [`  first key  ${value}`] : []), `  key file   ${path}`].join('\n');
}

/** What nobody caught leaves the process in a state that nobody thought of: the log keeps the stack, and the next start finds the data as acknowledged. */
function endOnBugs(log: PinoLog, failDisk: (reason: string) => void): void {
  process.on('unhandledRejection', (reason) => {
    // LMDB rejects the promises of single puts too, which nobody keeps; sometimes before it says that the disk failed.
    if (reason instanceof Error && 'commitError' in reason) failDisk('a commit failed');
    else throw reason;
  });
  process.on('uncaughtException', (error) => {
    log.error('An error was caught by nobody; the server ends.', { error });
    endWith(error);
  });
}

function stopOnSignals(suite: { close(): Promise<void> }, patience: number): void {
  let isStopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      // Whoever asks twice does not want to wait.
      if (isStopping) process.exit(1);
      isStopping = true;
      setTimeout(() => endWithSentence('The stop took too long and was cut off; whatever was acknowledged is on disk.'), 2 * patience).unref();
      suite.close().then(() => process.exit(0), endWith);
    });
}
