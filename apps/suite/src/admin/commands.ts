import { hostname, userInfo } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { WebhookWork } from '#apps/notifications/src/webhook-deliveries/webhook-work';
import { RotateAuditLogKeys } from '#libs/contracts/src/audit-log-proofs/operations';
import {
  CreateEnvironment,
  CreateEnvironmentKey,
  ListEnvironmentKeys,
  ListEnvironments,
  RevokeEnvironmentKey,
  RotateEnvironmentKey,
} from '#libs/contracts/src/environments/operations';
import { RotateTokenKeys } from '#libs/contracts/src/token-keys/operations';
import { operationOf, type Class, type Operation } from '#libs/contracts/src/operation';
import { EraseUser } from '#libs/contracts/src/users/operations';
import { validatorOf } from '#libs/contracts/src/validation';
import type { Difference } from '#libs/event-sourcing/src/views/rebuild';
import type { NewEvent, Position } from '#libs/event-sourcing/src/log/event-store';
import type { Halt } from '#libs/event-sourcing/src/following/follower-states';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { recordGivenUpKey } from '#libs/event-sourcing/src/sealing/given-up-keys';
import type { ErasablePurpose } from '#libs/event-sourcing/src/sealing/key-store';
import { milliseconds } from '#libs/platform/src/config/kinds';
import { isNotFound } from '#libs/platform/src/domain-error';
import { COMMAND_LINE, SYSTEM_ENVIRONMENT, type Origin, type RequestContext } from '#libs/platform/src/request-context';
import type { Run } from '#libs/runtime/src/app';
import type { RunningApp } from '#libs/runtime/src/app';
import { DirectoryHeld } from '#libs/platform/src/storage/kernel-lock';
import { keysIn, LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { StartRefused } from '#libs/platform/src/start-refused';
import { copyData, restoreBackup, sealBackup } from '../backup/backup.ts';
import { backUpCluster, restoreCluster } from '../backup/cluster-backup.ts';
import { setBackErasures } from '../backup/erasures.ts';
import { namedText, verifyCluster } from '../backup/cluster-verify.ts';
import { erasuresUnfinished, verifyLog } from '../backup/verify.ts';
import type { AdminRequest, CommandInput } from './admin-socket.ts';
import { NotThatFile, verifyAuditExport } from './audit-verify.ts';
import { refusalText } from './refusal-text.ts';

interface Option {
  readonly doc: string;
  /** How the help shows its value; absent: the option has none. */
  readonly value?: string;
  readonly isRequired?: true;
}

interface CommandDefinition {
  readonly doc: string;
  /** Names of what follows the command's words; all are required. */
  readonly arguments?: readonly string[];
  readonly options?: Readonly<Record<string, Option>>;
}

/** A command that works on the open data, in the server or in its stead. */
interface DataCommand extends CommandDefinition {
  /** What a process starts that takes the server's place: the views, where nothing else is said. With `--check`, always these. */
  readonly needs?: Run;
  readonly run: (process: RunningApp, input: CommandInput, tell: (line: string) => void) => Promise<void>;
}

/** A command, or part of one, that needs only files. */
interface FileCommand extends CommandDefinition {
  readonly run: (here: Here) => Promise<void>;
}

/** What a command finds where it was typed. */
interface Here {
  readonly dataDir: string;
  /** Engines that many processes share hold the data. */
  readonly isShared: boolean;
  readonly input: CommandInput;
  readonly tell: (line: string) => void;
  /** Has a data command carried out, by the server or in its stead. */
  readonly onData: (request: AdminRequest) => Promise<void>;
}

/** The words were understood, and something in what followed was not. */
export class WrongUsage extends Error {}

const environmentOption: Option = { doc: 'Name of the environment.', value: 'NAME' };
/** Of what the trail of the environment tells. */
const asOption = { as: { doc: 'Who you are, for the audit trail of the environment (default: the user of this system).', value: 'NAME' } } as const;
const MAX_OPERATOR = 200;
/** What breaks a line, or has what stands in it read in another order: whoever reads the trail would be told something else. */
const NO_NAME = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

/** What the server does for the command line, by the words of the command. */
const DATA_COMMANDS: Readonly<Record<string, DataCommand>> = {
  'environments create': {
    doc: 'Create an environment; its name has lower-case letters, digits and hyphens.',
    arguments: ['NAME'],
    options: asOption,
    run: async (process, { arguments: [name], origin }, tell) => {
      const environment = await process.call(systemOperation(CreateEnvironment, { name }, origin));
      tell(`${environment.id}  ${environment.name}  ${environment.client_id}`);
    },
  },
  'environments list': {
    doc: 'List the environments.',
    run: async (process, _input, tell) => {
      for (const { id, name, client_id } of await process.call(systemOperation(ListEnvironments, {}))) tell(`${id}  ${name}  ${client_id}`);
    },
  },
  'keys create': {
    doc: 'Create a secret key and show it, this once.',
    options: { environment: { ...environmentOption, isRequired: true }, name: { doc: 'Tells the key from others.', value: 'NAME' }, ...asOption },
    run: async (process, { options, origin }, tell) => {
      const key = await process.call(
        systemOperation(CreateEnvironmentKey, { environment_name: options['environment'], name: options['name'] ?? 'command line' }, origin),
      );
      tell(`${key.id}  ${key.value}`);
    },
  },
  'keys list': {
    doc: 'List the keys of one or of all environments.',
    options: { environment: environmentOption },
    run: async (process, { options }, tell) => {
      const keys = await process.call(systemOperation(ListEnvironmentKeys, { environment_name: options['environment'] }));
      for (const { id, environment_id, name, obfuscated_value, revoked_at, expires_at } of keys) {
        const state = revoked_at !== null ? `revoked ${revoked_at}` : expires_at !== null ? `until ${expires_at}` : 'active';
        tell(`${id}  ${environment_id}  ${obfuscated_value}  ${state}  ${name}`);
      }
    },
  },
  'keys rotate': {
    doc: 'Replace a key; the old one goes on working for a while.',
    arguments: ['ID'],
    options: { overlap: { doc: 'How long the old key goes on working (default 24h).', value: 'TIME' }, ...asOption },
    run: async (process, { arguments: [id], options, origin }, tell) => {
      const overlap = milliseconds(options['overlap'] ?? '24h');
      if (overlap === undefined) throw new WrongUsage('--overlap must be a time such as 30m or 24h.');
      const key = await process.call(systemOperation(RotateEnvironmentKey, { id, overlap_seconds: Math.round(overlap / 1000) }, origin));
      tell(`${key.id}  ${key.value}`);
    },
  },
  'keys revoke': {
    doc: 'Make a key useless at once.',
    arguments: ['ID'],
    options: asOption,
    run: async (process, { arguments: [id], origin }) => process.call(systemOperation(RevokeEnvironmentKey, { id }, origin)),
  },
  'erase user': {
    doc: 'Erase a person for good: deletes the user, and destroys the keys under which the log holds what is personal of them.',
    arguments: ['ID'],
    options: asOption,
    run: async (process, { arguments: [id], origin }, tell) => {
      for (const environment of await process.call(systemOperation(ListEnvironments, {}))) {
        const erasure = validatorOf<EraseUser>(operationOf(EraseUser))({ id: id! }, {}, undefined);
        erasure.context = commandLineContext(environment.id, origin);
        const isFound = await process.call(erasure).then(
          () => true,
          (error: unknown) => {
            if (isNotFound(error)) return false;
            throw error;
          },
        );
        if (isFound)
          return tell(
            `${id} of ${environment.name} is erased: a server that runs destroys the keys, or one that starts. docs/operations.md says what stays for a while.`,
          );
      }
      throw new Error(`There is and was no user ${id}.`);
    },
  },
  'token-keys rotate': {
    doc: 'Have another key sign tokens: a day later, when everybody has read it. In an emergency at once.',
    options: {
      environment: { ...environmentOption, isRequired: true },
      now: { doc: 'It signs at once: whoever keeps the key set refuses its tokens until it is read again.' },
      drop: { doc: 'As --now, and tokens of all keys of before are refused: for a key that was stolen.' },
      ...asOption,
    },
    run: async (process, { options, origin }, tell) => {
      const { environment, now, drop } = options;
      const key = await process.call(
        systemOperation(RotateTokenKeys, { environment_name: environment, now: now !== undefined, drop: drop !== undefined }, origin),
      );
      tell(`${key.kid}  ${key.alg}  signs from ${key.signs_from}`);
    },
  },
  'audit-keys rotate': {
    doc: 'Have another key sign the checkpoints of audit trails from now on. What was signed goes on being verified by the keys of before.',
    options: { environment: { ...environmentOption, isRequired: true }, ...asOption },
    run: async (process, { options, origin }, tell) => {
      const environment = (await process.call(systemOperation(ListEnvironments, {}))).find(({ name }) => name === options['environment']);
      if (environment === undefined) throw new Error(`There is no environment '${options['environment']}'.`);
      const rotation = validatorOf<RotateAuditLogKeys>(operationOf(RotateAuditLogKeys))({}, {}, {});
      rotation.context = commandLineContext(environment.id, origin);
      const { public_key, signs_from } = await process.call(rotation);
      tell(`${public_key}  Ed25519  signs from ${signs_from}`);
    },
  },
  rebuild: {
    doc: 'Fill all views anew from the log; queries answer 503 meanwhile. Has whatever stands beyond the end of the log go on from there. With --check, only tell what would change.',
    options: { check: { doc: 'Change nothing.' } },
    // It fills the views itself.
    needs: 'nothing',
    run: async (process, { options }, tell) => {
      const { runtime, engines } = process;
      if (options['check'] !== undefined) return expectNoDifference(runtime.differences(), tell);
      const began = Date.now();
      await Promise.all([runtime.projector.refill(), process.get(LeasedFollowers).resume()]);
      tell(`Every view was filled, up to position ${await engines.events.head()}, in ${((Date.now() - began) / 1000).toFixed(1)} s.`);
    },
  },
  'data-keys give-up': {
    doc: 'Declare a missing data key lost: what it sealed reads as erased, for ever. For keys that were destroyed before they left tombstones, too.',
    arguments: ['KEY'],
    options: asOption,
    run: async ({ engines: { keys, events } }, { arguments: [name], origin }, tell) => {
      if (!isErasable(name!))
        throw new WrongUsage(`'${name}' is no key that can be given up: the message that named it begins with person, environment, trail, answers or origins.`);
      if ((await keys.findMany([name])).has(name)) throw new Error(`The data key ${name} is not missing.`);
      await recordGivenUpKey(events, name, (type) => operatorRecord(type, origin));
      await keys.destroy(name);
      tell(`What the data key ${name} sealed reads as erased from now on. Views that were halted before it go on with 'rebuild'.`);
    },
  },
  'views list': {
    doc: 'Show how far each view, and whatever else follows the log, has read it, and which are halted.',
    run: async (process, _input, tell) => {
      const [views, followers] = await Promise.all([process.runtime.projector.status(), process.get(LeasedFollowers).status()]);
      const head = await process.engines.events.head();
      const line = (name: string, position: Position, reason: Halt['reason'] | null): void =>
        tell(`${name.padEnd(24)} ${position || 'nothing'} of ${head || 'nothing'}${reason === null ? '' : `, ${STANDING[reason]}`}`);
      for (const { view, position, reason } of views) line(view, position, reason);
      for (const { name, position, isAhead } of followers) line(name, position, isAhead ? 'ahead' : null);
    },
  },
  'views fill': {
    doc: 'Wait until every view has read the whole log, as before a release goes live.',
    run: async ({ runtime, engines }, _input, tell) => {
      const head = await engines.events.head();
      await runtime.projector.caughtUpWith(head);
      tell(`Every view has read the log up to position ${head}.`);
    },
  },
  'views skip': {
    doc: 'Leave the event out before which a view is halted, for ever, and go on.',
    arguments: ['VIEW', 'POSITION'],
    options: { reason: { doc: 'Why; recorded in the log.', value: 'TEXT', isRequired: true } },
    run: async ({ runtime }, { arguments: [view, position], options }, tell) => {
      if (!(await runtime.projector.status()).some((status) => status.view === view)) throw new WrongUsage(`There is no view '${view}'.`);
      await runtime.projector.skip(view!, position!, options['reason']!, operatorRecord);
      tell(`${view} goes on without the event at position ${position}.`);
    },
  },
  'webhooks set-aside': {
    doc: 'List the events that could not become webhooks, by their positions in the log, and why.',
    needs: 'nothing',
    run: async (process, _input, tell) => {
      for (const { position, environment, type, stream, at, error } of await process.get(WebhookWork).aside.list())
        tell(`${position}  ${environment}  ${type}  ${stream}  ${at}  ${error}`);
    },
  },
  'webhooks repeat': {
    doc: 'Make the webhooks of events that were set aside: of all, or of the one at a position. What fails again stays where it is.',
    options: { position: { doc: 'Where in the log the event is.', value: 'POSITION' } },
    needs: 'nothing',
    run: async (process, { options }, tell) => {
      const { position } = options;
      const repeated = await process.get(WebhookWork).repeats.repeat(position ?? null);
      if (repeated.length === 0 && position !== undefined) throw new WrongUsage(`No event at position ${position} was set aside.`);
      for (const { record, outcome } of repeated)
        tell(`${record.position}  ${record.type}  ${outcome instanceof Error ? `fails again: ${refusalText(outcome)}` : `${outcome} webhooks are queued`}`);
      if (repeated.some(({ outcome }) => outcome instanceof Error)) throw new Error('What failed again is still set aside.');
    },
  },
  'log skip': {
    doc: 'Have a damaged stream go on without what lies at a revision (from 0), or without all that is gone up to it, for ever. The revision counts.',
    arguments: ['STREAM', 'REVISION'],
    options: { reason: { doc: 'Why; recorded beside the log.', value: 'TEXT', isRequired: true } },
    needs: 'nothing',
    run: async ({ engines: { damage } }, { arguments: [stream, revision], options }, tell) => {
      const isNew = await damage.skip({ stream: stream!, revision: revisionOf(revision!), reason: reasonOf(options) }, operatorRecord);
      tell(isNew ? `${stream} goes on without revision ${revision}, in every process.` : `${stream} goes on without revision ${revision} already.`);
      const damages = await damage.inspect(stream!);
      if (damages.length > 0) tell(`Calls on it are refused all the same, since this is left: ${namedText(damages)}`);
      else if (isNew) tell("A view that was halted before what was there goes on with 'views skip'.");
    },
  },
};

/** @throws WrongUsage */
function revisionOf(text: string): number {
  const revision = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(revision)) return revision;
  throw new WrongUsage(`'${text}' is no revision: EventStoreDB counts the events of a stream from 0, and 'verify' names the damaged ones.`);
}

