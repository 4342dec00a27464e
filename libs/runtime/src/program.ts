import { environmentVariables } from '#libs/platform/src/config/environment';
import { triedSettings } from '#libs/platform/src/config/setting';
import { PlatformSettings } from '#libs/platform/src/config/settings';
import { endWith, endWithSentence } from '#libs/platform/src/ending';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { AppProcess, ProcessOptions } from './app-process.ts';
import { leaveThreadsTheirLimits } from './thread-heaps.ts';
import { beginObjectsYoung } from './young-objects.ts';

interface Started {
  readonly process: AppProcess;
  /** Printed below the line that says where it is ready. */
  readonly introduction?: string;
}

/** Everything between an app and the machine: settings, log lines, signals, and an end that says why. */
export async function runProgram(start: (options: ProcessOptions) => Promise<Started>): Promise<void> {
  leaveThreadsTheirLimits();
  beginObjectsYoung();
  try {
    const variables = environmentVariables();
    // What is wrong in them is told with all the rest, by the start.
    const { GATEHOUSE_MODE: mode, LOG_LEVEL: level, SHUTDOWN_TIMEOUT } = triedSettings(PlatformSettings, variables).settings;
    const log = new PinoLog({ level, readable: mode === 'development' && process.stdout.isTTY });
    const { process: started, introduction } = await start({ variables, log, onFatal: endWithSentence });
    started.runtime.metrics.observeProcess();
    stopOnSignals(started, SHUTDOWN_TIMEOUT);
    endOnBugs(log, started);
    log.info(`Gatehouse is ready at ${started.url} in ${mode} mode, after ${process.uptime().toFixed(1)} s.`);
    if (introduction !== undefined) console.log(introduction);
  } catch (error) {
    endWith(error);
  }
}

/** What nobody caught leaves the process in a state that nobody thought of: the log keeps the stack, and the next start finds the data as acknowledged. */
function endOnBugs(log: PinoLog, { engines }: AppProcess): void {
  process.on('unhandledRejection', (reason) => {
    // LMDB rejects the promises of single puts too, which nobody keeps; sometimes before it says that the disk failed.
    if (engines.directory !== null && reason instanceof Error && 'commitError' in reason) engines.directory.fail('a commit failed');
    else throw reason;
  });
  process.on('uncaughtException', (error) => {
    log.error('An error was caught by nobody; the server ends.', { error });
    endWith(error);
  });
}

function stopOnSignals(started: AppProcess, patience: number): void {
  let isStopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      // Whoever asks twice does not want to wait.
      if (isStopping) process.exit(1);
      isStopping = true;
      setTimeout(() => endWithSentence('The stop took too long and was cut off; whatever was acknowledged is on disk.'), 2 * patience).unref();
      started.close().then(() => process.exit(0), endWith);
    });
}
