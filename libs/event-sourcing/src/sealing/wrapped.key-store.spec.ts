import { setImmediate as endOfTurn } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { newMasterKey } from './key-store.contract.ts';
import type { ErasablePurpose, KeyPurpose } from './key-store.ts';
import { MasterKeys, type WrappedKey } from './master-keys.ts';
import { type SteppedKey, WrappedKeyStore } from './wrapped.key-store.ts';

type Answer = ReadonlyMap<KeyPurpose, WrappedKey | 'erased'>;

const purposeOf = (index: number): ErasablePurpose => `person.user-environment_1-user_${index}`;

/** Where several processes keep their keys: each question is answered when the spec says so, with what was there when it came. */
class HeldKeyStore extends WrappedKeyStore {
  /** Happens while a key is being put. */
  beforePut: () => Promise<void> = async () => {};
  readonly asked: { readonly purposes: readonly KeyPurpose[]; readonly answer: () => void; readonly fail: (error: Error) => void }[] = [];

  constructor(
    private readonly stored: Map<KeyPurpose, WrappedKey | 'erased'>,
    masters: MasterKeys,
  ) {
    super(masters, new SystemClock());
  }

  setErasedUpTo(): Promise<void> {
    return this.loadErasedUpTo();
  }

  protected loadErasedUpTo(): Promise<never> {
    return Promise.reject(new Error('Nobody asks for it.'));
  }

  protected load(purposes: readonly KeyPurpose[]): Promise<Answer> {
    const there = new Map(purposes.flatMap((purpose) => (this.stored.has(purpose) ? [[purpose, this.stored.get(purpose)!] as const] : [])));
    return new Promise((resolve, fail) => this.asked.push({ purposes, answer: () => resolve(there), fail }));
  }

  protected async putFirst(key: WrappedKey & { readonly purpose: KeyPurpose }): Promise<boolean> {
    if (this.stored.has(key.purpose)) return false;
    this.stored.set(key.purpose, key);
    await this.beforePut();
    return true;
  }

  protected async bury(purposes: readonly ErasablePurpose[]): Promise<void> {
    for (const purpose of purposes) this.stored.set(purpose, 'erased');
  }

  protected async replaceEarlier(keys: readonly SteppedKey[]): Promise<void> {
    for (const key of keys) this.stored.set(key.purpose, key);
  }

  protected damaged(what: string): Error {
    return new Error(`${what} is damaged.`);
  }
}

describe('keys that several ask for at once', () => {
  const masters = MasterKeys.of([newMasterKey()]);
  const [one, other, third] = [purposeOf(1), purposeOf(2), purposeOf(3)];
  let stored: Map<KeyPurpose, WrappedKey | 'erased'>;
  let store: HeldKeyStore;

  beforeEach(() => {
    stored = new Map([one, other, third].map((purpose, index) => [purpose, masters.wrap(purpose, Buffer.alloc(32, index))]));
    store = new HeldKeyStore(stored, masters);
  });

  it('are read once for all of them, whatever else each asks for', async () => {
    const finds = [[one, other], [one, other], [other, third], [one]].map((purposes) => store.findMany(purposes));
    expect(store.asked.map(({ purposes }) => purposes)).toEqual([[one, other], [third]]);
    for (const { answer } of store.asked) answer();
    const found = await Promise.all(finds);
    expect(found.map((keys) => [...keys.keys()].sort())).toEqual([[one, other], [one, other], [other, third], [one]]);
    expect(new Set(found.map((keys) => keys.get(one) ?? keys.get(other))).size).toBe(2);
  });

  it('are not missing because they were asked for before they were made', async () => {
    const made = purposeOf(4);
    const early = store.findMany([made]);
    stored.set(made, masters.wrap(made, Buffer.alloc(32)));
    const late = store.findMany([made, one]);
    for (const { answer } of store.asked) answer();
    expect((await early).has(made)).toBe(false);
    await endOfTurn();
    expect(store.asked.map(({ purposes }) => purposes)).toEqual([[made], [one], [made]]);
    store.asked.at(-1)!.answer();
    expect([...(await late).keys()].sort()).toEqual([one, made]);
  });

  it('are known once they are made, and read again where another was faster', async () => {
    const made = store.obtain(purposeOf(5));
    store.asked[0]!.answer();
    const key = await made;
    expect(store.asked).toHaveLength(1);
    expect(masters.unwrap(stored.get(purposeOf(5)) as WrappedKey, () => new Error('damaged'))).toEqual(key.bytes);
    const late = store.obtain(purposeOf(6));
    stored.set(purposeOf(6), masters.wrap(purposeOf(6), Buffer.alloc(32, 7)));
    store.asked[1]!.answer();
    await endOfTurn();
    store.asked[2]!.answer();
    expect((await late).bytes).toEqual(Buffer.alloc(32, 7));
  });

  it('are not made again where they were destroyed meanwhile', async () => {
    const made = store.obtain(purposeOf(5));
    store.asked[0]!.answer();
    store.beforePut = () => store.destroy(purposeOf(5));
    await endOfTurn();
    store.asked[1]!.answer();
    await expect(made).rejects.toThrow('was destroyed');
  });

  it('do not fail with those that somebody else asked for', async () => {
    stored.set(other, { ...masters.wrap(one, Buffer.alloc(32)), purpose: other });
    const [broken, whole] = [store.findMany([one, other]), store.findMany([one])];
    store.asked[0]!.answer();
    await expect(broken).rejects.toThrow('is damaged');
    await endOfTurn();
    store.asked[1]!.answer();
    expect((await whole).has(one)).toBe(true);
  });

  it('are asked for again once nobody has answered', async () => {
    const failed = [store.findMany([one]), store.findMany([one])];
    store.asked[0]!.fail(new Error('Nobody answers.'));
    await expect(failed[0]).rejects.toThrow('Nobody answers.');
    await endOfTurn();
    store.asked[1]!.fail(new Error('Still nobody answers.'));
    await expect(failed[1]).rejects.toThrow('Still nobody answers.');
    const again = store.findMany([one]);
    store.asked[2]!.answer();
    expect((await again).has(one)).toBe(true);
  });

  it('are not taken from what was read before they were destroyed', async () => {
    const before = store.findMany([one]);
    await store.destroy(one);
    const after = store.findMany([one]);
    for (const { answer } of store.asked) answer();
    await before;
    expect((await after).get(one)).toBe('erased');
  });
});