/** @throws WrongUsage */
function reasonOf({ reason }: CommandInput['options']): string {
  if (reason!.trim() === '') throw new WrongUsage('--reason must say why: whoever finds that something is left out asks for it.');
  return reason!.trim();
}

const STANDING: Readonly<Record<Halt['reason'], string>> = {
  unfoldable: 'halted before an event that it cannot fold',
  ahead: "halted, since the log does not have it: 'rebuild' repairs it",
  rebuilding: 'is being filled anew',
};

async function expectNoDifference(differences: AsyncIterable<Difference>, tell: (line: string) => void): Promise<void> {
  let count = 0;
  for await (const { view, environment, id, stored, rebuilt } of differences) {
    count++;
    tell(`${view} ${environment} ${id}: ${stored === null ? 'is missing' : rebuilt === null ? 'should not be there' : 'is not what the log says'}`);
  }
  if (count > 0) throw new Error(`${count} rows differ from what the log says: 'rebuild' repairs them.`);
  tell('Every row is what the log says.');
}

/** An event that an operator causes, rather than a request. */
function operatorRecord(type: string, origin?: Origin): NewEvent {
  const { environment, actor, requestId, commandId } = commandLineContext();
  const meta = { environment, actor, requestId, commandId, at: Date.now(), ...(origin && { origin }) };
  return { id: commandId, type, shape: 1, data: null, subject: null, public: [], meta };
}

