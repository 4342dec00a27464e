import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Suite } from '#apps/suite/src/suite';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { DEFAULT_MODE, kindOf, settingsOf } from '#libs/platform/src/config/setting';
import { SETTINGS_CLASSES } from '#libs/platform/src/config/settings';
import { PinoLog } from '#libs/platform/src/pino.log';
import { StartRefused } from '#libs/platform/src/start-refused';
import { LogForReading } from '#libs/platform/src/storage/log-storage';
import { failedStart, SuiteProcess } from '#libs/testing/src/process';

type Variables = Readonly<Record<string, string>>;

/** No setting takes this. */
const WRONG = 'no such välue';

const root = mkdtempSync(join(tmpdir(), 'gatehouse-refusals-'));
/** Data of a run that ended well: each test works on a copy. */
const sound = join(root, 'sound');
let blocker: Server;
let takenPort: string;

beforeAll(async () => {
  blocker = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => blocker.once('listening', resolve));
  takenPort = String((blocker.address() as AddressInfo).port);
  const suite = await SuiteProcess.start({ DATA_DIR: sound, DATA_MIN_FREE: '0' });
  const key = readFileSync(join(sound, 'development.key'), 'utf8').trim();
  for (let index = 0; index < 50; index++) {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const { status } = await fetch(`${suite.url}/organizations`, { method: 'POST', headers, body: JSON.stringify({ name: `Number ${index}` }) });
    expect(status).toBe(201);
  }
  expect((await suite.stop()).code).toBe(0);
});
afterAll(() => {
  blocker.close();
  rmSync(root, { recursive: true });
});

let copies = 0;
function copy(): string {
  const directory = join(root, `copy-${++copies}`);
  cpSync(sound, directory, { recursive: true });
  return directory;
}

/** The log as it lies on disk. */
function hashOfLog(directory: string): string {
  return createHash('sha256')
    .update(readFileSync(logOf(directory)))
    .digest('hex');
}

/** Where the log of a directory ends; fails where any record of it cannot be relied on. */
async function endOfLog(directory: string): Promise<string> {
  const storage = new LogForReading(directory);
  const log = new LmdbEventStore(storage);
  for await (const problem of log.verify()) expect(problem).toBeUndefined();
  const end = await log.head();
  await storage.log.close();
  return end;
}

/** Starts, and answers the one line in which it says why it does not. */
async function refusal(variables: Variables): Promise<string> {
  const { code, signal, stdout, stderr } = await failedStart({ DATA_DIR: join(root, `new-${++copies}`), DATA_MIN_FREE: '0', ...variables });
  const lines = stderr.trim().split('\n');
  expect({ lines: lines.length, signal, isZero: code === 0 }).toEqual({ lines: 1, signal: null, isZero: false });
  expect(lines[0]).toMatch(/^gatehouse: .*\.$/);
  for (const text of [stdout, stderr]) expect(text).not.toMatch(/^\s+at |node:internal|\.js:\d|UnhandledPromise|This should not happen/m);
  expect(stdout).not.toContain('is ready');
  return lines[0]!;
}

/**
 * The same without a program, which takes most of its start for loading: answers the sentence that a program prints as its one line. That it does so, programs show
 * for what is refused at each of the moments of a start: by the first settings, by the data, and by the machine.
 */
async function refusalHere(variables: Variables): Promise<string> {
  const started = Suite.start({
    variables: { PORT: '0', DATA_DIR: join(root, `new-${++copies}`), DATA_MIN_FREE: '0', ...variables },
    log: new PinoLog({ level: 'silent', readable: false }),
    onFatal: (sentence) => {
      throw new Error(sentence);
    },
  });
  const error: unknown = await started.then(
    (suite) => suite.close(),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StartRefused);
  const { message } = error as StartRefused;
  expect(message).toMatch(/^.*\.$/);
  return message;
}

