import { createHash } from 'node:crypto';
import { cp, link, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ErasableEnvironment } from '#libs/platform/src/storage/erasable-environment';
import { until } from '#libs/testing/src/until';
import { KeyMissing, type KeyPurpose } from './key-store.ts';
import { keyStoreContract, newMasterKey } from './key-store.contract.ts';
import { copyKeys, LmdbKeyStore } from './lmdb.key-store.ts';
import { KEY_BYTES, MasterKeys } from './master-keys.ts';
import { openText, sealText, Vault } from './vault.ts';

const PURPOSE = 'environment.environment_1';

const directories: string[] = [];
const opened: ErasableEnvironment[] = [];
afterEach(async () => {
  for (const environment of opened.splice(0)) await environment.close();
});
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

async function newDirectory(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'keys-'));
  directories.push(root);
  return join(root, 'keys');
}

async function openEnvironment(path: string): Promise<ErasableEnvironment> {
  const fail = (reason?: string): never => {
    throw new Error(reason ?? 'Another process has opened it.');
  };
  const environment = await ErasableEnvironment.open({ path, onFailure: fail, onTakenOver: fail });
  opened.push(environment);
  return environment;
}

async function closed(environment: ErasableEnvironment): Promise<void> {
  opened.splice(opened.indexOf(environment), 1);
  await environment.close();
}

keyStoreContract('LMDB', async () => {
  const environment = await openEnvironment(await newDirectory());
  return (masterKeys, clock) => LmdbKeyStore.open(environment, masterKeys, clock);
});