const backupArguments = { arguments: ['PATH'], options: { keys: { doc: 'Directory of the keys (default: PATH-keys).', value: 'DIR' } } };

function isErasable(name: string): name is ErasablePurpose {
  return /^(?:person|environment|trail|answers|origins)\../.test(name);
}

/** The server's part of commands that begin and end where they are typed. */
const DATA_PARTS: Readonly<Record<string, DataCommand>> = {
  backup: {
    doc: '',
    run: ({ engines }, { arguments: [directory, keys] }) => copyData(engines.directory!, directory!, keys!),
  },
  restore: {
    doc: '',
    // The process that carries this out has filled the views before.
    run: async (process) => {
      await setBackErasures(process.engines);
      await expectFilled(process);
    },
  },
  compact: {
    doc: '',
    // The process that carries this out has filled the views before, so that they have forgotten what was erased.
    run: async ({ engines, runtime }) => {
      await runtime.projector.dropOldVersionsNow();
      engines.directory!.owesCompaction();
    },
  },
  'backup cluster': {
    doc: '',
    run: (process, { arguments: [path] }, tell) => backUpCluster(process, path!, tell),
    needs: 'nothing',
  },
  'restore cluster': {
    doc: '',
    run: async (process, { arguments: [path] }, tell) => {
      await restoreCluster(process, path!, tell);
      await expectFilled(process);
    },
    needs: 'restore',
  },
  verify: {
    doc: '',
    needs: 'nothing',
    run: ({ engines }, _input, tell) => verifyCluster(engines, tell),
  },
};