describe('a start that cannot be says in one line why, and what to do', () => {
  it.each<[string, (variables: Variables) => Promise<string>, () => Variables, RegExp]>([
    ['the port is taken', refusal, () => ({ PORT: takenPort }), /PORT/],
    ['the port of operations is taken', refusalHere, () => ({ OPERATIONS_PORT: takenPort }), /OPERATIONS_PORT/],
    ['the address is of another machine', refusalHere, () => ({ HOST: '203.0.113.1' }), /HOST/],
    ['the host has no address', refusalHere, () => ({ HOST: 'no-such-host.invalid' }), /HOST/],
    ['the directory is a file', refusal, () => ({ DATA_DIR: join(sound, 'development.key') }), /it is a file/],
    ['the directory would be below a file', refusalHere, () => ({ DATA_DIR: join(sound, 'development.key', 'below') }), /part of the path is a file/],
    ['the directory cannot be written to', refusalHere, () => ({ DATA_DIR: unwritable() }), /DATA_DIR .* cannot be used/],
    ['the first key is none', refusalHere, () => ({ DATA_DIR: withWrongKey(copy()) }), /holds no key/],
    ['production has no master key', refusal, () => ({ GATEHOUSE_MODE: 'production' }), /MASTER_KEYS is not set/],
    ['the same from a file with Windows line ends', refusalHere, () => ({ GATEHOUSE_MODE: 'production\r' }), /MASTER_KEYS is not set/],
    [
      'several settings are wrong, of all kinds',
      refusal,
      () => ({
        PORT: 'x',
        SHUTDOWN_TIMEOUT: 'soon',
        EVENTSTORE_URL: 'esdb://127.0.0.1:1?keepAliveTimeout=1',
        MONGODB_URL: 'mongodb://127.0.0.1:1/?tls=true&tlsCAFile=/nowhere/ca',
      }),
      /SHUTDOWN_TIMEOUT is .* PORT is .* KAFKA_BROKERS must be set too.* MASTER_KEYS is not set.* keepAliveTimeout.* \/nowhere\/ca cannot be read/,
    ],
    ['there is no such mode', refusal, () => ({ GATEHOUSE_MODE: 'prod' }), /GATEHOUSE_MODE is "prod", but must be development or production/],
  ])('%s', async (_, ask, variables, expected) => expect(await ask(variables())).toMatch(expected));

  it('the directory is held by another process', async () => {
    const directory = copy();
    const holder = await SuiteProcess.start({ DATA_DIR: directory, DATA_MIN_FREE: '0' });
    // In two lines: that it waits, and that it has waited.
    const { code, stdout, stderr } = await failedStart({ DATA_DIR: directory, DATA_MIN_FREE: '0', DATA_DIR_WAIT: '2s' });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^gatehouse: Another process works on .*'strategy: Recreate'\.\n$/)]);
    expect(stdout).toContain('waits up to 2 s');
    expect((await fetch(`${holder.url}/health/ready`)).status).toBe(200);
    expect((await holder.stop()).code).toBe(0);
  });

  it('the data was written under another master key', async () => {
    const masterKey = (): string => randomBytes(32).toString('base64');
    const variables = { DATA_DIR: join(root, 'mastered'), DATA_MIN_FREE: '0' };
    const suite = await SuiteProcess.start({ ...variables, MASTER_KEYS: masterKey() });
    await suite.stop();
    expect(await refusal({ ...variables, MASTER_KEYS: masterKey() })).toContain('MASTER_KEYS');
  });

  // One of each class: they are read at different moments of the start. And every secret, since it must not be shown.
  const settings = SETTINGS_CLASSES.flatMap((type) =>
    settingsOf(type).filter((field, index) => (field.secret || index === 0) && kindOf(field, DEFAULT_MODE).read(WRONG) === undefined),
  );
  it.each(settings.map((field) => [field.name, field] as const))('the setting %s is wrong', async (name, field) => {
    // What is read before anything is loaded, and what is read afterwards.
    const line = await (['HOST', 'SERVICE_KEY'].includes(name) ? refusal : refusalHere)({ [name]: WRONG });
    for (const part of [name, kindOf(field, DEFAULT_MODE).allowed]) expect(line).toContain(part);
    expect(line.includes(WRONG)).toBe(!field.secret);
  });
});

describe('data that cannot be used is told in one line, and is left as it is', () => {
  const damages: readonly [string, (directory: string) => void, RegExp][] = [
    ['of a later release', (directory) => writeFileSync(join(directory, 'format'), '99\n'), /start the release that wrote it/],
    ['of no release', (directory) => writeFileSync(join(directory, 'format'), 'nonsense\n'), /format/],
    ['with pages that are zeroed', (directory) => zeroed(logOf(directory)), /is damaged .* restore a backup/],
    ['with a log that is no log', (directory) => writeFileSync(logOf(directory), randomBytes(65_536)), /is damaged .* restore a backup/],
    [
      'with a log that is cut off',
      (directory) => truncateSync(logOf(directory), Math.floor(statSync(logOf(directory)).size / 2)),
      /is damaged .* restore a backup/,
    ],
  ];

  it.each(damages)('%s', async (_, damage, expected) => {
    const directory = copy();
    damage(directory);
    const before = hashOfLog(directory);
    expect(await refusal({ DATA_DIR: directory })).toMatch(expected);
    expect(hashOfLog(directory)).toBe(before);
  });

  // The log is opened first, which raises the number of its owner.
  it.each<[string, (keys: string) => void, RegExp]>([
    ['with keys that were lost', (keys) => rmSync(keys, { recursive: true }), /keys are missing/],
    ['with keys that are garbled', (keys) => everyFile(keys, (file) => writeFileSync(file, 'nonsense')), /The data keys in .* are damaged/],
  ])('%s', async (_, damage, expected) => {
    const directory = copy();
    damage(join(directory, 'keys'));
    const before = await endOfLog(directory);
    expect(await refusalHere({ DATA_DIR: directory })).toMatch(expected);
    expect(await endOfLog(directory)).toBe(before);
  });
});

/** Root may write anywhere but where nobody may. */
function unwritable(): string {
  if (process.getuid?.() === 0) return '/sys/gatehouse';
  const directory = join(root, 'unwritable');
  mkdirSync(directory);
  chmodSync(directory, 0o500);
  return directory;
}

function logOf(directory: string): string {
  return join(directory, 'log', 'data.mdb');
}

function everyFile(directory: string, change: (file: string) => void): void {
  for (const { parentPath, name } of readdirSync(directory, { withFileTypes: true })) change(join(parentPath, name));
}

function withWrongKey(directory: string): string {
  writeFileSync(join(directory, 'development.key'), 'nonsense\n');
  return directory;
}

/** The second half of the file. */
function zeroed(file: string): void {
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0, bytes.length / 2));
}
