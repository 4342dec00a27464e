import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { adminAddress } from '#apps/suite/src/admin/admin-address';
import { listenForAdmin } from '#apps/suite/src/admin/admin-socket';
import { failedStart, gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { eventually, until } from '#libs/testing/src/until';
import { StorageWriter } from '#libs/testing/src/storage-writer-process';

describe('the command line', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-cli-'));
  afterAll(() => rmSync(root, { recursive: true }));

  const posted = async (url: string, key: string, path: string, body: object) => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.ok).toBe(true);
    return (await response.json()) as { readonly id: string; readonly value: string };
  };
  const created = async (url: string, key: string, name: string): Promise<string> => (await posted(url, key, '/organizations', { name })).id;
  /** When the API key of an organization was used last, as is told. */
  const lastUse = async (url: string, key: string, organization: string): Promise<string | null> => {
    const response = await fetch(`${url}/organizations/${organization}/api_keys`, { headers: { Authorization: `Bearer ${key}` } });
    const { data } = (await response.json()) as { readonly data: readonly { readonly last_used_at: string | null }[] };
    return data[0]!.last_used_at;
  };
  const useKey = async (url: string, key: string, organization: string): Promise<void> => {
    const { value } = await posted(url, key, `/organizations/${organization}/api_keys`, { name: 'Used' });
    await posted(url, key, '/api_keys/validations', { value });
  };
  const status = async (url: string, key: string, path: string): Promise<number> =>
    (await fetch(url + path, { headers: { Authorization: `Bearer ${key}` } })).status;

  describe('beside a running server', () => {
    const variables = { DATA_DIR: join(root, 'served'), DATA_MIN_FREE: '0' };
    let server: SuiteProcess;
    let firstKey: string;
    beforeAll(async () => {
      server = await SuiteProcess.start(variables);
      firstKey = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
    });
    afterAll(() => server.stop());

    it('keeps the first key and the socket from everybody else', () => {
      for (const file of ['development.key', 'admin.sock']) expect(statSync(join(variables.DATA_DIR, file)).mode & 0o777).toBe(0o600);
      expect(statSync(variables.DATA_DIR).mode & 0o777).toBe(0o700);
    });

    it('creates environments and keys that work at once, and stop when they are revoked', async () => {
      expect(await gatehouse(variables, 'environments', 'create', 'staging')).toMatchObject({ code: 0, stdout: expect.stringContaining('staging') });
      const { stdout } = await gatehouse(variables, 'keys', 'create', '--environment', 'staging', '--name', 'first');
      const [id, key] = stdout.trim().split(/\s+/) as [string, string];
      expect(await status(server.url, key, '/organizations')).toBe(200);
      expect((await gatehouse(variables, 'keys', 'list')).stdout).not.toContain(key);
      expect(await gatehouse(variables, 'keys', 'revoke', id)).toMatchObject({ code: 0 });
      // The gateway hears of it from the log.
      await until(async () => (await status(server.url, key, '/organizations')) === 401);
    });

    it('tells the trail of the environment who typed a command', async () => {
      await gatehouse(variables, 'environments', 'create', 'told', '--as', 'Ada Lovelace');
      const [, key] = (await gatehouse(variables, 'keys', 'create', '--environment', 'told')).stdout.trim().split(/\s+/) as [string, string];
      const actions = '&actions=environment.created&actions=environment_key.created';
      const told = await eventually(async () => {
        const response = await fetch(`${server.url}/audit_logs/events?scope=environment&order=asc${actions}`, { headers: { Authorization: `Bearer ${key}` } });
        const { data } = (await response.json()) as { readonly data: readonly { readonly action: string; readonly actor: object; readonly context: object }[] };
        expect(data.map(({ action }) => action)).toEqual(['environment.created', 'environment_key.created']);
        return data;
      });
      const at = { location: hostname(), user_agent: 'gatehouse command line' };
      expect(told[0]).toMatchObject({ actor: { type: 'command_line', name: 'Ada Lovelace' }, context: at });
      expect(told[1]).toMatchObject({ actor: { type: 'command_line', name: userInfo().username }, context: at });
      for (const none of [' ', 'Ada\nGrace', 'Ada\u001b[2J', 'Ada\u2028Grace', 'Ada\u202eGrace', 'a'.repeat(201)])
        expect([none, await gatehouse(variables, 'environments', 'create', 'never', '--as', none)]).toMatchObject([none, { code: 64 }]);
      expect((await gatehouse(variables, 'environments', 'list')).stdout).not.toContain('never');
    });

    it('has another key sign tokens: a day later, or at once', async () => {
      await gatehouse(variables, 'environments', 'create', 'signing');
      const rotated = async (...options: readonly string[]) => {
        const { code, stdout } = await gatehouse(variables, 'token-keys', 'rotate', '--environment', 'signing', ...options);
        expect(code).toBe(0);
        const [, kid, from] = /^(\S+) {2}RS256 {2}signs from (\S+)\n$/.exec(stdout)!;
        return { kid, wait: Date.parse(from!) - Date.now() };
      };
      expect((await rotated()).wait).toBeLessThanOrEqual(0);
      const next = await rotated();
      expect(next.wait).toBeGreaterThan(86_000_000);
      expect((await rotated()).kid).toBe(next.kid);
      const emergency = await rotated('--now');
      expect(emergency.kid).not.toBe(next.kid);
      expect(emergency.wait).toBeLessThanOrEqual(0);
      expect(await gatehouse(variables, 'token-keys', 'rotate')).toMatchObject({ code: 64 });
    });

    it('says in one line what is wrong', async () => {
      const refused = async (...words: readonly string[]) => {
        const { code, stderr } = await gatehouse(variables, ...words);
        expect(stderr.trim().split('\n')).toHaveLength(1);
        return { code, stderr };
      };
      expect(await refused('fly')).toMatchObject({ code: 64, stderr: expect.stringContaining("no command 'fly'") });
      expect(await refused('keys', 'create')).toMatchObject({ code: 64, stderr: expect.stringContaining('needs --environment') });
      expect(await refused('keys', 'create', '--environment', 'nowhere')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("Environment not found: 'nowhere'"),
      });
      expect(await refused('environments', 'create', 'No Such Name')).toMatchObject({ code: 1, stderr: 'gatehouse: name has the wrong form.\n' });
    });

    it('backs up under load: every write answered before is there, elsewhere', async () => {
      let isLoading = true;
      const load = Promise.all(
        Array.from({ length: 4 }, async () => {
          while (isLoading) await created(server.url, firstKey, 'during');
        }),
      );
      const before = await Promise.all(Array.from({ length: 50 }, (_, index) => created(server.url, firstKey, `before ${index}`)));
      await useKey(server.url, firstKey, before[0]!);
      await until(async () => (await lastUse(server.url, firstKey, before[0]!)) !== null);
      const backup = join(root, 'backup');
      expect(await gatehouse(variables, 'backup', backup)).toMatchObject({ code: 0, stderr: '' });
      isLoading = false;
      await load;

      const restored = { DATA_DIR: join(root, 'restored'), DATA_MIN_FREE: '0' };
      const { code, stderr, stdout } = await gatehouse(restored, 'restore', backup);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/holds everything up to position \d+\.\nEvery view was filled in \d+\.\d s\./);
      expect(await gatehouse(restored, 'restore', backup)).toMatchObject({ code: 1, stderr: expect.stringContaining('is not empty') });
      expect(await gatehouse(restored, 'verify')).toMatchObject({ code: 0 });
      const elsewhere = await SuiteProcess.start(restored);
      for (const id of before) expect(await status(elsewhere.url, firstKey, `/organizations/${id}`)).toBe(200);
      expect(await lastUse(elsewhere.url, firstKey, before[0]!)).toBe(await lastUse(server.url, firstKey, before[0]!));
      await elsewhere.stop();
      expect(await gatehouse(restored, 'rebuild', '--check')).toMatchObject({ code: 0, stderr: '' });
    });

    it('stops when it is told to, and says nothing of it', async () => {
      const other = await SuiteProcess.start({ DATA_DIR: join(root, 'stopped'), DATA_MIN_FREE: '0' });
      expect(await other.stop()).toMatchObject({ code: 0, signal: null, stderr: '' });
    });
  });

  it('repairs what was read of a log that was put back to an earlier state', async () => {
    const variables = { DATA_DIR: join(root, 'put-back'), DATA_MIN_FREE: '0' };
    const log = join(variables.DATA_DIR, 'log');
    const first = await SuiteProcess.start(variables);
    const key = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
    const kept = await created(first.url, key, 'kept');
    await useKey(first.url, key, kept);
    // What it knows of uses it stores.
    await first.stop();
    cpSync(log, `${log}.copy`, { recursive: true });
    const second = await SuiteProcess.start(variables);
    const lost = await created(second.url, key, 'lost');
    await second.stop();
    rmSync(log, { recursive: true });
    renameSync(`${log}.copy`, log);

    const third = await SuiteProcess.start(variables);
    expect(await status(third.url, key, `/organizations/${kept}`)).toBe(503);
    expect((await gatehouse(variables, 'views', 'list')).stdout).toMatch(/organizations .*the log does not have it/);
    expect(await gatehouse(variables, 'rebuild')).toMatchObject({ code: 0, stderr: '' });
    expect([await status(third.url, key, `/organizations/${kept}`), await status(third.url, key, `/organizations/${lost}`)]).toEqual([200, 404]);
    // No fact, so nothing that a rebuild would find again.
    expect(await lastUse(third.url, key, kept)).not.toBeNull();
    await created(third.url, key, 'after');
    expect(await gatehouse(variables, 'rebuild', '--check')).toMatchObject({ code: 0, stderr: '' });
    await third.stop();
  });

  describe('without a server', () => {
    const variables = { DATA_DIR: join(root, 'alone'), DATA_MIN_FREE: '0' };

    it('opens the data itself, under the same lock', async () => {
      expect(await gatehouse(variables, 'environments', 'create', 'production')).toMatchObject({ code: 0 });
      expect((await gatehouse(variables, 'environments', 'list')).stdout).toContain('production');
    });

    it('waits for whoever has the data, and asks the server that comes to listen', async () => {
      const holder = await StorageWriter.start(variables.DATA_DIR);
      const asked = gatehouse(variables, 'environments', 'list');
      const refused = await gatehouse({ ...variables, DATA_DIR_WAIT: '0s' }, 'environments', 'list');
      expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^gatehouse: Another process works on .*\n$/) });
      const server = await listenForAdmin(adminAddress(variables.DATA_DIR), async (_, tell) => tell('from the server'));
      expect(await asked).toMatchObject({ code: 0, stdout: 'from the server\n' });
      await server.close();
      const waiting = gatehouse(variables, 'environments', 'list');
      await holder.kill();
      expect(await waiting).toMatchObject({ code: 0, stdout: expect.stringContaining('production') });
    });

    it('shows how it is used', async () => {
      const { code, stdout } = await gatehouse(variables, 'help');
      expect(code).toBe(0);
      for (const words of ['environments create NAME', 'keys rotate ID', 'backup PATH', 'verify']) expect(stdout).toContain(words);
    });

    it('skips nothing in a log to which nobody else writes, and says what to do instead', async () => {
      const { code, stdout, stderr } = await gatehouse(variables, 'log', 'skip', 'organization-environment_1-2', '3', '--reason', 'spec');
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^gatehouse: Nothing is skipped in a log in DATA_DIR: .*'verify'.*\n$/);
    });

    it('finds the damage in a log, and the server does not start on it', async () => {
      const file = join(variables.DATA_DIR, 'log', 'data.mdb');
      const bytes = readFileSync(file);
      // The text of a record, so that only its checksum can tell.
      bytes.writeUInt8(0x58, bytes.lastIndexOf('environment.created') + 3);
      writeFileSync(file, bytes);
      expect(await gatehouse(variables, 'verify')).toMatchObject({ code: 2, stderr: expect.stringMatching(/record at position \d+ .*checksum/) });
      const { code, stderr } = await failedStart(variables);
      expect(code).not.toBe(0);
      expect(stderr.trim().split('\n')).toHaveLength(1);
    });
  });
});