async function expectFilled({ runtime }: RunningApp): Promise<void> {
  const halted = (await runtime.projector.status()).filter(({ isStopped }) => isStopped).map(({ view }) => view);
  if (halted.length > 0) throw new Error(`These views are halted: ${halted.join(', ')}. The log says why; look with 'verify'.`);
}

const FILE_COMMANDS: Readonly<Record<string, FileCommand>> = {
  'audit verify': {
    doc: 'Check an export of an audit trail against its checkpoint, by files alone: docs/verifying-exports.md says what that proves.',
    arguments: ['FILE'],
    options: {
      keys: { doc: 'Saved answer of /audit_logs/keys.', value: 'FILE' },
      checkpoint: { doc: 'A checkpoint that was kept.', value: 'FILE' },
      consistency: { doc: 'Saved answer of …/consistency, where the two checkpoints differ in size.', value: 'FILE' },
      proof: { doc: 'The proof (default: FILE.proof).', value: 'FILE' },
    },
    run: async ({ input, tell }) => {
      tell(
        await verifyAuditExport(input).catch((error: unknown) => {
          throw error instanceof NotThatFile ? new WrongUsage(error.message) : error;
        }),
      );
    },
  },
  backup: {
    doc: 'Copy the data as of one moment, and its keys, into two directories. With engines: the small state, into a file (- is standard output).',
    ...backupArguments,
    run: async ({ input, tell, isShared, onData }) => {
      if (isShared) {
        const path = clusterFile(input);
        await onData({ command: 'backup cluster', input: { arguments: [path], options: {} } });
        // Beside a backup that goes to standard output.
        (path === '-' ? console.error : tell)('The small state is backed up. Now copy the log, and then the keys: docs/operations.md says how.');
        return;
      }
      const { directory, keys } = backupDirectories(input);
      await onData({ command: 'backup', input: { arguments: [directory, keys], options: {} } });
      tell(`${directory} holds everything up to position ${await sealBackup(directory, keys)}. The keys to read it are in ${keys}: keep the two apart.`);
    },
  },
  restore: {
    doc: 'Put a backup into DATA_DIR, which must hold nothing, and fill the views from its log. With engines: the small state, into an emptied database.',
    ...backupArguments,
    run: async ({ input, dataDir, tell, isShared, onData }) => {
      if (isShared) {
        await onData({ command: 'restore cluster', input: { arguments: [clusterFile(input)], options: {} } });
        tell('Every view was filled. The cluster may be started.');
        return;
      }
      const { directory, keys } = backupDirectories(input);
      tell(`${dataDir} holds everything up to position ${await restoreBackup(directory, keys, dataDir)}.`);
      const began = Date.now();
      await onData({ command: 'restore', input: { arguments: [], options: {} } });
      tell(`Every view was filled in ${((Date.now() - began) / 1000).toFixed(1)} s.`);
    },
  },
  compact: {
    doc: 'Write the views of DATA_DIR anew, without what was erased and what was replaced. A server does so when it starts after an erasure.',
    run: async ({ dataDir, isShared, input, tell, onData }) => {
      if (isShared) throw new WrongUsage("'compact' is for DATA_DIR: docs/operations.md says how the engines of a cluster give back what was erased.");
      await onData({ command: 'compact', input });
      const storage = await LmdbStorage.open({ directory: dataDir }).catch((error: unknown) => {
        throw error instanceof DirectoryHeld ? new Error('The server that runs does it when it starts again: restart it.') : error;
      });
      await storage.close();
      tell(`The views in ${dataDir} hold nothing any more of what was erased.`);
    },
  },
  verify: {
    doc: 'Read the whole log, check every record and the key of everything sealed, and that of who was erased none is left; name the first that is bad. With engines: name each.',
    run: async ({ dataDir, tell, isShared, onData }) => {
      if (isShared) return onData({ command: 'verify', input: { arguments: [], options: {} } });
      const { head, problem, unfinished } = await verifyLog(dataDir, keysIn(dataDir));
      if (problem !== null) throw new StartRefused(`${problem} Restore a backup.`, 2);
      if (unfinished.length > 0) throw erasuresUnfinished(unfinished, head);
      tell(`All records up to position ${head} are good, and their keys are there.`);
    },
  },
};

