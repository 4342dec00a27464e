import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileKeyStore } from './file.key-store.ts';
import { openText, sealText, Vault } from './vault.ts';

const masterKey = () => randomBytes(32).toString('base64');
const PURPOSE = 'environment.environment_1';

describe('data keys in files', () => {
  let root: string;
  let directory: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'keys-'));
    directory = join(root, 'keys');
  });
  afterEach(() => rm(root, { recursive: true }));

  const bytesOf = async (store: FileKeyStore) => (await store.obtain(PURPOSE)).export().toString('hex');

  it('stay the same, for whoever asks first or later', async () => {
    const store = await FileKeyStore.open(directory, []);
    expect(await store.find(PURPOSE)).toBeNull();
    const keys = await Promise.all(Array.from({ length: 10 }, () => bytesOf(store)));
    expect(new Set(keys).size).toBe(1);
    expect(await bytesOf(await FileKeyStore.open(directory, []))).toBe(keys[0]);
    expect((await store.obtain('naming')).export().toString('hex')).not.toBe(keys[0]);
  });

  it('are one key, where two processes ask for it first', async () => {
    const stores = await Promise.all([FileKeyStore.open(directory, [masterKey()]), FileKeyStore.open(directory, [])]);
    const [one, other] = [stores[1], await FileKeyStore.open(directory, [])];
    expect(await Promise.all([bytesOf(one), bytesOf(other)])).toEqual([await bytesOf(one), await bytesOf(one)]);
  });

  it('can be read by their owner only, and lie wrapped', async () => {
    const store = await FileKeyStore.open(directory, [masterKey()]);
    const bytes = (await store.obtain(PURPOSE)).export();
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    const files = await readdir(directory);
    expect(files).toHaveLength(1);
    for (const name of files) {
      expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600);
      const content = await readFile(join(directory, name));
      for (const encoding of ['base64', 'hex', 'latin1'] as const) expect(content.toString('latin1')).not.toContain(bytes.toString(encoding));
    }
  });

  it('are wrapped by the first master key and read with all', async () => {
    const [older, newer] = [masterKey(), masterKey()];
    const before = await bytesOf(await FileKeyStore.open(directory, [older]));
    const rotated = await FileKeyStore.open(directory, [newer, older]);
    expect(await bytesOf(rotated)).toBe(before);
    await rotated.obtain('naming');
    const onlyNewer = await FileKeyStore.open(directory, [newer]);
    expect(await onlyNewer.find('naming')).not.toBeNull();
    await expect(onlyNewer.find(PURPOSE)).rejects.toThrow('not among MASTER_KEYS');
  });

  it('are still read once master keys are set, where there were none before', async () => {
    const before = await bytesOf(await FileKeyStore.open(directory, []));
    expect(await bytesOf(await FileKeyStore.open(directory, [masterKey()]))).toBe(before);
  });

  it('are not made under a master key of another length', async () => {
    await expect(FileKeyStore.open(directory, [randomBytes(16).toString('base64')])).rejects.toThrow('not 32 bytes');
  });

  it('do not come back when they are destroyed', async () => {
    const store = await FileKeyStore.open(directory, []);
    const before = await bytesOf(store);
    const files = await readdir(directory);
    await store.destroy(PURPOSE);
    expect(await store.find(PURPOSE)).toBeNull();
    expect(await readdir(directory)).toHaveLength(files.length - 1);
    await store.destroy(PURPOSE);
    expect(await bytesOf(store)).not.toBe(before);
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
