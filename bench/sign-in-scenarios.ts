import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { AUDIT_TRAIL } from '#apps/audit-logs/src/domain/audit-trail.decider';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { categoryOf } from '#libs/event-sourcing/src/log/naming';
import { inTurns } from '#libs/platform/src/in-turns';
import { LogForReading } from '#libs/platform/src/storage/log-storage';
import { environmentSettingsDecider } from '#apps/identity/src/domain/environment-settings.decider';
import { tokenKeysDecider } from '#apps/identity/src/domain/token-keys.decider';
import { liveBytes, loadedFirst } from './cluster-ground.ts';
import { referenceOfText } from './reference.ts';
import type { Ground, Pace, Row, Scenario } from './scenario.ts';
import { loaded, timing } from './suite-load.ts';
import { KEY, Suite } from './suite.ts';
import { count, percent, rate, row } from './table.ts';

const AUTHENTICATE = '/user_management/authenticate';
const MAGIC_AUTH = '/user_management/magic_auth';
const USERS = '/user_management/users';
const MAGIC_GRANT = 'urn:gatehouse:oauth:grant-type:magic-auth:code';
const CONNECTIONS = 64;
const SESSIONS_PER_ORGANIZATION = 10;
const USERS_PER_SESSION = 4;
/** Requests in flight while people are made. */
const TOGETHER = 32;
const REFRESHES_OF_ONE = 2_000;
const ATTEMPTS = 100_000;
/** Sessions after which a process remembers no more of its last keys, heads of streams, records and tokens than before: of most of them 10,000. */
const FILLING = 11_000;
/** What a process remembers for a minute is no memory of sessions. */
const FORGOTTEN_MS = 65_000;
/** What refreshes are measured beside: the change of the setting, the key that it makes, and the environment's own trail, which tells of its administration. */
const ADMINISTRATION: ReadonlySet<string> = new Set([environmentSettingsDecider.category, tokenKeysDecider.category, AUDIT_TRAIL]);
const MEGABYTE = 1_048_576;
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0';

interface Bench {
  readonly ground: Ground;
  readonly pace: Pace;
  readonly suite: Suite;
  readonly clientId: string;
  /** What was recorded since the last time that it was asked, but for administration, beside the process that writes. */
  readonly recorded: () => Promise<readonly RecordedEvent[]>;
  /** Bytes that the process keeps, once everything was collected. */
  readonly memory: () => Promise<number>;
}

interface SignedIn {
  readonly refresh_token: string;
}

export const SIGN_IN_SCENARIOS: readonly Scenario[] = [
  scenario('sign-in-refresh', refreshes),
  scenario('sign-in-codes', codes),
  scenario('sign-in-keys', keySets),
  scenario('sign-in-radar', radarAttempts),
  scenario('sign-in-memory', memoryOfSessions),
];

function scenario(name: string, measured: (bench: Bench) => Promise<readonly Row[]>): Scenario {
  return {
    name,
    organizations: 'none',
    measure: async (ground, pace) => {
      const directory = await mkdtemp(join(tmpdir(), 'gatehouse-sign-in-'));
      const options = [
        await loadedFirst('live-memory.js', directory),
        ...(pace.profiles === null ? [] : [await loadedFirst('profiler.js', join(pace.profiles, name))]),
      ];
      const suite = await Suite.start(join(directory, 'data'), options);
      try {
        const clientId = await Suite.clientId(join(directory, 'data'));
        const memory = (): Promise<number> => liveBytes(suite.pid, join(directory, basename(process.cwd())));
        return await measured({ ground, pace, suite, clientId, memory, recorded: recordedIn(join(directory, 'data')) });
      } finally {
        await suite.stop();
        await rm(directory, { recursive: true, force: true });
      }
    },
  };
}