/** Every command, by its words: what the help lists. */
export const COMMANDS: Readonly<Record<string, DataCommand | FileCommand>> = { ...DATA_COMMANDS, ...FILE_COMMANDS };

/** In the process where a command was typed. */
export async function carryOut(here: Here, command: string): Promise<void> {
  const onFiles = FILE_COMMANDS[command];
  if (onFiles === undefined) await here.onData({ command, input: here.input });
  else await onFiles.run(here);
}

/** In the process that holds the data. */
export async function carryOutOnData(process: RunningApp, { command, input }: AdminRequest, tell: (line: string) => void): Promise<void> {
  const known = DATA_PARTS[command] ?? DATA_COMMANDS[command];
  if (known === undefined) throw new WrongUsage(`The server knows no command '${command}': it may be of another release.`);
  try {
    await known.run(process, input, tell);
  } catch (error) {
    if (error instanceof StartRefused) throw error;
    throw new Error(refusalText(error), { cause: error });
  }
}

/** What a process starts that takes the server's place for this. */
export function neededFor({ command, input }: AdminRequest): Run {
  const needs = (DATA_PARTS[command] ?? DATA_COMMANDS[command])?.needs;
  return needs === undefined || input.options['check'] !== undefined ? 'views' : needs;
}

/** @throws WrongUsage */
function clusterFile({ arguments: [path], options }: CommandInput): string {
  if (options['keys'] !== undefined) throw new WrongUsage('The keys of a cluster are copied by themselves, after the log: docs/operations.md says how.');
  return path === '-' ? path : resolve(path!);
}

