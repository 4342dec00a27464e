import type { ShortLived } from './short-lived.ts';

/** Opens the short-lived entries of one place, on a clock that the tests set; opening again after `close` finds what was written. */
export type OpenShortLived = () => Promise<{
  readonly shortLived: ShortLived;
  /** Holds back the news that something is on disk, until what it answers is called. Absent: a write is on disk when it resolves. */
  holdFlushes?(): () => void;
  close(): Promise<void>;
}>;

interface SetClock {
  now(): number;
  forward(milliseconds: number): void;
}

const MINUTE = 60_000;

export function shortLivedContract(name: string, given: (clock: SetClock) => Promise<OpenShortLived>, newClock: () => SetClock): void {
  describe(`short-lived entries in ${name}`, () => {
    let clock: SetClock;
    let open: OpenShortLived;
    let opened: Awaited<ReturnType<OpenShortLived>>;
    let entries: ShortLived;
    const later = (milliseconds = 10 * MINUTE): number => clock.now() + milliseconds;
    const reopen = async (): Promise<void> => {
      await opened.close();
      opened = await open();
      entries = opened.shortLived;
    };

    beforeEach(async () => {
      clock = newClock();
      open = await given(clock);
      opened = await open();
      entries = opened.shortLived;
    });
    afterEach(() => opened.close());

    it('gives back what was put, until it expires', async () => {
      expect(await entries.get('codes', 'a')).toBeNull();
      await entries.put('codes', 'a', 'Zoë 😀\n\0', later());
      const expected = { value: 'Zoë 😀\n\0', expiresAt: later() };
      expect(await entries.get('codes', 'a')).toMatchObject(expected);
      await reopen();
      expect(await entries.get('codes', 'a')).toMatchObject(expected);
      clock.forward(10 * MINUTE);
      expect(await entries.get('codes', 'a')).toBeNull();
    });

    it('says that what was written is on disk when it is, and not before', async () => {
      await entries.durable();
      const release = opened.holdFlushes?.();
      let isOnDisk = false;
      await entries.put('codes', 'a', 'one', later());
      const { version } = (await entries.get('codes', 'a'))!;
      const onDisk = entries.durable().then(() => (isOnDisk = true));
      // Readers see it before it is on disk; so whoever answers what they read waits as well.
      expect(await entries.compareAndSet('codes', 'a', version, 'two', later())).toBe(true);
      const alsoRead = entries.durable();
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(isOnDisk).toBe(release === undefined);
      release?.();
      await Promise.all([onDisk, alsoRead]);
      await reopen();
      expect((await entries.get('codes', 'a'))?.value).toBe('two');
    });

    it('keeps collections and keys apart, whatever is in a key', async () => {
      const keys = ['a', 'a b', 'a\nb', 'a\0b', 'ключ', '"', 'x'.repeat(255)];
      for (const key of keys) await entries.put('one', key, key, later());
      await entries.put('two', 'a', 'other', later());
      await reopen();
      for (const key of keys) expect((await entries.get('one', key))?.value).toBe(key);
      expect((await entries.get('two', 'a'))?.value).toBe('other');
    });

    it('tells everything that is alive, with its expiry, and no lease', async () => {
      const dump = async (): Promise<unknown[]> => {
        const told = [];
        for await (const entry of entries.dump()) told.push(entry);
        return told.sort((one, other) => (one.key < other.key ? -1 : 1));
      };
      expect(await dump()).toEqual([]);
      const keys = ['"', '"x"', 'a', 'a\0b', 'a\nb', 'a b', 'ключ'];
      for (const key of keys) await entries.put('one', key, `${key}\n`, later());
      await entries.put('one', 'short', 'x', later(MINUTE));
      await entries.put('two', 'taken', 'x', later());
      await entries.take('two', 'taken');
      await entries.lease('work', 'one', MINUTE);
      clock.forward(MINUTE);
      const expected = keys.map((key) => ({ collection: 'one', key, value: `${key}\n`, expiresAt: later(9 * MINUTE) }));
      expect(await dump()).toEqual(expected);
      await reopen();
      expect(await dump()).toEqual(expected);
      // More than one look at the store.
      for (let from = 0; from < 2_500; from += 100)
        await Promise.all(Array.from({ length: 100 }, (_, number) => entries.put('many', String(from + number).padStart(4, '0'), 'x', later())));
      expect((await dump()).length).toBe(keys.length + 2_500);
    });

    it('puts only where nothing is alive', async () => {
      expect(await entries.putIfAbsent('codes', 'a', 'first', later())).toMatchObject({ stored: true, entry: { value: 'first' } });
      expect(await entries.putIfAbsent('codes', 'a', 'second', later())).toMatchObject({ stored: false, entry: { value: 'first' } });
      await reopen();
      expect(await entries.putIfAbsent('codes', 'a', 'second', later())).toMatchObject({ stored: false, entry: { value: 'first' } });
      clock.forward(10 * MINUTE);
      expect(await entries.putIfAbsent('codes', 'a', 'third', later())).toMatchObject({ stored: true, entry: { value: 'third' } });
    });

    it('lets one of many putters win', async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, (_, number) => entries.putIfAbsent('codes', 'a', String(number), later())));
      expect(answers.filter(({ stored }) => stored)).toHaveLength(1);
      expect(new Set(answers.map(({ entry }) => entry.value)).size).toBe(1);
    });

    it('gives an entry to one of many takers', async () => {
      await entries.put('codes', 'a', 'once', later());
      const taken = await Promise.all(Array.from({ length: 20 }, () => entries.take('codes', 'a')));
      expect(taken.filter((entry) => entry !== null)).toMatchObject([{ value: 'once' }]);
      expect(await entries.get('codes', 'a')).toBeNull();
      await reopen();
      expect(await entries.take('codes', 'a')).toBeNull();
      await entries.put('codes', 'a', 'again', later());
      expect(await entries.take('codes', 'a')).toMatchObject({ value: 'again' });
    });

    it('replaces only the version that was read', async () => {
      await entries.put('codes', 'a', 'one', later());
      const { version } = (await entries.get('codes', 'a'))!;
      const outcomes = await Promise.all([1, 2, 3].map((number) => entries.compareAndSet('codes', 'a', version, String(number), later())));
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      const next = (await entries.get('codes', 'a'))!;
      expect(next.version).toBeGreaterThan(version);
      await reopen();
      expect(await entries.compareAndSet('codes', 'a', version, 'late', later())).toBe(false);
      expect(await entries.compareAndSet('codes', 'a', next.version, 'next', later())).toBe(true);
      clock.forward(10 * MINUTE);
      const { version: last } = next;
      expect(await entries.compareAndSet('codes', 'a', last, 'expired', later())).toBe(false);
      expect(await entries.compareAndSet('codes', 'never', 0, 'value', later())).toBe(false);
    });

    it('never gives a version twice, even to an entry that was taken or expired and came again', async () => {
      const versions: number[] = [];
      for (let round = 0; round < 6; round++) {
        await entries.put('codes', 'a', 'value', later());
        versions.push((await entries.get('codes', 'a'))!.version);
        if (round % 3 === 0) await entries.take('codes', 'a');
        if (round % 3 === 1) clock.forward(11 * MINUTE);
        await entries.sweep(clock.now(), 100);
        if (round % 2 === 1) await reopen();
      }
      expect([...versions].sort((one, other) => one - other)).toEqual(versions);
      expect(new Set(versions).size).toBe(6);
    });

    it('adds up, also at once, until the first amount expires', async () => {
      expect(await entries.add('attempts', 'a', 1, later())).toBe(1);
      const totals = await Promise.all([1, 1, 1].map((amount) => entries.add('attempts', 'a', amount, later())));
      expect(totals.sort()).toEqual([2, 3, 4]);
      await reopen();
      clock.forward(5 * MINUTE);
      expect(await entries.add('attempts', 'a', 10, later())).toBe(14);
      clock.forward(5 * MINUTE);
      expect(await entries.add('attempts', 'a', 1, later())).toBe(1);
    });

    it('gives a lease to one holder at a time, with a token that grows with every change', async () => {
      const first = (await entries.lease('sweeper', 'one', MINUTE))!;
      expect(await entries.lease('sweeper', 'two', MINUTE)).toBeNull();
      clock.forward(MINUTE / 2);
      expect(await entries.lease('sweeper', 'one', MINUTE)).toEqual(first);
      clock.forward(MINUTE / 2 + 1);
      expect(await entries.lease('sweeper', 'two', MINUTE)).toBeNull();
      await reopen();
      clock.forward(MINUTE);
      const second = (await entries.lease('sweeper', 'two', MINUTE))!;
      expect(second.token).toBeGreaterThan(first.token);
      await entries.release('sweeper', 'one', first.token);
      expect(await entries.lease('sweeper', 'one', MINUTE)).toBeNull();
      await entries.release('sweeper', 'two', second.token);
      const third = (await entries.lease('sweeper', 'one', MINUTE))!;
      expect(third.token).toBeGreaterThan(second.token);
      expect(await entries.lease('other', 'two', MINUTE)).not.toBeNull();
    });

    it('lets a holder that comes late go on as before, where nobody took the lease meanwhile', async () => {
      const first = (await entries.lease('sweeper', 'one', MINUTE))!;
      clock.forward(60 * MINUTE);
      expect(await entries.lease('sweeper', 'one', MINUTE)).toEqual(first);
      expect(await entries.lease('sweeper', 'two', MINUTE)).toBeNull();
      clock.forward(60 * MINUTE);
      const second = (await entries.lease('sweeper', 'two', MINUTE))!;
      expect(second.token).toBeGreaterThan(first.token);
      expect(await entries.lease('sweeper', 'one', MINUTE)).toBeNull();
    });

    it('gives a holder a greater token where it asks for one, and takes nothing back under the earlier one', async () => {
      const first = (await entries.lease('sweeper', 'one', MINUTE))!;
      const second = (await entries.lease('sweeper', 'one', MINUTE, first.token))!;
      expect(second.token).toBeGreaterThan(first.token);
      expect(await entries.lease('sweeper', 'one', MINUTE, first.token)).toEqual(second);
      expect(await entries.lease('sweeper', 'two', MINUTE, second.token)).toBeNull();
      await entries.release('sweeper', 'one', first.token);
      expect(await entries.lease('sweeper', 'two', MINUTE)).toBeNull();
      await entries.release('sweeper', 'one', second.token);
      const third = (await entries.lease('sweeper', 'one', MINUTE, second.token))!;
      expect(third.token).toBeGreaterThan(second.token);
    });

    it('sweeps what expired and nothing else, as much as it is asked to', async () => {
      for (let number = 0; number < 20; number++) await entries.put('codes', `short${number}`, 'value', later(MINUTE));
      await entries.put('codes', 'long', 'value', later(60 * MINUTE));
      await entries.put('codes', 'prolonged', 'value', later(MINUTE));
      await entries.put('codes', 'prolonged', 'value', later(60 * MINUTE));
      await reopen();
      expect(await entries.sweep(clock.now(), 100)).toBe(0);
      clock.forward(5 * MINUTE);
      expect(await entries.sweep(clock.now(), 15)).toBe(15);
      expect(await entries.sweep(clock.now(), 15)).toBe(5);
      expect(await entries.sweep(clock.now(), 15)).toBe(0);
      for (const key of ['long', 'prolonged']) expect(await entries.get('codes', key)).not.toBeNull();
      clock.forward(60 * MINUTE);
      expect(await entries.sweep(clock.now(), 15)).toBe(2);
    });

    it('sees its own writes at once, in any order of writing and removing', async () => {
      for (let round = 0; round < 200; round++) {
        const value = String(round);
        if (round % 3 === 0) expect(await entries.take('codes', 'a')).toEqual(round === 0 ? null : expect.objectContaining({ value: String(round - 1) }));
        await entries.put('codes', 'a', value, later());
        if (round % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
        expect((await entries.get('codes', 'a'))?.value).toBe(value);
      }
    });
  });
}
