import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { parse } from 'yaml';
import { milliseconds } from '#libs/platform/src/config/kinds';
import { readSettings, settingsOf } from '#libs/platform/src/config/setting';
import { EngineSettings, PlatformSettings, SETTINGS_CLASSES, TransportSettings } from '#libs/platform/src/config/settings';
import { eventstore } from '#libs/testing/src/engines/eventstore';
import { kafka } from '#libs/testing/src/engines/kafka';
import { mongodb } from '#libs/testing/src/engines/mongodb';

interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
}

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly profiles?: readonly string[];
  readonly environment: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly stop_grace_period: string;
  readonly healthcheck?: object;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

const text = readFileSync('docker-compose.yml', 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-compose-'));
const makeEnv = (): ReturnType<typeof spawnSync> => spawnSync(process.execPath, [join(folder, 'docker/make-env.mjs')], { encoding: 'utf8' });

cpSync('docker', join(folder, 'docker'), { recursive: true });
const first = makeEnv();
const secrets = parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
afterAll(() => rmSync(folder, { recursive: true }));

/** As Compose puts a file together, of what ours uses. @throws Error with the words of a `:?` */
function interpolated(variables: Readonly<Record<string, string | undefined>>): ComposeFile {
  const whole = text.replaceAll(/\$(?:\$|\{(\w+)(?::([?-])([^}]*))?\})/g, (match, name: string | undefined, kind: string | undefined, word: string) => {
    if (name === undefined) return '$';
    const value = variables[name];
    if (value !== undefined && value !== '') return value;
    if (kind === '-') return word;
    throw new Error(`${name} ${word} (${match})`);
  });
  return parse(whole, { merge: true }) as ComposeFile;
}

const { services, volumes } = interpolated(secrets);
const apps = Object.entries(services).filter(([, { image }]) => image === 'gatehouse');
const engines = Object.entries(services).filter(([, { image }]) => image !== 'gatehouse');
const toldTo = ({ environment }: Service): Readonly<Record<string, string>> =>
  // The image sets these two.
  Object.fromEntries(Object.entries({ GATEHOUSE_MODE: 'production', DATA_DIR: '/data', ...environment }).map(([name, value]) => [name, String(value)]));

describe('the secrets of Compose', () => {
  it('are written once, for the owner alone, and differ each time', () => {
    expect(first.status).toBe(0);
    expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600);
    const again = makeEnv();
    expect({ status: again.status, stderr: again.stderr }).toEqual({ status: 1, stderr: expect.stringContaining('stays as it is') });
    expect(parseEnv(readFileSync(join(folder, '.env'), 'utf8'))).toEqual(secrets);
    rmSync(join(folder, '.env'));
    expect(makeEnv().status).toBe(0);
    const others = parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
    for (const [name, value] of Object.entries(secrets)) if (name !== 'PUBLISH') expect(others[name]).not.toBe(value);
  });

  it.each(Object.keys(secrets).filter((name) => !['PUBLISH', 'GATEHOUSE_API_KEY'].includes(name)))('do without no %s, and say so', (name) => {
    expect(() => interpolated({ ...secrets, [name]: undefined })).toThrow(`${name} run node docker/make-env.mjs first`);
  });

  it('are all used, and stand nowhere else', () => {
    for (const [name, value] of Object.entries(secrets)) {
      expect(text).toContain(`\${${name}:`);
      if (name !== 'PUBLISH') expect(text).not.toContain(value);
    }
  });
});

