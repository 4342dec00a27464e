import { environmentVariables } from '#libs/platform/src/config/environment';
import { readSettings } from '#libs/platform/src/config/setting';
import { PlatformSettings } from '#libs/platform/src/config/settings';
import { StartRefused } from '#libs/platform/src/start-refused';
import { adminAddress } from './admin/admin-address.ts';
import { askServer, NobodyListens, type AdminRequest } from './admin/admin-socket.ts';
import { COMMANDS, DATA_COMMANDS, FILE_COMMANDS, helpText, parseCommand, WrongUsage } from './admin/commands.ts';
import { refusalText } from './admin/refusal-text.ts';
import { endWith, endWithSentence } from './ending.ts';

const tell = (line: string): void => console.log(line);

try {
  const args = process.argv.slice(2);
  if (args.length === 0 || ['help', '--help', '-h'].includes(args[0]!)) tell(helpText(COMMANDS));
  else await carryOut(parseCommand(COMMANDS, args));
  process.exit(0);
} catch (error) {
  if (error instanceof WrongUsage) endWithSentence(`${error.message} See 'npm run gatehouse -- help'.`, 64);
  if (error instanceof StartRefused) endWith(error);
  endWithSentence(refusalText(error));
}

async function carryOut(request: AdminRequest): Promise<void> {
  const variables = environmentVariables();
  const { DATA_DIR } = readSettings(PlatformSettings, variables);
  const onFiles = FILE_COMMANDS[request.command];
  if (onFiles !== undefined) return onFiles.run(DATA_DIR, request.input, tell);
  try {
    await askServer(adminAddress(DATA_DIR), request, tell);
  } catch (error) {
    if (!(error instanceof NobodyListens)) throw error;
    await carryOutHere(request);
  }
}

/** No server runs, so this process takes its place, under the same lock and without a port. */
async function carryOutHere({ command, input }: AdminRequest): Promise<void> {
  const [{ Suite }, { PinoLog }] = await Promise.all([import('./suite.ts'), import('#libs/platform/src/pino.log')]);
  const log = new PinoLog({ level: 'warn', readable: process.stderr.isTTY, destination: process.stderr });
  const suite = await Suite.start({ variables: environmentVariables(), log, serve: false, onFatal: endWithSentence });
  try {
    await DATA_COMMANDS[command]!.run(suite, input, tell);
  } finally {
    await suite.close();
  }
}