describe('data keys in LMDB', () => {
  let directory: string;

  beforeEach(async () => {
    directory = await newDirectory();
  });

  const bytesOf = async (store: LmdbKeyStore, purpose: KeyPurpose = PURPOSE) => (await store.obtain(purpose)).bytes.toString('hex');
  const person = (name: number | string): `person.${string}` => `person.user-environment_1-user_${name}`;
  const wrapping = newMasterKey();
  const masters = MasterKeys.of([wrapping]);
  /** How the bytes of this key lie in a file. */
  const wrappedIn = async (environment: ErasableEnvironment, purpose: string): Promise<string> =>
    (await environment.getMany([purpose]))[0]!.subarray(-KEY_BYTES).toString('latin1');
  const contentOf = async (path: string): Promise<string> => (await readFile(path)).toString('latin1');
  const filesBelow = async (path: string): Promise<readonly string[]> =>
    (await readdir(path, { recursive: true, withFileTypes: true })).filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
  const contentBelow = async (path: string): Promise<string> => (await Promise.all((await filesBelow(path)).map(contentOf))).join();

  it('can be read by their owner only, and lie wrapped', async () => {
    const store = await LmdbKeyStore.open(await openEnvironment(directory), []);
    const { bytes } = await store.obtain(PURPOSE);
    await store.destroy(person('gone'));
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect((await readdir(directory)).sort()).toEqual(['data.mdb', 'lock.mdb', 'master.key']);
    for (const path of await filesBelow(directory)) {
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      for (const encoding of ['base64', 'hex', 'latin1'] as const) expect(await contentOf(path)).not.toContain(bytes.toString(encoding));
    }
  });

  it('are found by the next process, and are still read once master keys are set', async () => {
    const first = await openEnvironment(directory);
    const before = await bytesOf(await LmdbKeyStore.open(first, []));
    await closed(first);
    expect(await bytesOf(await LmdbKeyStore.open(await openEnvironment(directory), [newMasterKey()]))).toBe(before);
  });

  it('are left alone by a process that lost them to another', async () => {
    const told: string[] = [];
    const lost = await ErasableEnvironment.open({ path: directory, onFailure: (reason) => told.push(reason), onTakenOver: () => told.push('taken over') });
    const store = await LmdbKeyStore.open(lost, []);
    await store.obtain('naming');
    const other = await LmdbKeyStore.open(await openEnvironment(directory), []);
    await expect(store.obtain(PURPOSE)).rejects.toThrow('taken over');
    await expect(store.destroy(person(1))).rejects.toThrow('taken over');
    expect(told).toEqual(['taken over']);
    await other.destroy(person(2));
    expect(await other.find(person(2))).toBe('erased');
    await expect(other.find(person(1))).rejects.toThrow(KeyMissing);
  });

  it('leave nothing of themselves in any file when they are destroyed or replaced, nor in the place that a file had on the disk', async () => {
    const environment = await openEnvironment(directory);
    const store = await LmdbKeyStore.open(environment, []);
    // Pages are split, copied and used again.
    for (let from = 0; from < 600; from += 100) await Promise.all(Array.from({ length: 100 }, (_, index) => store.obtain(person(from + index))));
    const gone = [7, 8, 300, 599].map(person);
    const kept = person(301);
    const replaced = person(302);
    const texts = await Promise.all([...gone, replaced].map((purpose) => wrappedIn(environment, purpose)));
    const keptText = await wrappedIn(environment, kept);
    const key = await bytesOf(store, kept);
    // Another name of the same file: what a plain removal would leave on the disk.
    const former = join(directory, '..', 'former');
    await link(join(directory, 'data.mdb'), former);
    for (const text of texts) expect(await contentOf(former)).toContain(text);
    await Promise.all([store.destroy(...gone.slice(0, 3)), store.destroy(gone[3]!), store.obtain(person('new'))]);
    await store.advance({ purpose: replaced, bytes: Buffer.alloc(32), step: 1 });
    const left = (await contentBelow(directory)) + (await contentOf(former));
    for (const text of texts) expect(left).not.toContain(text);
    expect(left).toContain(keptText);
    await closed(environment);
    const again = await LmdbKeyStore.open(await openEnvironment(directory), []);
    expect(await bytesOf(again, kept)).toBe(key);
    for (const purpose of gone) expect(await again.find(purpose)).toBe('erased');
    await again.find(person('new'));
  });

  it('are made and found while others are destroyed', async () => {
    const environment = await openEnvironment(directory);
    const store = await LmdbKeyStore.open(environment, []);
    const made = new Map<string, string>();
    let isMaking = true;
    const making = Array.from({ length: 8 }, async (_, maker) => {
      for (let count = 0; isMaking; count++) made.set(`${maker}-${count}`, await bytesOf(store, person(`${maker}-${count}`)));
    });
    const reading = (async () => {
      for (; isMaking; await nextTurn()) for (const name of [...made.keys()].slice(0, 2)) await (await LmdbKeyStore.open(environment, [])).find(person(name));
    })();
    for (let count = 0; count < 20; count++) {
      await store.obtain(person(`gone-${count}`));
      await store.destroy(person(`gone-${count}`));
    }
    isMaking = false;
    await Promise.all([...making, reading]);
    await closed(environment);
    const again = await LmdbKeyStore.open(await openEnvironment(directory), []);
    for (const [name, bytes] of made) expect(await bytesOf(again, person(name))).toBe(bytes);
  });

  it('are destroyed for good also by a process that is killed in between', async () => {
    const first = await openEnvironment(directory);
    const store = await LmdbKeyStore.open(first, []);
    for (let index = 0; index < 200; index++) void store.obtain(person(index));
    await store.obtain(PURPOSE);
    const text = await wrappedIn(first, person(5));
    // As a crash leaves it: the tombstone is there, and the file is not replaced yet.
    const crashed = join(directory, '..', 'crashed');
    await Promise.all([first.put(person(5), Buffer.of(0)), first.put('\0owed', Buffer.of(1))]);
    await first.put(person('later'), Buffer.of(0));
    await cp(directory, crashed, { recursive: true });
    expect(await contentBelow(crashed)).toContain(text);
    await rm(join(crashed, 'lock.mdb'), { force: true });
    const again = await LmdbKeyStore.open(await openEnvironment(crashed), []);
    expect(await contentBelow(crashed)).not.toContain(text);
    expect(await again.find(person(5))).toBe('erased');
    await again.find(person(6));
  });

  it('are copied while others are made and destroyed, and every one that was there before is in the copy', async () => {
    const environment = await openEnvironment(directory);
    const store = await LmdbKeyStore.open(environment, []);
    const before = await Promise.all(Array.from({ length: 50 }, async (_, index) => (await store.obtain(person(`before-${index}`))).id));
    let isMaking = true;
    const making = Array.from({ length: 8 }, async (_, maker) => {
      for (let count = 0; isMaking; count++) {
        await store.obtain(person(`${maker}-${count}`));
        if (count % 4 === 0) await store.destroy(person(`${maker}-${count}`));
      }
    });
    const copies = Array.from({ length: 5 }, (_, index) => `${directory}-${index}`);
    try {
      for (const copy of copies) await copyKeys(environment, copy);
    } finally {
      isMaking = false;
      await Promise.all(making);
    }
    for (const copy of copies) {
      expect((await readdir(copy)).sort()).toEqual(['data.mdb', 'master.key']);
      await cp(copy, `${copy}-looked-at`, { recursive: true });
      const looked = await LmdbKeyStore.openForReading(`${copy}-looked-at`, []);
      const copied = await LmdbKeyStore.open(await openEnvironment(copy), []);
      for (const reader of [looked, copied])
        for (const [index, id] of before.entries()) expect(await reader.find(person(`before-${index}`))).toMatchObject({ id });
    }
  });

  it.each([
    ['is of another purpose', 'naming', 'passwords', (bytes: Buffer) => bytes],
    ['is a tombstone where there can be none', 'naming', 'naming', () => Buffer.of(0)],
    ['is cut', PURPOSE, PURPOSE, (bytes: Buffer) => bytes.subarray(0, -1)],
    ['holds nothing', PURPOSE, PURPOSE, () => Buffer.of(1)],
    ['is of no release', PURPOSE, PURPOSE, () => Buffer.of(9)],
  ] as const)('are damaged where the entry %s', async (_, purpose, from, damage) => {
    const environment = await openEnvironment(directory);
    const store = await LmdbKeyStore.open(environment, []);
    for (const each of ['naming', 'passwords', PURPOSE] as const) await store.obtain(each);
    const [bytes] = await environment.getMany([from]);
    await environment.put(purpose, damage(bytes!));
    const again = await LmdbKeyStore.open(environment, []);
    await expect(again.obtain(purpose)).rejects.toThrow(`The data key for ${purpose} in ${directory} is damaged`);
    await expect(again.findMany([purpose])).rejects.toThrow('is damaged');
  });

  it('come with no record of erasures, where an earlier release has gone on and left the one that it does not know', async () => {
    const environment = await openEnvironment(directory);
    const store = await LmdbKeyStore.open(environment, []);
    await store.setErasedUpTo('0000000000000017', 'seen');
    expect((await environment.getMany(['eraser']))[0]?.toString()).toBe('0000000000000017');
    await environment.put('eraser', Buffer.from('0000000000000018'));
    expect([await store.erasedUpTo(), await store.erasedRecordAt('0000000000000018'), await store.erasedRecordAt('0000000000000017')]).toEqual([
      '0000000000000018',
      null,
      null,
    ]);
  });

  describe('of a release that kept each in a file', () => {
    const keys = new Map(['naming', 'passwords', person(1), person(2)].map((purpose) => [purpose, Buffer.from(createHash('sha256').update(purpose).digest())]));
    const fileOf = (purpose: string): string => join(directory, `${createHash('sha256').update(purpose).digest('hex').slice(0, 40)}.key`);

    beforeEach(async () => {
      await mkdir(directory, { mode: 0o700 });
      for (const [purpose, bytes] of keys) await writeFile(fileOf(purpose), JSON.stringify(masters.wrap(purpose, bytes)));
      await writeFile(fileOf(person('gone')), JSON.stringify({ purpose: person('gone'), erased: true }));
      await writeFile(join(directory, 'eraser.position'), '0000000000000017\n');
      await writeFile(`${fileOf('naming')}.0a1b2c3d4e5f.tmp`, '{"purp');
    });

    async function expectKeys(store: LmdbKeyStore): Promise<void> {
      for (const [purpose, bytes] of keys) expect(await store.find(purpose as KeyPurpose)).toMatchObject({ bytes });
      expect(await store.find(person('gone'))).toBe('erased');
      expect(await store.erasedUpTo()).toBe('0000000000000017');
    }

    it('are taken over with their tombstones, and their files go', async () => {
      const former = join(directory, '..', 'former');
      await link(fileOf('naming'), former);
      await expectKeys(await LmdbKeyStore.open(await openEnvironment(directory), [wrapping]));
      expect((await readdir(directory)).sort()).toEqual(['data.mdb', 'lock.mdb']);
      expect((await readFile(former)).every((byte) => byte === 0)).toBe(true);
    });

    it('are left as they are where what says how far erasures have come is damaged', async () => {
      await writeFile(join(directory, 'eraser.position'), '00000\0\0\0');
      const before = await readdir(directory);
      await expect(openEnvironment(directory).then((environment) => LmdbKeyStore.open(environment, [wrapping]))).rejects.toThrow(
        /how far erasures have come, .*eraser\.position, is damaged/,
      );
      expect((await readdir(directory)).filter((name) => !name.endsWith('.mdb'))).toEqual(before);
    });

    it('are looked at where they lie', async () => {
      const looking = await LmdbKeyStore.openForReading(directory, [wrapping]);
      expect(await looking.find(person(1))).toMatchObject({ bytes: keys.get(person(1)) });
      expect(await looking.find(person('gone'))).toBe('erased');
      expect(await readdir(directory)).toHaveLength(7);
    });

    it('are taken over again where a start was killed in between, wherever that was', async () => {
      const names = [...keys.keys()];
      for (let removed = 0; removed <= names.length; removed++) {
        const copy = `${directory}-${removed}`;
        await cp(directory, copy, { recursive: true });
        const environment = await openEnvironment(copy);
        // What the killed process had done: all or some keys in their new place, and only then some files gone.
        for (const purpose of names.slice(0, removed === 0 ? 2 : names.length)) {
          const { master, iv, wrapped } = masters.wrap(purpose, keys.get(purpose)!);
          await environment.putFirst(
            purpose,
            Buffer.concat([Buffer.of(1), Buffer.from(master, 'hex'), Buffer.from(iv, 'base64'), Buffer.from(wrapped, 'base64')]),
          );
        }
        for (const purpose of names.slice(0, removed)) await rm(fileOf(purpose).replace(directory, copy));
        await expectKeys(await LmdbKeyStore.open(environment, [wrapping]));
        expect((await readdir(copy)).sort()).toEqual(['data.mdb', 'lock.mdb']);
      }
    });

    it('are taken over where a start was killed while it removed the files, which leaves some with zeros', async () => {
      const [killer, torn] = [join(directory, 'what-cannot-be-removed.tmp'), fileOf('naming')];
      const { length } = await readFile(torn);
      await mkdir(killer);
      const environment = await openEnvironment(directory);
      await expect(LmdbKeyStore.open(environment, [wrapping])).rejects.toThrow(killer);
      await until(async () => !(await readdir(directory)).some((name) => name.endsWith('.key')));
      await writeFile(torn, Buffer.alloc(length));
      expect(await (await LmdbKeyStore.openForReading(directory, [wrapping])).find('naming')).toMatchObject({ bytes: keys.get('naming') });
      await rm(killer, { recursive: true });
      await expectKeys(await LmdbKeyStore.open(environment, [wrapping]));
      expect((await readdir(directory)).sort()).toEqual(['data.mdb', 'lock.mdb']);
    });

    it.each([
      ['holds nothing', () => ''],
      ['holds no key', () => '{}'],
      ['is of another purpose', () => JSON.stringify(masters.wrap('passwords', Buffer.alloc(KEY_BYTES)))],
      ['is a tombstone where there can be none', () => '{"purpose":"naming","erased":true}'],
    ])('keep their files, all of them, and are not moved, where one %s', async (_, content) => {
      const others = Array.from({ length: 200 }, (__, index) => person(`other_${index}`));
      for (const purpose of others) await writeFile(fileOf(purpose), JSON.stringify(masters.wrap(purpose, Buffer.alloc(KEY_BYTES, 7))));
      await writeFile(fileOf('naming'), content());
      const before = (await readdir(directory)).length;
      const environment = await openEnvironment(directory);
      const told: number[] = [];
      await expect(LmdbKeyStore.open(environment, [wrapping], undefined, (files) => told.push(files))).rejects.toThrow(
        `The data key in ${fileOf('naming')} is damaged`,
      );
      expect((await readdir(directory)).filter((name) => !name.endsWith('.mdb'))).toHaveLength(before);
      // The release before goes on with its files, and destroys keys in them alone.
      expect(told).toEqual([]);
      expect((await environment.getMany(others)).filter((bytes) => bytes !== undefined)).toEqual([]);
    });
  });
});

describe('the vault', () => {
  let keys: LmdbKeyStore;

  beforeEach(async () => {
    keys = await LmdbKeyStore.open(await openEnvironment(await newDirectory()), []);
  });

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