async function refreshes(bench: Bench): Promise<readonly Row[]> {
  const { ground, pace, suite, clientId, recorded } = bench;
  await suite.patch('/admin/environment_settings', { token_algorithm: 'ES256' });
  let tokens = await sessions(bench, pace.sessions);
  await suite.caughtUp();
  const load = async (): Promise<Awaited<ReturnType<typeof loaded>>> => {
    const [file, next] = [await ground.fileOf('tokens', tokens), await ground.fileOf('next-tokens', [])];
    const result = await loaded(suite, {
      url: suite.url + AUTHENTICATE,
      script: 'refresh',
      arguments: [KEY, clientId, file, next],
      connections: CONNECTIONS,
      seconds: pace.seconds,
    });
    tokens = latest(tokens, await readFile(next, 'utf8'));
    return result;
  };
  // Warms up what is asked for; whatever was in flight at its end is answered again within half a minute.
  await load();
  await recorded();
  const elliptic = await load();
  await suite.patch('/admin/environment_settings', { token_algorithm: 'RS256' });
  // Making the key is not what is measured.
  tokens[0] = await refreshed(bench, tokens[0]!);
  const rsa = await load();
  const grown = await recorded();
  const signatures = await rsaSignatures(Math.min(5, pace.seconds));
  const share = rsa.perSecond / signatures.perSecond;
  const what = `refresh of ${count(pace.sessions)} sessions in ${count(organizationsFor(pace.sessions))} organizations, ${CONNECTIONS} connections`;
  return [
    row(`${what}, ES256`, '≥ 3,000/s, p99 ≤ 60 ms', timing(elliptic), elliptic.perSecond >= 3_000 && elliptic.p99 <= 60),
    row(
      'the same with RS256, of what the machine signs',
      '≥ 60 %',
      `${percent(share)} of ${rate(signatures.perSecond)} (${signatures.microseconds.toFixed(0)} µs each); ${timing(rsa)}`,
      share >= 0.6,
    ),
    row(
      'recorded in the log by these refreshes',
      'none',
      `${grown.length === 0 ? 'none' : grown.map(({ type }) => type).join(', ')}, of ${count(elliptic.requests + rsa.requests)} refreshes in ${count(2 * pace.seconds)} s`,
      grown.length === 0,
    ),
  ];
}

async function codes({ ground, pace, suite, clientId }: Bench): Promise<readonly Row[]> {
  const users = pace.sessions * USERS_PER_SESSION;
  const emails = Array.from({ length: users }, (_, index) => `person-${index}@bench.test`);
  await inTurns(emails, TOGETHER, async (email) => suite.post(USERS, { email, email_verified: true }));
  await suite.caughtUp();
  const file = await ground.fileOf('emails', emails);
  const result = await loaded(suite, {
    url: suite.url,
    script: 'codes',
    arguments: [KEY, clientId, file],
    connections: CONNECTIONS,
    seconds: pace.seconds,
  });
  const pairs = result.perSecond / 2;
  return [
    row(
      `code by mail made and redeemed, ${count(users)} users, ${CONNECTIONS} connections`,
      '≥ 1,000 pairs/s',
      `${rate(pairs)} pairs, ${(2 * result.microseconds).toFixed(0)} µs of processor each; p50 of either ${result.p50.toFixed(1)} ms, p99 ${result.p99.toFixed(1)} ms`,
      pairs >= 1_000,
    ),
  ];
}

