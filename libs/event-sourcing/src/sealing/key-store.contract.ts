import { randomBytes } from 'node:crypto';
import type { KeyStore } from './key-store.ts';

/** Opens the key store of one place, under these master keys; every call is another process. */
type OpenKeyStore = (masterKeys: readonly string[]) => Promise<KeyStore>;

export const newMasterKey = (): string => randomBytes(32).toString('base64');

const PURPOSE = 'environment.environment_1';

export function keyStoreContract(name: string, given: () => Promise<OpenKeyStore>): void {
  describe(`data keys in ${name}`, () => {
    const bytesOf = async (store: KeyStore): Promise<string> => (await store.obtain(PURPOSE)).export().toString('hex');
    const master = newMasterKey();
    let open: OpenKeyStore;
    let store: KeyStore;

    beforeEach(async () => {
      open = await given();
      store = await open([master]);
    });

    it('stay the same, for whoever asks first or later', async () => {
      expect(await store.find(PURPOSE)).toBeNull();
      const keys = await Promise.all(Array.from({ length: 10 }, () => bytesOf(store)));
      expect(new Set(keys).size).toBe(1);
      expect(await bytesOf(await open([master]))).toBe(keys[0]);
      expect((await store.obtain('naming')).export().toString('hex')).not.toBe(keys[0]);
    });

    it('are one key, where many processes ask for it first', async () => {
      const stores = await Promise.all(Array.from({ length: 8 }, () => open([master])));
      expect(new Set(await Promise.all(stores.map(bytesOf))).size).toBe(1);
    });

    it('are found by a process that looked before they were made', async () => {
      const other = await open([master]);
      expect(await other.find(PURPOSE)).toBeNull();
      const bytes = await bytesOf(store);
      expect((await other.find(PURPOSE))?.export().toString('hex')).toBe(bytes);
    });

    it('are wrapped by the first master key and read with all', async () => {
      const newer = newMasterKey();
      const before = await bytesOf(store);
      const rotated = await open([newer, master]);
      expect(await bytesOf(rotated)).toBe(before);
      await rotated.obtain('naming');
      const onlyNewer = await open([newer]);
      expect(await onlyNewer.find('naming')).not.toBeNull();
      await expect(onlyNewer.find(PURPOSE)).rejects.toThrow('not among MASTER_KEYS');
    });

    it('are not made under a master key of another length', async () => {
      await expect(open([randomBytes(16).toString('base64')])).rejects.toThrow('not 32 bytes');
    });

    it('do not come back when they are destroyed', async () => {
      const before = await bytesOf(store);
      await store.destroy(PURPOSE);
      expect(await store.find(PURPOSE)).toBeNull();
      expect(await (await open([master])).find(PURPOSE)).toBeNull();
      await store.destroy(PURPOSE);
      expect(await bytesOf(store)).not.toBe(before);
    });
  });
}
