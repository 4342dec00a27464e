import { setTimeout as pause } from 'node:timers/promises';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { readSettings, type Variables } from '#libs/platform/src/config/setting';
import { EngineSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { endWith, endWithSentence } from '#libs/platform/src/ending';
import { StartRefused } from '#libs/platform/src/start-refused';
import { DirectoryHeld } from '#libs/platform/src/storage/kernel-lock';
import { areShared } from '#libs/runtime/src/engines';
import { adminAddress } from './admin/admin-address.ts';
import { askServer, NobodyListens, type AdminRequest } from './admin/admin-socket.ts';
import { carryOut, carryOutOnData, COMMANDS, helpText, neededFor, originOf, parseCommand, WrongUsage } from './admin/commands.ts';

const RETRY_MS = 250;

const tell = (line: string): void => console.log(line);

try {
  const args = process.argv.slice(2);
  if (args.length === 0 || args[0] === 'help' || args.includes('--help')) {
    tell(helpText(COMMANDS));
  } else {
    const { command, input } = parseCommand(COMMANDS, args);
    const settings = readSettings(PlatformSettings, environmentVariables());
    const { DATA_DIR: dataDir } = settings;
    const isShared = areShared(readSettings(EngineSettings, environmentVariables()));
    await carryOut(
      {
        dataDir,
        isShared,
        input: { ...input, origin: originOf(input) },
        tell,
        onData: (request) => (isShared ? onDataHere(request) : onData(settings, request)),
      },
      command,
    );
  }
  process.exit(0);
} catch (error) {
  if (error instanceof StartRefused) endWith(error);
  if (error instanceof WrongUsage) endWithSentence(`${error.message} See 'npm run gatehouse -- help'.`, 64);
  endWithSentence(error instanceof Error ? error.message : String(error));
}

/** A server that is starting holds the data before it listens, and so does another command: both are waited for. */
async function onData({ DATA_DIR, DATA_DIR_WAIT }: PlatformSettings, request: AdminRequest): Promise<void> {
  for (const deadline = performance.now() + DATA_DIR_WAIT; ; await pause(RETRY_MS)) {
    try {
      return await askServer(adminAddress(DATA_DIR), request, tell);
    } catch (error) {
      if (!(error instanceof NobodyListens)) throw error;
    }
    try {
      return await onDataHere(request, { DATA_DIR_WAIT: '0s' });
    } catch (error) {
      if (!(error instanceof DirectoryHeld) || performance.now() >= deadline) throw error;
    }
  }
}

/** No server holds the data, so this process takes its place, under the same lock and without a port; or there are many, and this is one more. */
async function onDataHere(request: AdminRequest, also: Variables = {}): Promise<void> {
  const [{ Suite }, { PinoLog }] = await Promise.all([import('./suite.ts'), import('#libs/platform/src/pino.log')]);
  const log = new PinoLog({ level: 'warn', readable: process.stderr.isTTY, destination: process.stderr });
  const suite = await Suite.start({ variables: { ...environmentVariables(), ...also }, log, run: neededFor(request), onFatal: endWithSentence });
  try {
    await carryOutOnData(suite.process, request, tell);
  } finally {
    await suite.close();
  }
}
