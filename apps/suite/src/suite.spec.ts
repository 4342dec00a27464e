import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PinoLog } from '#libs/platform/src/pino.log';
import { OPERATIONS_PATHS } from '#libs/platform/src/operations/operations-surface';
import { StartRefused } from '#libs/platform/src/start-refused';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { Suite } from './suite.ts';

describe('the suite', () => {
  let suite: GivenSuite;
  beforeAll(async () => {
    suite = await givenSuite();
  });

  it('answers what it was told, also after a restart', async () => {
    const { id } = await suite.post('/organizations', { name: 'Acme' }).expect(201, { name: 'Acme' });
    await suite.get(`/organizations/${id}`).expect(200, { name: 'Acme' });
    await suite.restart();
    await suite.get(`/organizations/${id}`).expect(200, { name: 'Acme' });
    await suite.get('/organizations').expect(200, { data: [{ id }] });
  });

  it('is live and ready, and shows its metrics', async () => {
    expect(await (await fetch(`${suite.url}/health/live`)).json()).toEqual({ status: 'live' });
    expect(await (await fetch(`${suite.url}/health/ready`)).json()).toEqual({ status: 'ready' });
    expect(await (await fetch(`${suite.url}/metrics`)).text()).toContain('gatehouse_');
  });

  it('shows one environment nothing of another', async () => {
    const other = await suite.otherEnvironment();
    const { id } = await other.post('/organizations', { name: 'Theirs' }).expect(201);
    await suite.get(`/organizations/${id}`).expect(404);
    await other.get(`/organizations/${id}`).expect(200);
  });

  it('adds the key that the settings name, once', async () => {
    const given = await givenSuite({ variables: { GATEHOUSE_API_KEY: 'sk_test_of_our_own_0123456789', GATEHOUSE_CLIENT_ID: 'client_ours' } });
    const send = () => fetch(`${given.url}/organizations`, { headers: { Authorization: 'Bearer sk_test_of_our_own_0123456789' } });
    expect((await send()).status).toBe(200);
    await given.restart();
    expect((await send()).status).toBe(200);
    const changes = await given.records('environment_key.created');
    expect(changes).toHaveLength(2);
  });
});

// The second is what a file of variables with Windows line ends says.
describe.each(['production', 'production\r'])('the mode %j', (mode) => {
  it('prints no key, and has health and metrics on a port of their own', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-production-'));
    const variables = {
      GATEHOUSE_MODE: mode,
      HOST: '127.0.0.1',
      PORT: '0',
      OPERATIONS_PORT: '0',
      DATA_DIR: directory,
      DATA_MIN_FREE: '0',
      MASTER_KEYS: randomBytes(32).toString('base64'),
      PUBLIC_URL: 'https://id.acme.test',
    };
    const suite = await Suite.start({ variables, log: new PinoLog({ level: 'silent', readable: false }), onFatal: () => {} });
    expect(suite.firstKey).toBeNull();
    expect((await fetch(`${suite.process.operationsUrl}/health/ready`)).status).toBe(200);
    for (const path of OPERATIONS_PATHS) expect((await fetch(`${suite.url}${path}`)).status).toBe(404);
    await suite.close();
    rmSync(directory, { recursive: true });
  });
});

describe('a start that cannot be', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-start-'));
  afterAll(() => rmSync(directory, { recursive: true }));

  const refusal = async (variables: Readonly<Record<string, string>>): Promise<string> => {
    const started = Suite.start({
      variables: { PORT: '0', DATA_DIR: directory, DATA_MIN_FREE: '0', ...variables },
      log: new PinoLog({ level: 'silent', readable: false }),
      onFatal: () => {},
    });
    const error: unknown = await started.then(
      async (suite) => suite.close(),
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(StartRefused);
    return (error as Error).message;
  };

  it('names the taken port', async () => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
    const { port } = blocker.address() as { port: number };
    expect(await refusal({ PORT: String(port) })).toContain('set PORT to another port');
    blocker.close();
  });

  it('names the directory that another process holds', async () => {
    const suite = await Suite.start({
      variables: { PORT: '0', DATA_DIR: directory, DATA_MIN_FREE: '0' },
      log: new PinoLog({ level: 'silent', readable: false }),
      onFatal: () => {},
    });
    expect(await refusal({ DATA_DIR_WAIT: '100ms' })).toContain('Another process works on');
    await suite.close();
  });

  it('names the file that stands where the directory should be', async () => {
    writeFileSync(join(directory, 'file'), '');
    expect(await refusal({ DATA_DIR: join(directory, 'file') })).toContain('it is a file');
    expect(await refusal({ DATA_DIR: join(directory, 'file', 'below') })).toContain('part of the path is a file');
  });

  it('names data of a later release', async () => {
    const newer = mkdtempSync(join(directory, 'newer-'));
    writeFileSync(join(newer, 'format'), '99\n');
    expect(await refusal({ DATA_DIR: newer })).toContain('start the release that wrote it, or a later one');
  });

  it('names the keys that were lost', async () => {
    const DATA_DIR = join(directory, 'without-keys');
    const suite = await Suite.start({
      variables: { PORT: '0', DATA_DIR, DATA_MIN_FREE: '0' },
      log: new PinoLog({ level: 'silent', readable: false }),
      onFatal: () => {},
    });
    await suite.close();
    rmSync(join(DATA_DIR, 'keys'), { recursive: true });
    expect(await refusal({ DATA_DIR })).toContain('its keys are missing');
  });

  it('names the room that a first start needs', async () => {
    expect(await refusal({ DATA_DIR: join(directory, 'full'), DATA_MIN_FREE: '1000TiB' })).toContain('set DATA_MIN_FREE lower');
  });

  it('names what production needs', async () => {
    for (const mode of ['production', 'production\r\n'])
      for (const name of ['MASTER_KEYS', 'PUBLIC_URL']) expect(await refusal({ GATEHOUSE_MODE: mode })).toContain(`${name} is not set`);
  });
});