describe('the compose file', () => {
  it.each(apps)('tells %s what it needs to start, and nothing that no setting is', (name, service) => {
    const variables = toldTo(service);
    const known = new Set(SETTINGS_CLASSES.flatMap((type) => settingsOf(type).map((field) => field.name)));
    expect(Object.keys(variables).filter((each) => !known.has(each))).toEqual([]);
    for (const type of SETTINGS_CLASSES) readSettings<object>(type, variables);
    const { EVENTSTORE_URL, MONGODB_URL, KAFKA_BROKERS } = readSettings(EngineSettings, variables);
    expect([EVENTSTORE_URL, MONGODB_URL, KAFKA_BROKERS].filter((each) => each === null)).toHaveLength(name === 'suite' ? 3 : 0);
    const { SERVICE_KEY, SERVICE_PORT, ...addresses } = readSettings(TransportSettings, variables);
    expect(SERVICE_KEY).not.toBeNull();
    if (name === 'suite') return;
    for (const [setting, value] of Object.entries(addresses))
      if (setting.endsWith('_ADDRESS')) expect(value).toEqual([`${setting.replace('_ADDRESS', '').toLowerCase().replaceAll('_', '-')}:${SERVICE_PORT}`]);
  });

  it('names engines by where they listen', () => {
    const { EVENTSTORE_URL, MONGODB_URL, KAFKA_BROKERS } = readSettings(EngineSettings, toldTo(services['identity']!));
    expect(new URL(EVENTSTORE_URL!.replace('esdb:', 'http:')).hostname).toBe('eventstore');
    expect(new URL(MONGODB_URL!).hostname).toBe('mongodb');
    expect(KAFKA_BROKERS).toEqual(['kafka:9092']);
    expect(engines.map(([name, { image }]) => [name, image])).toEqual([
      ['eventstore', eventstore.image],
      ['mongodb', mongodb.image],
      ['kafka', kafka.image],
    ]);
  });

  it('publishes one port', () => {
    const published = Object.entries(services).filter(([, { ports = [] }]) => ports.length > 0);
    expect(published.map(([name, { ports, profiles }]) => [name, ports, profiles])).toEqual([
      ['gateway', ['127.0.0.1:3000:3000'], undefined],
      ['suite', ['127.0.0.1:3000:3000'], ['suite']],
    ]);
  });

  it('starts what is needed first, and waits until it is healthy', () => {
    for (const [name, { depends_on = {}, profiles }] of Object.entries(services)) {
      for (const [needed, { condition }] of Object.entries(depends_on)) {
        expect(condition).toBe('service_healthy');
        // The image of ours has a health check of its own.
        expect(services[needed]!.image === 'gatehouse' || services[needed]!.healthcheck !== undefined).toBe(true);
        expect(services[needed]!.profiles).toBeUndefined();
      }
      const expected = name === 'suite' ? [] : engines.map(([engine]) => engine);
      if (services[name]!.image === 'gatehouse') expect(Object.keys(depends_on)).toEqual(expect.arrayContaining(expected));
      expect(profiles ?? []).toEqual(name === 'suite' ? ['suite'] : name === 'gatehouse' ? ['tools'] : []);
    }
  });

  it('keeps data in volumes, and gives our processes nothing else to write to', () => {
    for (const [, { volumes: mounted = [] }] of engines) expect(Object.keys(volumes)).toContain(mounted[0]!.split(':')[0]);
    for (const [, { read_only, cap_drop, security_opt, volumes: mounted = [] }] of apps) {
      expect({ read_only, cap_drop, security_opt }).toEqual({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
      for (const volume of mounted) expect(volume).toBe('suite:/data');
    }
    for (const path of text.matchAll(/- (\.\/[^:]+):/g)) expect(existsSync(path[1]!)).toBe(true);
  });

  it('gives each process the time that it may take to stop', () => {
    for (const [, service] of apps)
      expect(milliseconds(service.stop_grace_period)).toBeGreaterThan(2 * readSettings(PlatformSettings, toldTo(service)).SHUTDOWN_TIMEOUT);
  });
});

describe('the image', () => {
  const dockerfile = readFileSync('Dockerfile', 'utf8');

  it('is made of nothing that the context leaves out', () => {
    const context = readFileSync('.dockerignore', 'utf8').split('\n');
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths]) => paths!.split(' '));
    for (const path of copied) {
      expect(existsSync(path)).toBe(true);
      expect(context).toContain(`!${path.split('/')[0]}`);
    }
  });

  it('is no root, and hears signals itself', () => {
    expect(/^USER (\d+):(\d+)$/m.exec(dockerfile)?.[1]).toMatch(/^[1-9]/);
    expect(dockerfile).toMatch(/^ENTRYPOINT \["node", /m);
    expect(dockerfile).not.toMatch(/^(ENTRYPOINT|CMD) (?!\[)/m);
  });

  // From here on the build has to be there.
  it('refuses an app that it does not know, and names those that it does', () => {
    const { status, stderr } = spawnSync(process.execPath, ['docker/start.mjs', 'nothing'], { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({
      status: 64,
      stderr: 'gatehouse: there is no app "nothing". Apps: authorization, gateway, identity, notifications, suite, gatehouse.\n',
    });
  });

  it('passes words on to the command line', () => {
    expect(execFileSync(process.execPath, ['docker/start.mjs', 'gatehouse', 'help'], { encoding: 'utf8' })).toContain('views fill');
  });

  it('is healthy when the app is ready, and not before', () => {
    const { status, stderr } = spawnSync(process.execPath, ['docker/health.mjs'], { encoding: 'utf8', env: { OPERATIONS_PORT: '1' } });
    expect({ status, stderr }).toEqual({ status: 1, stderr: 'fetch failed\n' });
  });
});