async function keySets({ ground, pace, suite, clientId }: Bench): Promise<readonly Row[]> {
  const path = `/sso/jwks/${clientId}`;
  if (!(await suite.get(path)).includes('"x5c"')) throw new Error(`${path} shows no key.`);
  const file = await ground.fileOf('keys', [path]);
  const load = (): ReturnType<typeof loaded> =>
    loaded(suite, { url: suite.url, script: 'get', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
  await load();
  const plain = await referenceOfText(pace.seconds, await ground.fileOf('text', ['/sso/jwks']));
  const result = await load();
  const share = result.perSecond / plain.perSecond;
  return [
    row(
      '`GET /sso/jwks/{clientId}`, of a plain Fastify that sends a text of that length, 32 connections',
      '≥ 60 %',
      `${percent(share)} of ${rate(plain.perSecond)}; ${timing(result)}`,
      share >= 0.6,
    ),
  ];
}

async function radarAttempts({ ground, pace, suite }: Bench): Promise<readonly Row[]> {
  const risk = { bot_detection: 'block', brute_force_attack: 'block', credential_stuffing: 'block', restriction: 'block' };
  await suite.patch('/admin/environment_settings', { risk });
  await suite.ask('/radar/lists/ip_address/block', { entry: '192.0.2.1' });
  const lines = Array.from({ length: ATTEMPTS }, (_, index) => {
    const ip_address = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
    const body = { ip_address, user_agent: BROWSER, email: `person-${index}@bench.test`, auth_method: 'Password', action: 'sign-in' };
    return `/radar/attempts ${JSON.stringify(body)}`;
  });
  const file = await ground.fileOf('attempts', lines);
  const load = (): ReturnType<typeof loaded> =>
    loaded(suite, { url: suite.url, script: 'send', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
  await load();
  const result = await load();
  const what = `\`POST /radar/attempts\`, every control on, ${count(ATTEMPTS)} accounts and addresses, 32 connections`;
  return [row(what, '≥ 5,000/s', timing(result), result.perSecond >= 5_000)];
}

async function memoryOfSessions(bench: Bench): Promise<readonly Row[]> {
  const { pace, suite, memory } = bench;
  await suite.patch('/admin/environment_settings', { token_algorithm: 'ES256' });
  // Caches of a fixed size are full after so many.
  await sessions(bench, FILLING);
  const settled = async (): Promise<number> => {
    await suite.caughtUp();
    await pause(FORGOTTEN_MS);
    return memory();
  };
  const before = await settled();
  const tokens = await sessions(bench, pace.sessions);
  const active = (await settled()) - before;
  let token = tokens[0]!;
  for (let turn = 0; turn < REFRESHES_OF_ONE; turn++) token = await refreshed(bench, token);
  const refreshedOnce = await inTurns(tokens.slice(1), TOGETHER, async (each) => refreshed(bench, each));
  const later = (await settled()) - before;
  const perSession = [active, later].map((bytes) => bytes / pace.sessions);
  return [
    row(
      `memory of ${count(pace.sessions)} active sessions more than ${count(FILLING)}, with users, memberships and codes; then with ${count(refreshedOnce.length)} refreshed once and one ${count(REFRESHES_OF_ONE)} times`,
      '≤ 1 KB each',
      `${perSession.map((bytes) => `${bytes.toFixed(0)} bytes`).join(', then ')} each, beside ${count(before / MEGABYTE)} MB, once everything was collected`,
      perSession.every((bytes) => bytes <= 1_024),
    ),
  ];
}

/** The log of a suite as the process that writes it has committed it. */
function recordedIn(directory: string): () => Promise<readonly RecordedEvent[]> {
  const log = new LmdbEventStore(new LogForReading(directory));
  let after = START;
  return async () => {
    const [recorded, head]: [RecordedEvent[], Position] = [[], await log.head()];
    if (head === after) return recorded;
    for await (const batch of log.subscribe(after, new AbortController().signal)) {
      recorded.push(...batch.filter(({ stream }) => !ADMINISTRATION.has(categoryOf(stream))));
      after = batch.at(-1)!.position;
      if (after >= head) break;
    }
    return recorded;
  };
}

/** Has so many people sign in, each a member of one of a tenth as many organizations. Answers their refresh tokens. */
async function sessions({ suite, clientId }: Bench, amount: number): Promise<string[]> {
  const names = Array.from({ length: organizationsFor(amount) }, (_, index) => `Bench ${index}`);
  const organizations = await inTurns(names, TOGETHER, async (name) => ((await suite.post('/organizations', { name })) as { readonly id: string }).id);
  const begun = Date.now();
  return inTurns(
    Array.from({ length: amount }, (_, index) => index),
    TOGETHER,
    async (index) => {
      const email = `person-${begun}-${index}@bench.test`;
      const { id: user_id } = (await suite.post(USERS, { email, email_verified: true })) as { readonly id: string };
      await suite.post('/user_management/organization_memberships', { user_id, organization_id: organizations[index % organizations.length] });
      const { code } = (await suite.post(MAGIC_AUTH, { email })) as { readonly code: string };
      const shown = { client_id: clientId, client_secret: KEY, grant_type: MAGIC_GRANT, email, code };
      return ((await suite.ask(AUTHENTICATE, shown)) as SignedIn).refresh_token;
    },
  );
}

async function refreshed({ suite, clientId }: Bench, refresh_token: string): Promise<string> {
  const shown = { client_id: clientId, client_secret: KEY, grant_type: 'refresh_token', refresh_token };
  return ((await suite.ask(AUTHENTICATE, shown)) as SignedIn).refresh_token;
}

function organizationsFor(amount: number): number {
  return Math.ceil(amount / SESSIONS_PER_ORGANIZATION);
}

/** The last token that was given for each session. */
function latest(tokens: readonly string[], given: string): string[] {
  const sessionOf = (token: string): string => token.slice(0, token.indexOf('.'));
  const last = new Map([...tokens, ...given.split('\n').filter((line) => line !== '')].map((token) => [sessionOf(token), token]));
  return [...last.values()];
}

/** What the machine signs when it does nothing else: as many at once as there are connections, in the threads of libuv. */
async function rsaSignatures(seconds: number): Promise<{ readonly perSecond: number; readonly microseconds: number }> {
  const { privateKey: key } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const signed = promisify(sign);
  const input = Buffer.alloc(512, 'x');
  let signatures = 0;
  const [begun, used] = [performance.now(), process.cpuUsage()];
  const end = begun + seconds * 1_000;
  const one = async (): Promise<void> => {
    for (; performance.now() < end; signatures++) await signed('sha256', input, key);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
  const { user, system } = process.cpuUsage(used);
  return { perSecond: (signatures / (performance.now() - begun)) * 1_000, microseconds: (user + system) / signatures };
}
