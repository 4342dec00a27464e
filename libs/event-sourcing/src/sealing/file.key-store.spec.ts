import { createHash } from 'node:crypto';
import { cp, link, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { copyKeyFiles, FileKeyStore } from './file.key-store.ts';
import { keyStoreContract, newMasterKey } from './key-store.contract.ts';
import { openText, sealText, Vault } from './vault.ts';

const PURPOSE = 'environment.environment_1';

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

async function newDirectory(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'keys-'));
  directories.push(root);
  return join(root, 'keys');
}

keyStoreContract('files', async () => {
  const directory = await newDirectory();
  return (masterKeys, clock) => FileKeyStore.open(directory, masterKeys, clock);
});

describe('data keys in files', () => {
  let directory: string;

  beforeEach(async () => {
    directory = await newDirectory();
  });

  const fileOf = (purpose: string): string => join(directory, `${createHash('sha256').update(purpose).digest('hex').slice(0, 40)}.key`);
  const bytesOf = async (store: FileKeyStore) => (await store.obtain(PURPOSE)).bytes.toString('hex');

  it('are one key without a master key, where two processes ask for it first', async () => {
    const stores = await Promise.all([FileKeyStore.open(directory, [newMasterKey()]), FileKeyStore.open(directory, [])]);
    const [one, other] = [stores[1], await FileKeyStore.open(directory, [])];
    expect(await Promise.all([bytesOf(one), bytesOf(other)])).toEqual([await bytesOf(one), await bytesOf(one)]);
  });

  it('can be read by their owner only, and lie wrapped', async () => {
    const store = await FileKeyStore.open(directory, [newMasterKey()]);
    const { bytes } = await store.obtain(PURPOSE);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    const files = await readdir(directory);
    expect(files).toHaveLength(1);
    for (const name of files) {
      expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600);
      const content = await readFile(join(directory, name));
      for (const encoding of ['base64', 'hex', 'latin1'] as const) expect(content.toString('latin1')).not.toContain(bytes.toString(encoding));
    }
  });

  it('are still read once master keys are set, where there were none before', async () => {
    const before = await bytesOf(await FileKeyStore.open(directory, []));
    expect(await bytesOf(await FileKeyStore.open(directory, [newMasterKey()]))).toBe(before);
  });

  it('are copied while others are made and destroyed, and every one that was there before is in the copy', async () => {
    const store = await FileKeyStore.open(directory, []);
    const before = await Promise.all(Array.from({ length: 50 }, async (_, index) => (await store.obtain(`person.before-${index}`)).id));
    let isMaking = true;
    const making = Array.from({ length: 8 }, async (_, maker) => {
      for (let count = 0; isMaking; count++) {
        await store.obtain(`person.${maker}-${count}`);
        if (count % 4 === 0) await store.destroy(`person.${maker}-${count}`);
      }
    });
    const copies = Array.from({ length: 10 }, (_, index) => `${directory}-${index}`);
    try {
      for (const copy of copies) await copyKeyFiles(directory, copy);
    } finally {
      isMaking = false;
      await Promise.all(making);
    }
    for (const copy of copies) {
      expect((await readdir(copy)).filter((name) => !/^(?:[0-9a-f]{40}|master)\.key$/.test(name))).toEqual([]);
      const copied = await FileKeyStore.open(copy, []);
      expect(await Promise.all(before.map(async (_, index) => (await copied.obtain(`person.before-${index}`)).id))).toEqual(before);
    }
  });

  it.each([
    ['is of another purpose', 'naming', async (file: string) => cp(fileOf('passwords'), file)],
    ['is the tombstone of another', PURPOSE, (file: string) => writeFile(file, '{"purpose":"environment.environment_2","erased":true}')],
    ['is a tombstone where there can be none', 'naming', (file: string) => writeFile(file, '{"purpose":"naming","erased":true}')],
    ['holds nothing', PURPOSE, (file: string) => writeFile(file, '')],
    ['holds no key', PURPOSE, (file: string) => writeFile(file, '{}')],
  ] as const)('are damaged where the file %s', async (_, purpose, damage) => {
    const store = await FileKeyStore.open(directory, []);
    for (const each of ['naming', 'passwords', PURPOSE] as const) await store.obtain(each);
    await damage(fileOf(purpose));
    const again = await FileKeyStore.open(directory, []);
    await expect(again.obtain(purpose)).rejects.toThrow(`The data key in ${fileOf(purpose)} is damaged`);
    await expect(again.findMany([purpose])).rejects.toThrow('is damaged');
  });

  it('leave nothing of themselves behind when they are destroyed', async () => {
    const store = await FileKeyStore.open(directory, []);
    await store.obtain(PURPOSE);
    const [name] = (await readdir(directory)).filter((file) => file !== 'master.key');
    const path = join(directory, name!);
    // Another name of the same file: what a plain removal would leave on the disk.
    const bytes = join(dirname(directory), 'bytes');
    await link(path, bytes);
    const { wrapped } = JSON.parse(await readFile(path, 'utf8')) as { wrapped: string };
    await store.destroy(PURPOSE);
    expect((await readdir(directory)).sort()).toEqual([name!, 'master.key'].sort());
    for (const file of [path, bytes]) expect((await readFile(file)).toString('latin1')).not.toContain(wrapped);
  });
});

describe('the vault', () => {
  let root: string;
  let keys: FileKeyStore;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'vault-'));
    keys = await FileKeyStore.open(join(root, 'keys'), []);
  });
  afterEach(() => rm(root, { recursive: true }));

  const place = { stream: 'webhook_endpoint-environment_1-we_1', field: 'secret' };

  it('opens what it sealed, where it was sealed, and nowhere else', async () => {
    const vault = new Vault(keys);
    const sealed = await vault.seal('whsec_ü', place);
    expect(sealed).toMatch(/^enc\.v1\.[\w-]{8}\.[\w-]+$/);
    expect(await vault.open(sealed, place)).toBe('whsec_ü');
    expect(await vault.seal('whsec_ü', place)).not.toBe(sealed);
    for (const elsewhere of [
      { ...place, field: 'other' },
      { ...place, stream: 'webhook_endpoint-environment_1-we_2' },
    ])
      await expect(vault.open(sealed, elsewhere)).rejects.toThrow();
    await vault.seal('', { ...place, stream: 'webhook_endpoint-environment_2-we_1' });
    await expect(vault.open(sealed, { ...place, stream: 'webhook_endpoint-environment_2-we_1' })).rejects.toThrow();
  });

  it('opens nothing that was altered or never sealed', async () => {
    const key = await keys.obtain(PURPOSE);
    const sealed = sealText(key, 'here', 'text');
    const last = sealed.at(-3)!;
    expect(() => openText(key, 'here', sealed.slice(0, -3) + (last === 'A' ? 'B' : 'A') + sealed.slice(-2))).toThrow();
    expect(() => openText(key, 'here', 'text')).toThrow('is not');
    const other = await keys.obtain('naming');
    expect(() => openText(other, 'here', sealed)).toThrow('another key');
    expect(openText(key, 'here', sealed)).toBe('text');
  });
});
