import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { SERVICES } from '#libs/contracts/src/operation';
import { milliseconds } from '#libs/platform/src/config/kinds';
import { readSettings, settingsOf } from '#libs/platform/src/config/setting';
import { AuthorizationSettings, BlobSettings, EngineSettings, PlatformSettings, SETTINGS_CLASSES, TransportSettings } from '#libs/platform/src/config/settings';
import { requireSettings } from '#libs/runtime/src/required-settings';
import { composeText, interpolatedCompose, mongodbUsers, type ComposeService } from '#libs/testing/src/deployment/compose';
import { imageOfDockerfile, nodeFlags } from '#libs/testing/src/deployment/image';
import { eventstore } from '#libs/testing/src/engines/eventstore';
import { kafka } from '#libs/testing/src/engines/kafka';
import { mongodb } from '#libs/testing/src/engines/mongodb';
import { secretsUsed, settingsUsed } from './deployment/secrets-used.ts';

const text = composeText();
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-compose-'));
const makeEnv = (): ReturnType<typeof spawnSync> => spawnSync(process.execPath, [join(folder, 'docker/make-env.mjs')], { encoding: 'utf8' });

cpSync('docker', join(folder, 'docker'), { recursive: true });
const first = makeEnv();
const secrets = parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What is no secret of these: where the API is. */
const OPEN = ['PUBLISH', 'PUBLIC_URL'];

const { services, volumes } = interpolatedCompose(secrets);
const SECRETS = new Set(SETTINGS_CLASSES.flatMap((type) => settingsOf(type).flatMap(({ name, secret }) => (secret ? [name] : []))));
/** As the image is started: its entry point takes the app as first argument. */
const namesApp = ({ entrypoint, command = [] }: ComposeService): readonly string[] => (entrypoint === undefined ? command : entrypoint.slice(2));
const bytesOf = (size: string): number => Number.parseInt(size) * (size.endsWith('g') ? 2 ** 30 : 2 ** 20);

const apps = Object.entries(services).filter(([, { image }]) => image === 'gatehouse');
const engines = Object.entries(services).filter(([, { image }]) => image !== 'gatehouse');
const { NODE_ENV: _mode, NODE_OPTIONS: _options, ...ofImage } = imageOfDockerfile().variables;
const toldTo = ({ environment }: ComposeService): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries({ ...ofImage, ...environment }).map(([name, value]) => [name, String(value)]));

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
    for (const [name, value] of Object.entries(secrets)) if (!OPEN.includes(name)) expect(others[name]).not.toBe(value);
  });

  it('are completed where a later release asks for more, and nothing that is there changes', () => {
    const file = join(folder, '.env');
    const whole = readFileSync(file, 'utf8');
    const without = (...names: readonly string[]): string => whole.replaceAll(new RegExp(`^(${names.join('|')})=.*\\n`, 'gm'), '');
    writeFileSync(file, without('MONGODB_GATEWAY_PASSWORD'));
    expect(makeEnv()).toMatchObject({ status: 0, stdout: expect.stringContaining(': MONGODB_GATEWAY_PASSWORD.') });
    const completed = parseEnv(readFileSync(file, 'utf8'));
    expect(completed).toEqual({ ...parseEnv(whole), MONGODB_GATEWAY_PASSWORD: expect.stringMatching(/^[\w-]{43}$/) });
    // A new one would open nothing that is stored.
    writeFileSync(file, without('MASTER_KEYS'));
    expect(makeEnv().status).toBe(1);
    expect(readFileSync(file, 'utf8')).toBe(without('MASTER_KEYS'));
  });

  it.each(Object.keys(secrets).filter((name) => ![...OPEN, 'GATEHOUSE_API_KEY'].includes(name)))('do without no %s, and say so', (name) => {
    expect(() => interpolatedCompose({ ...secrets, [name]: undefined })).toThrow(`${name} run node docker/make-env.mjs first`);
  });

  it('are all used, and stand nowhere else', () => {
    for (const [name, value] of Object.entries(secrets)) {
      expect(text).toContain(`\${${name}:`);
      if (!OPEN.includes(name)) expect(text).not.toContain(value);
    }
  });
});

