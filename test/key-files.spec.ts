import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LmdbEnvironment } from '#libs/platform/src/storage/lmdb-environment';
import { byteTextKeys } from '#libs/platform/src/storage/lmdb-keys';
import { gatehouse, SuiteProcess } from '#libs/testing/src/process';

const root = mkdtempSync(join(tmpdir(), 'gatehouse-key-files-'));
afterAll(() => rmSync(root, { recursive: true }));

/** Lays keys out as releases did that kept each in a file. */
async function asFiles(directory: string): Promise<void> {
  const environment = new LmdbEnvironment({ path: directory, onFailure: () => {}, onTakenOver: () => {} });
  for (const { key: purpose, value } of environment.db('entries', byteTextKeys).getRange({ start: ' ' })) {
    // How far erasures have come is no key.
    if (purpose === 'eraser') continue;
    const key = { purpose, master: value.toString('hex', 1, 9), iv: value.toString('base64', 9, 21), wrapped: value.toString('base64', 21) };
    writeFileSync(join(directory, `${createHash('sha256').update(purpose).digest('hex').slice(0, 40)}.key`), JSON.stringify(key), { mode: 0o600 });
  }
  await environment.close();
  for (const file of ['data.mdb', 'lock.mdb']) rmSync(join(directory, file), { force: true });
}

describe('a directory of a release that kept each data key in a file', () => {
  const variables = { DATA_DIR: join(root, 'data'), DATA_MIN_FREE: '0' };
  const keys = join(variables.DATA_DIR, 'keys');
  const ask = async (suite: SuiteProcess, path: string, body?: unknown): Promise<{ readonly id: string; readonly email: string }> => {
    const key = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const answer = await fetch(suite.url + path, body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) });
    return (await answer.json()) as { readonly id: string; readonly email: string };
  };

  it('is verified as it lies, taken over by the first start, backed up and restored', async () => {
    const before = await SuiteProcess.start(variables);
    const { id } = await ask(before, '/user_management/users', { email: 'ada@acme.test', password: 'correct horse battery' });
    await before.stop();
    await asFiles(keys);
    for (const made of ['keys.state', 'views']) rmSync(join(variables.DATA_DIR, made), { recursive: true });
    writeFileSync(join(variables.DATA_DIR, 'format'), '1\n');
    expect(await gatehouse(variables, 'verify')).toMatchObject({ code: 0 });
    expect(readdirSync(keys).filter((name) => name.endsWith('.mdb'))).toEqual([]);

    const damaged = join(
      keys,
      readdirSync(keys).find((name) => /^[0-9a-f]{40}\.key$/.test(name))!,
    );
    const content = readFileSync(damaged);
    writeFileSync(damaged, '');
    await expect(SuiteProcess.start(variables)).rejects.toThrow('is damaged');
    // The release before can go on.
    expect(readFileSync(join(variables.DATA_DIR, 'format'), 'utf8')).toBe('1\n');
    writeFileSync(damaged, content);

    const after = await SuiteProcess.start(variables);
    expect(readFileSync(join(variables.DATA_DIR, 'format'), 'utf8')).toBe('3\n');
    expect(await ask(after, `/user_management/users/${id}`)).toMatchObject({ email: 'ada@acme.test' });
    expect(readdirSync(keys).sort()).toEqual(['data.mdb', 'lock.mdb', 'master.key']);
    const backup = join(root, 'backup');
    expect(await gatehouse(variables, 'backup', backup)).toMatchObject({ code: 0 });
    expect(readdirSync(`${backup}-keys`).sort()).toEqual(['data.mdb', 'master.key']);
    await after.stop();

    const back = { ...variables, DATA_DIR: join(root, 'back') };
    expect(await gatehouse(back, 'restore', backup)).toMatchObject({ code: 0 });
    expect(await gatehouse(back, 'verify')).toMatchObject({ code: 0 });

    const later = '4\n';
    writeFileSync(join(back.DATA_DIR, 'format'), later);
    expect(await gatehouse(back, 'verify')).toMatchObject({ code: 1, stderr: expect.stringContaining('has format 4') as string });
    writeFileSync(join(backup, 'data', 'format'), later);
    const manifest = JSON.parse(readFileSync(join(backup, 'manifest.json'), 'utf8')) as { files: Record<string, unknown> };
    manifest.files['format'] = { bytes: later.length, sha256: createHash('sha256').update(later).digest('hex') };
    writeFileSync(join(backup, 'manifest.json'), JSON.stringify(manifest));
    const nowhere = { ...variables, DATA_DIR: join(root, 'nowhere') };
    expect(await gatehouse(nowhere, 'restore', backup)).toMatchObject({ code: 1, stderr: expect.stringContaining('has format 4') as string });
    expect(existsSync(nowhere.DATA_DIR)).toBe(false);
    // Nine programs, one after the other.
  }, 120_000);
});