function backupDirectories({ arguments: [directory], options }: CommandInput): { readonly directory: string; readonly keys: string } {
  return { directory: resolve(directory!), keys: resolve(options['keys'] ?? `${directory}-keys`) };
}

/** What the command line asks belongs to no environment; no HTTP request reaches it. @throws DomainError naming what is wrong in the fields */
function systemOperation<O extends Operation>(type: Class<O>, fields: Readonly<Record<string, unknown>>, origin?: Origin): O {
  const operation = validatorOf<O>(operationOf(type))({}, {}, fields);
  operation.context = commandLineContext(SYSTEM_ENVIRONMENT, origin);
  return operation;
}

function commandLineContext(environment = SYSTEM_ENVIRONMENT, origin?: Origin): RequestContext {
  return { ...systemContext(environment, Date.now()), actor: { id: COMMAND_LINE, source: 'system', name: 'command line' }, ...(origin && { origin }) };
}

/** Who types a command, and where. @throws WrongUsage */
export function originOf({ options: { as } }: CommandInput): Origin {
  const operator = (as ?? userOfSystem()).trim();
  if (operator === '' || operator.length > MAX_OPERATOR || NO_NAME.test(operator))
    throw new WrongUsage(`--as must be a name of at most ${MAX_OPERATOR} characters, in one line and without control characters.`);
  return { address: hostname(), userAgent: 'gatehouse command line', operator };
}