describe('the compose file', () => {
  it.each(apps)('tells %s what it needs to start, and nothing that no setting is', async (name, service) => {
    const variables = toldTo(service);
    const known = new Set(SETTINGS_CLASSES.flatMap((type) => settingsOf(type).map((field) => field.name)));
    expect(Object.keys(variables).filter((each) => !known.has(each))).toEqual([]);
    await requireSettings(settingsUsed(namesApp(service)), variables);
    for (const type of SETTINGS_CLASSES) readSettings<object>(type, variables);
    const { EVENTSTORE_URL, MONGODB_URL, KAFKA_BROKERS } = readSettings(EngineSettings, variables);
    expect([EVENTSTORE_URL, MONGODB_URL].filter((each) => each === null)).toHaveLength(name === 'suite' ? 2 : 0);
    const { used, required } = secretsUsed(namesApp(service));
    expect(KAFKA_BROKERS !== null).toBe(name !== 'suite' && used.includes('KAFKA_PASSWORD'));
    const told = Object.keys(variables).filter((each) => SECRETS.has(each));
    expect(used).toEqual(expect.arrayContaining(told));
    expect(told).toEqual(expect.arrayContaining(name === 'suite' ? ['MASTER_KEYS'] : required));
    if (!used.includes('SERVICE_KEY')) return;
    const { SERVICE_PORT, ...addresses } = readSettings(TransportSettings, variables);
    for (const [setting, value] of Object.entries(addresses))
      if (setting.endsWith('_ADDRESS')) expect(value).toEqual([`${setting.replace('_ADDRESS', '').toLowerCase().replaceAll('_', '-')}:${SERVICE_PORT}`]);
  });

  it('gives each engine and each process no more memory than it is meant to have, and authorization room for its index', () => {
    for (const [name, { mem_limit }] of Object.entries(services))
      expect({ name, mem_limit }).toEqual({ name, mem_limit: expect.stringMatching(/^(512m|[12]g)$/) });
    for (const name of ['authorization', 'suite']) {
      const { ACCESS_INDEX_MEMORY } = readSettings(AuthorizationSettings, toldTo(services[name]!));
      expect(bytesOf(services[name]!.mem_limit!)).toBeGreaterThanOrEqual(1.5 * ACCESS_INDEX_MEMORY);
    }
  });

  it('tells each process a name at MongoDB that may do what it does, and where that is known', () => {
    const { users, roles } = mongodbUsers(toldTo(services['mongodb']!));
    const nameAt = (service: string): string => {
      const { username, password, searchParams, pathname } = new URL(readSettings(EngineSettings, toldTo(services[service]!)).MONGODB_URL!);
      // The database is called after the installation.
      expect(pathname).toBe('/');
      expect(searchParams.get('authSource')).toBe('gatehouse');
      expect(users[username]?.pwd).toBe(password);
      return username;
    };
    expect(users[nameAt('gateway')]!.roles).toEqual(['gateway']);
    for (const service of ['identity', 'authorization', 'directory-sync', 'audit-logs', 'notifications', 'gatehouse'])
      expect(users[nameAt(service)]!.roles).toEqual(['readWrite']);
    expect(roles['gateway']!.roles).toEqual([]);
    // What its adapters of short-lived entries and of keys keep things in, what its start notes, and when something was last used; and nothing else.
    const adapters = ['mongodb.short-lived', 'mongodb.key-store', 'distributed'];
    const files = ['libs/read-models/src', 'libs/event-sourcing/src/sealing', 'libs/runtime/src'].map((folder, at) => `${folder}/${adapters[at]}.ts`);
    const kept = files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\bcollection(?:\(|: )'(\w+)'/g)].map(([, name]) => name!));
    expect(new Set(roles['gateway']!.privileges.map(({ resource }) => resource.collection))).toEqual(new Set([...kept, 'rows.stamps']));
    const privileges = roles['gateway']!.privileges.map(({ resource, actions }) => [
      resource.db,
      resource.collection,
      actions.filter((action) => action !== 'createIndex'),
    ]);
    expect(privileges).toEqual([
      ...['short_lived', 'counters', 'leases', 'rows.stamps'].map((collection) => ['gatehouse', collection, ['find', 'insert', 'update', 'remove']]),
      ...['keys', 'installation'].map((collection) => ['gatehouse', collection, ['find', 'insert']]),
    ]);
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
      ['s3', expect.stringMatching(/^versity\/versitygw:v\d+\.\d+\.\d+$/)],
    ]);
  });

  it.each(['gateway', 'directory-sync', 'audit-logs'])('tells %s the bucket that the store of files makes at its start, and the key to it', (name) => {
    const { S3_BUCKET, S3_ENDPOINT, S3_REGION, ...key } = readSettings(BlobSettings, toldTo(services[name]!));
    const { entrypoint, volumes: mounted, ...store } = services['s3']!;
    const { ROOT_ACCESS_KEY, ROOT_SECRET_KEY, VGW_REGION } = toldTo({ ...store });
    expect(S3_ENDPOINT).toBe('http://s3:7070');
    expect(entrypoint!.at(-1)).toContain(`mkdir -p ${mounted![0]!.split(':')[1]}/${S3_BUCKET} `);
    expect([key.S3_ACCESS_KEY_ID, key.S3_SECRET_ACCESS_KEY, S3_REGION]).toEqual([ROOT_ACCESS_KEY, ROOT_SECRET_KEY, VGW_REGION]);
    expect(key.S3_SECRET_ACCESS_KEY).toBe(secrets['S3_SECRET_ACCESS_KEY']);
    // Whoever downloads is on this machine.
    expect(key.S3_PUBLIC_ENDPOINT).toBe('http://localhost:7070');
  });

  it('lets .env name a bucket elsewhere, also that of AWS', () => {
    const elsewhere = { S3_BUCKET: 'ours', S3_REGION: 'eu-central-1', S3_ACCESS_KEY_ID: 'AKIA', S3_SECRET_ACCESS_KEY: 'x'.repeat(40) };
    const files = interpolatedCompose({ ...secrets, ...elsewhere, S3_ENDPOINT: '', S3_PUBLIC_ENDPOINT: '' }).services['audit-logs']!;
    expect(readSettings(BlobSettings, toldTo(files))).toMatchObject({ ...elsewhere, S3_ENDPOINT: null, S3_PUBLIC_ENDPOINT: null });
  });

  it('publishes the port of the API, that of SCIM, and where exports are downloaded', () => {
    const published = Object.entries(services).filter(([, { ports = [] }]) => ports.length > 0);
    expect(published.map(([name, { ports, profiles }]) => [name, ports, profiles])).toEqual([
      ['gateway', ['127.0.0.1:3000:3000'], undefined],
      ['directory-sync', ['127.0.0.1:3001:3001'], undefined],
      ['suite', ['127.0.0.1:3000:3000'], ['suite']],
      ['s3', ['127.0.0.1:7070:7070'], undefined],
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
      const told = toldTo(services[name]!);
      const expected = engines.map(([engine]) => engine).filter((engine) => Object.keys(told).some((setting) => setting.startsWith(engine.toUpperCase())));
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

  it('gives young objects as much room as `npm start` does', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly scripts: Readonly<Record<string, string>> };
    expect(scripts['start']).toBe(`node ${nodeFlags().join(' ')} run.mjs start`);
    const { status } = spawnSync(process.execPath, ['-e', ''], { env: { NODE_OPTIONS: nodeFlags().join(' ') } });
    expect(status).toBe(0);
  });

  // From here on the build has to be there.
  it('refuses an app that it does not know, and names those that it does', () => {
    const { status, stderr } = spawnSync(process.execPath, ['docker/start.mjs', 'nothing'], { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({
      status: 64,
      stderr: `gatehouse: there is no app "nothing". Apps: ${['gateway', 'suite', ...SERVICES].sort().join(', ')}, gatehouse.\n`,
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
