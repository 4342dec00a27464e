import { randomBytes } from 'node:crypto';
import type { Clock } from '#libs/platform/src/clock';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { KeyMissing, type KeyStore } from './key-store.ts';

/** Opens the key store of one place, under these master keys; every call is another process. */
type OpenKeyStore = (masterKeys: readonly string[], clock?: Clock) => Promise<KeyStore>;

export const newMasterKey = (): string => randomBytes(32).toString('base64');

const PURPOSE = 'environment.environment_1';
const OTHER = 'person.user-environment_1-user_1';

export function keyStoreContract(name: string, given: () => Promise<OpenKeyStore>): void {
  describe(`data keys in ${name}`, () => {
    const bytesOf = async (store: KeyStore): Promise<string> => (await store.obtain(PURPOSE)).bytes.toString('hex');
    const master = newMasterKey();
    let open: OpenKeyStore;
    let store: KeyStore;

    beforeEach(async () => {
      open = await given();
      store = await open([master]);
    });

    it('stay the same, for whoever asks first or later', async () => {
      const keys = await Promise.all(Array.from({ length: 10 }, () => bytesOf(store)));
      expect(new Set(keys).size).toBe(1);
      expect(await bytesOf(await open([master]))).toBe(keys[0]);
      expect((await store.obtain('naming')).bytes.toString('hex')).not.toBe(keys[0]);
    });

    it('are one key, where many processes ask for it first', async () => {
      const stores = await Promise.all(Array.from({ length: 8 }, () => open([master])));
      expect(new Set(await Promise.all(stores.map(bytesOf))).size).toBe(1);
    });

    it('are named where they are missing, and found by a process that looked before they were made', async () => {
      const other = await open([master]);
      await expect(other.find(PURPOSE)).rejects.toThrow(KeyMissing);
      await expect(other.find(PURPOSE)).rejects.toThrow(PURPOSE);
      const bytes = await bytesOf(store);
      expect(await other.find(PURPOSE)).toMatchObject({ bytes: Buffer.from(bytes, 'hex') });
    });

    it('are found many at once: those that are there, and those that are known to be gone', async () => {
      const people = Array.from({ length: 1_500 }, (_, index) => `person.user-environment_1-user_${index}` as const);
      const [kept, erased, missing] = [people.slice(0, 20), people.slice(20, 40), people.slice(40)];
      for (const purpose of [...kept, ...erased]) await store.obtain(purpose);
      for (const purpose of erased) await store.destroy(purpose);
      for (const reader of [store, await open([master])]) {
        const found = await reader.findMany(people);
        for (const purpose of kept) expect(found.get(purpose)).toEqual(await store.obtain(purpose));
        for (const purpose of erased) expect(found.get(purpose)).toBe('erased');
        expect(await reader.erasedAmong(people)).toEqual(new Set(erased));
        expect(missing.filter((purpose) => found.has(purpose))).toEqual([]);
      }
    });

    it('are wrapped by the first master key and read with all', async () => {
      const newer = newMasterKey();
      const before = await bytesOf(store);
      const rotated = await open([newer, master]);
      expect(await bytesOf(rotated)).toBe(before);
      await rotated.obtain('naming');
      const onlyNewer = await open([newer]);
      await onlyNewer.find('naming');
      await expect(onlyNewer.find(PURPOSE)).rejects.toThrow('not among MASTER_KEYS');
    });

    it('are not made under a master key of another length', async () => {
      await expect(open([randomBytes(16).toString('base64')])).rejects.toThrow('not 32 bytes');
    });

    it('leave a tombstone when they are destroyed, under which none is ever made', async () => {
      await store.obtain(PURPOSE);
      await store.destroy(PURPOSE);
      for (const reader of [store, await open([master])]) {
        expect(await reader.find(PURPOSE)).toBe('erased');
        await expect(reader.obtain(PURPOSE)).rejects.toThrow(`${PURPOSE} was destroyed`);
        expect(await reader.find(PURPOSE)).toBe('erased');
      }
      await store.destroy(PURPOSE);
      expect(await store.find(PURPOSE)).toBe('erased');
      await store.obtain(OTHER);
    });

    it('leave a tombstone also where there was none, so that an erasure is repeated on keys of an older backup', async () => {
      await store.destroy(OTHER);
      expect(await store.find(OTHER)).toBe('erased');
      await expect((await open([master])).obtain(OTHER)).rejects.toThrow('was destroyed');
    });

    describe('that follow from each other', () => {
      const bytes = (step: number): Buffer => Buffer.alloc(32, step);
      const later = (step: number) => ({ purpose: PURPOSE, bytes: bytes(step), step }) as const;

      it('take the place of earlier ones, and never of later ones', async () => {
        expect((await store.obtain(PURPOSE)).step).toBe(0);
        const other = await open([master]);
        await store.advance(later(3));
        for (const reader of [store, other, await open([master])]) expect(await reader.find(PURPOSE)).toMatchObject({ bytes: bytes(3), step: 3 });
        await other.advance(later(2));
        await other.advance({ ...later(3), bytes: bytes(9) });
        expect(await (await open([master])).find(PURPOSE)).toMatchObject({ bytes: bytes(3), step: 3 });
        await other.advance(later(4), { ...later(1), purpose: OTHER });
        expect(await other.find(PURPOSE)).toMatchObject({ bytes: bytes(4), step: 4 });
        expect(await other.obtain(PURPOSE)).toEqual(await (await open([newMasterKey(), master])).find(PURPOSE));
      });

      it('neither bring back what was destroyed nor make what is missing', async () => {
        await store.destroy(OTHER);
        await store.advance(later(1), { ...later(1), purpose: OTHER });
        await expect(store.find(PURPOSE)).rejects.toThrow(KeyMissing);
        expect(await store.find(OTHER)).toBe('erased');
        await store.obtain(PURPOSE);
        await store.advance(later(1));
        await store.destroy(PURPOSE);
        expect(await (await open([master])).find(PURPOSE)).toBe('erased');
      });

      it('are the latest, where several processes go on at once', async () => {
        await store.obtain(PURPOSE);
        const stores = await Promise.all(Array.from({ length: 4 }, () => open([master])));
        await Promise.all(Array.from({ length: 12 }, (_, index) => stores[index % 4]!.advance(later(1 + ((index * 5) % 12)))));
        expect(await (await open([master])).find(PURPOSE)).toMatchObject({ bytes: bytes(12), step: 12 });
      });
    });

    it('are either made or destroyed, where both happen at once', async () => {
      const [one, other] = [await open([master]), await open([master])];
      const made = await Promise.allSettled(Array.from({ length: 5 }, (_, index) => (index === 2 ? one.destroy(PURPOSE) : other.obtain(PURPOSE))));
      expect(made[2]!.status).toBe('fulfilled');
      expect(await (await open([master])).find(PURPOSE)).toBe('erased');
    });

    it('are forgotten a minute after they were read, also when another process destroys them', async () => {
      const clock = new SettableClock();
      const other = await open([master], clock);
      await other.obtain(PURPOSE);
      clock.forward(59_000);
      await other.find(PURPOSE);
      await store.destroy(PURPOSE);
      clock.forward(1_000);
      expect(await other.find(PURPOSE)).toBe('erased');
    });

    it('come with the place up to which erasures were carried out', async () => {
      expect(await store.erasedUpTo()).toBe('');
      await store.setErasedUpTo('00000000000000000017');
      expect(await (await open([master])).erasedUpTo()).toBe('00000000000000000017');
      await store.setErasedUpTo('00000000000000000003');
      expect(await store.erasedUpTo()).toBe('00000000000000000003');
      expect(await store.erasedRecordAt('00000000000000000003')).toBeNull();
      await store.setErasedUpTo('00000000000000000017', 'seen');
      const again = await open([master]);
      expect([await again.erasedUpTo(), await again.erasedRecordAt('00000000000000000017')]).toEqual(['00000000000000000017', 'seen']);
      expect(await again.erasedRecordAt('00000000000000000018')).toBeNull();
      await store.setErasedUpTo('00000000000000000018');
      expect(await again.erasedRecordAt('00000000000000000018')).toBeNull();
      for (const damaged of ['\x01garbage', '17.5', '17-']) {
        await store.setErasedUpTo(damaged);
        await expect(store.erasedUpTo()).rejects.toThrow(/^What says how far erasures have come .*is damaged/);
      }
    });
  });
}