/** A user of a container may have no name. */
function userOfSystem(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** @throws WrongUsage */
export function parseCommand(commands: Readonly<Record<string, CommandDefinition>>, args: readonly string[]): AdminRequest {
  const command = Object.keys(commands)
    .filter((words) => words.split(' ').every((word, index) => args[index] === word))
    .sort((one, other) => other.length - one.length)[0];
  if (command === undefined) throw new WrongUsage(args.length === 0 ? 'Which command?' : `There is no command '${args.slice(0, 2).join(' ')}'.`);
  const definition = commands[command]!;
  const { positionals, values } = optionsOf(definition, args.slice(command.split(' ').length));
  const expected = definition.arguments ?? [];
  if (positionals.length !== expected.length) throw new WrongUsage(`'${command}' takes ${expected.length === 0 ? 'nothing more' : expected.join(' ')}.`);
  for (const [name, { isRequired }] of Object.entries(definition.options ?? {}))
    if (isRequired && values[name] === undefined) throw new WrongUsage(`'${command}' needs --${name}.`);
  return { command, input: { arguments: positionals, options: values } };
}

function optionsOf({ options = {} }: CommandDefinition, args: readonly string[]) {
  try {
    const known = Object.fromEntries(
      Object.entries(options).map(([name, { value }]) => [name, { type: value === undefined ? ('boolean' as const) : ('string' as const) }]),
    );
    const { positionals, values } = parseArgs({ args: [...args], options: known, allowPositionals: true });
    return { positionals, values: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)])) };
  } catch (error) {
    throw new WrongUsage((error as Error).message.split('. ')[0]);
  }
}

function usageOf([name, { value, isRequired }]: [string, Option]): string {
  const usage = value === undefined ? `--${name}` : `--${name} ${value}`;
  return isRequired ? usage : `[${usage}]`;
}

export function helpText(commands: Readonly<Record<string, CommandDefinition>>): string {
  const lines = Object.entries(commands).map(([words, { arguments: names = [], options = {}, doc }]) => {
    const usage = [words, ...names, ...Object.entries(options).map(usageOf)].join(' ');
    return `  ${usage.padEnd(52)} ${doc}`;
  });
  return ['Usage: npm run gatehouse -- COMMAND', '', ...lines, '', 'Speaks to the server that runs on DATA_DIR; opens DATA_DIR itself when none runs.'].join(
    '\n',
  );
}
