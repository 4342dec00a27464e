import { createHash, createSecretKey, X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { calculateJwkThumbprint, createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import type { TokenAlgorithm } from '#libs/contracts/src/environment-settings/environment-settings';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import type { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { readSettings } from '#libs/platform/src/config/setting';
import { PublicAddressSettings } from '#libs/platform/src/config/settings';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { systemContext } from '#libs/platform/src/system-context';
import { givenEngineSets, type EngineSet } from '#libs/testing/src/engine-sets';
import { givenKeys } from '#libs/testing/src/given-keys';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { until } from '#libs/testing/src/until';
import { changeSettings, environmentSettingsDecider } from '../domain/environment-settings.decider.ts';
import { EnvironmentSettingsReader } from './environment-settings-reader.ts';
import { KnownStates } from './known-states.ts';
import { TokenKeys } from './token-keys.ts';

const HOUR = 3_600_000;
const SESSION = { typ: 'JWT' };
const WIDGET = { typ: 'widget+jwt', aud: 'widgets' };
const log = new PinoLog({ level: 'silent', readable: false });
const naming = new Naming(createSecretKey(Buffer.alloc(32)));

describe.each(await givenEngineSets())('token keys on %s', (_, open) => {
  const test = open === null ? it.skip : it;
  let engines: EngineSet;
  let directory: string;
  let keys: KeyStore;
  let clock: SettableClock;
  let replicas: readonly { readonly tokens: TokenKeys; readonly states: KnownStates; readonly repository: LogRepository }[];
  let environment: string;

  beforeAll(async () => {
    if (open === null) return;
    engines = await open();
    directory = await mkdtemp(join(tmpdir(), 'token-keys-'));
    keys = await givenKeys(directory);
    clock = new SettableClock(Date.now());
    replicas = [replica(), replica()];
    for (const { states } of replicas) await states.start();
  });
  beforeEach(() => (environment = `environment_${newUlid(Date.now())}`));
  afterAll(async () => {
    if (open === null) return;
    for (const { states } of replicas) await states.stop();
    await engines.close();
    await rm(directory, { recursive: true });
  });

  function replica() {
    const repository = new LogRepository(engines.events, engines.readModels, naming, clock, log);
    const states = new KnownStates(new LogFollowing(engines.events, clock, log), repository, clock);
    const settings = readSettings(PublicAddressSettings, { PUBLIC_URL: 'https://id.acme.test/' });
    return { tokens: new TokenKeys(states, new EnvironmentSettingsReader(states), repository, new Vault(keys), clock, settings), states, repository };
  }

  const tokens = (): TokenKeys => replicas[0]!.tokens;
  const claims = () => ({ sub: 'user_1', exp: Math.floor(clock.now() / 1_000) + 300 });
  const verified = async (token: string, replica = tokens()) =>
    jwtVerify(token, createLocalJWKSet({ keys: (await replica.keySet(environment)).map((key) => ({ ...key, x5c: [...key.x5c] })) }), {
      currentDate: new Date(clock.now()),
    });
  const choose = async (token_algorithm: TokenAlgorithm): Promise<void> => {
    const { repository } = replicas[0]!;
    await repository.transact(environmentSettingsDecider, systemContext(environment, clock.now()), environment, changeSettings({ token_algorithm }));
  };
  const rotate = (options: Partial<Parameters<TokenKeys['rotate']>[1]> = {}) =>
    tokens().rotate(systemContext(environment, clock.now()), { isNow: false, isDropped: false, ...options });

  test('sign what jose verifies, by default with RSA', async () => {
    const { payload, protectedHeader } = await verified(await tokens().sign(environment, claims(), SESSION));
    expect(payload).toEqual(claims());
    const [key] = await tokens().keySet(environment);
    expect(protectedHeader).toEqual({ alg: 'RS256', typ: 'JWT', kid: key!.kid });
    expect(key).toEqual({
      kty: 'RSA',
      use: 'sig',
      alg: 'RS256',
      kid: expect.any(String),
      n: expect.any(String),
      e: 'AQAB',
      x5c: [expect.any(String)],
      'x5t#S256': expect.any(String),
    });
    expect(Buffer.from(key!.n!, 'base64url')).toHaveLength(256);
  });

  test('carry certificates that are signed with themselves, for clients that read nothing else', async () => {
    const [key] = await tokens().keySet(environment);
    const raw = Buffer.from(key!.x5c[0]!, 'base64');
    const certificate = new X509Certificate(raw);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.publicKey.export({ format: 'jwk' })).toMatchObject({ n: key!.n, e: key!.e });
    expect(key!['x5t#S256']).toBe(createHash('sha256').update(raw).digest('base64url'));
    expect(key!.kid).toBe(await calculateJwkThumbprint({ ...key!, x5c: [...key!.x5c] }));
  });

  test('are the same where two replicas need the first at once', async () => {
    const signed = await Promise.all(
      replicas.flatMap((one) => [one.tokens.sign(environment, claims(), SESSION), one.tokens.sign(environment, claims(), SESSION)]),
    );
    expect(new Set(signed.map((token) => decodeProtectedHeader(token).kid)).size).toBe(1);
    for (const { tokens: each } of replicas) expect(await each.keySet(environment)).toHaveLength(1);
    for (const token of signed) await verified(token, replicas[1]!.tokens);
  });

  test('follow the algorithm of the settings, and verify what was signed before', async () => {
    const before = await tokens().sign(environment, claims(), SESSION);
    await choose('ES256');
    for (const { tokens: each } of replicas) {
      await until(async () => decodeProtectedHeader(await each.sign(environment, claims(), SESSION)).alg === 'ES256');
      expect((await each.keySet(environment)).map(({ alg }) => alg)).toEqual(['RS256', 'ES256']);
      expect((await verified(await each.sign(environment, claims(), SESSION))).protectedHeader.alg).toBe('ES256');
      await verified(before, each);
    }
    const raw = (await tokens().keySet(environment))[1]!;
    expect(raw).toEqual({
      kty: 'EC',
      use: 'sig',
      alg: 'ES256',
      crv: 'P-256',
      kid: raw.kid,
      x: expect.any(String),
      y: expect.any(String),
      x5c: [expect.any(String)],
      'x5t#S256': expect.any(String),
    });
  });

  test('hold their private parts sealed', async () => {
    await tokens().sign(environment, claims(), SESSION);
    const [record] = await engines.events.read(`token_keys-${environment}-${environment}`, 1);
    expect(record!.data).toMatchObject({ private_key: expect.stringMatching(/^enc\.v1\./) });
    expect(JSON.stringify(record)).not.toMatch(/"d":|PRIVATE/);
  });

  test('are told apart by kind: none passes for another', async () => {
    const [session, widget] = await Promise.all([tokens().sign(environment, claims(), SESSION), tokens().sign(environment, claims(), WIDGET)]);
    const [, other] = replicas;
    expect(await other!.tokens.verify(environment, session, SESSION)).toEqual(claims());
    expect(await other!.tokens.verify(environment, widget, WIDGET)).toEqual({ ...claims(), aud: 'widgets' });
    expect(await other!.tokens.verify(environment, session, WIDGET)).toBeNull();
    expect(await other!.tokens.verify(environment, widget, SESSION)).toBeNull();
    expect(await other!.tokens.verify(environment, widget, { ...WIDGET, aud: 'others' })).toBeNull();
    expect(await other!.tokens.verify(`environment_${newUlid(Date.now())}`, session, SESSION)).toBeNull();
  });

  test('refuse what was altered, has expired, or chooses its own algorithm', async () => {
    const token = await tokens().sign(environment, claims(), SESSION);
    const [header, payload, signature] = token.split('.') as [string, string, string];
    const text = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const { kid } = decodeProtectedHeader(token);
    const forged = [
      `${header}.${text({ ...claims(), sub: 'user_2' })}.${signature}`,
      `${text({ alg: 'none', typ: 'JWT', kid })}.${payload}.`,
      `${text({ alg: 'HS256', typ: 'JWT', kid })}.${payload}.${signature}`,
      `${text({ alg: 'RS256', typ: 'JWT', kid: 'another' })}.${payload}.${signature}`,
      `${header}.${payload}`,
      `${token}.${signature}`,
      `${header}.bm8.${signature}`,
      '',
      '.'.repeat(20_000),
      await tokens().sign(environment, { sub: 'user_1' }, SESSION),
      await tokens().sign(environment, { ...claims(), exp: Math.floor(clock.now() / 1_000) }, SESSION),
    ];
    for (const one of forged) expect(await tokens().verify(environment, one, SESSION)).toBeNull();
    expect(await tokens().verify(environment, token, SESSION)).not.toBeNull();
  });

  test('are rotated a day after the next one was published', async () => {
    const kidNow = async (): Promise<string> => decodeProtectedHeader(await tokens().sign(environment, claims(), SESSION)).kid!;
    const first = await kidNow();
    const next = await rotate();
    expect(Date.parse(next.signs_from)).toBe(clock.now() + 24 * HOUR);
    expect((await rotate()).public_key.kid).toBe(next.public_key.kid);
    expect(await kidNow()).toBe(first);
    expect((await tokens().keySet(environment)).map(({ kid }) => kid)).toEqual([first, next.public_key.kid]);
    clock.forward(24 * HOUR);
    expect(await kidNow()).toBe(next.public_key.kid);
    const emergency = await rotate({ isNow: true });
    expect(await kidNow()).toBe(emergency.public_key.kid);
    expect(await tokens().keySet(environment)).toHaveLength(3);
    const stolen = await rotate({ isNow: true, isDropped: true });
    expect((await tokens().keySet(environment)).map(({ kid }) => kid)).toEqual([stolen.public_key.kid]);
  });

  test('name an issuer', async () => {
    expect(await tokens().issuer(environment, 'client_1')).toBe('https://id.acme.test/user_management/client_1');
    await replicas[0]!.repository.transact(
      environmentSettingsDecider,
      systemContext(environment, clock.now()),
      environment,
      changeSettings({ issuer: 'https://own.acme.test' }),
    );
    await until(async () => (await tokens().issuer(environment, 'client_1')) === 'https://own.acme.test');
  });
});
