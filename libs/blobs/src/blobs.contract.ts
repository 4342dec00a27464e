import { createHash } from 'node:crypto';
import { isUnavailable } from '#libs/platform/src/domain-error';
import type { Blobs } from './blobs.ts';

const MIB = 2 ** 20;

/** Of a place that nobody else stores in. */
export function blobsContract(name: string, open: () => Promise<Blobs>): void {
  describe(`blobs in ${name}`, () => {
    let blobs: Blobs;
    beforeAll(async () => {
      blobs = await open();
    });
    afterAll(() => blobs.close());

    it('gives back what was put, as a whole and in parts', async () => {
      expect(await blobs.get('exports/e1/a')).toBeNull();
      const stored = await blobs.put('exports/e1/a', partsOf('Zoë', ' 😀', '', '\0\n'));
      expect(stored).toMatchObject({ name: 'exports/e1/a', bytes: 11 });
      expect(Math.abs(stored.storedAt - Date.now())).toBeLessThan(60_000);
      expect(await textOf(blobs, 'exports/e1/a')).toBe('Zoë 😀\0\n');
      const part = (await blobs.get('exports/e1/a', { first: 5, last: 8 }))!;
      expect(part.blob).toEqual(stored);
      for await (const bytes of part.bytes) expect(bytes.byteLength).toBe(4);
      expect(await textOf(blobs, 'exports/e1/a', { first: 5, last: 8 })).toBe('😀');
      expect(await textOf(blobs, 'exports/e1/a', { first: 9 })).toBe('\0\n');
      expect(await textOf(blobs, 'exports/e1/a', { first: 9, last: 400 })).toBe('\0\n');
      expect(await textOf(blobs, 'exports/e1/a', { first: 11 })).toBe('');
    });

    it('tells of a blob without reading it, and that there is none', async () => {
      expect(await blobs.stat('exports/e1/told')).toBeNull();
      const stored = await blobs.put('exports/e1/told', partsOf('Zoë'));
      expect(await blobs.stat('exports/e1/told')).toEqual(stored);
      await blobs.put('exports/e1/told', partsOf());
      expect(await blobs.stat('exports/e1/told')).toMatchObject({ name: 'exports/e1/told', bytes: 0 });
      await blobs.remove('exports/e1/told');
      expect(await blobs.stat('exports/e1/told')).toBeNull();
    });

    it('stores nothing as well, and puts the newer in place of the older', async () => {
      await blobs.put('exports/e1/b', partsOf('older and longer'));
      await blobs.put('exports/e1/b', partsOf('newer'));
      expect(await textOf(blobs, 'exports/e1/b')).toBe('newer');
      expect(await blobs.put('exports/e1/b', partsOf())).toMatchObject({ bytes: 0 });
      expect(await textOf(blobs, 'exports/e1/b')).toBe('');
    });

    it('takes what is longer than memory should hold, in pieces of any size', async () => {
      const pieces = [3 * MIB + 1, 9 * MIB, 1, 6 * MIB].map((bytes, index) => Buffer.alloc(bytes, index + 1));
      const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
      expect(await blobs.put('exports/e2/large', streamOf(pieces))).toMatchObject({ bytes });
      const [hash, expected] = [createHash('sha256'), createHash('sha256')];
      for (const piece of pieces) expected.update(piece);
      for await (const part of (await blobs.get('exports/e2/large'))!.bytes) hash.update(part);
      expect(hash.digest('hex')).toBe(expected.digest('hex'));
      // Whoever has read enough gives the rest back.
      for await (const part of (await blobs.get('exports/e2/large'))!.bytes) {
        expect(part[0]).toBe(1);
        break;
      }
    });

    it.each([1, 20 * MIB])('keeps what was there where content ends in an error after %d bytes, and shows nothing of it before its end', async (bytes) => {
      await blobs.put('exports/e3/kept', partsOf('what was there'));
      const cut = new Error('The connection was cut.');
      // S3Mock, other than S3, loses what has the name of a long upload that ends in an error.
      for (const name of bytes === 1 ? ['exports/e3/kept', 'exports/e3/new'] : ['exports/e3/new']) {
        const content = async function* (): AsyncGenerator<Uint8Array> {
          yield Buffer.alloc(bytes);
          if (name === 'exports/e3/new') expect(await blobs.get(name)).toBeNull();
          else expect(await textOf(blobs, name)).toBe('what was there');
          throw cut;
        };
        await expect(blobs.put(name, content())).rejects.toBe(cut);
      }
      expect(await textOf(blobs, 'exports/e3/kept')).toBe('what was there');
      expect(await blobs.get('exports/e3/new')).toBeNull();
    });

    it('removes, also what is not there', async () => {
      await blobs.put('exports/e4/a', partsOf('a'));
      await blobs.remove('exports/e4/a');
      expect(await blobs.get('exports/e4/a')).toBeNull();
      await blobs.remove('exports/e4/a');
      await blobs.put('exports/e4/a', partsOf('again'));
      expect(await textOf(blobs, 'exports/e4/a')).toBe('again');
    });

    it('lists a folder with all that is below it, and nothing of its neighbours', async () => {
      const names = ['lists/e1/a', 'lists/e1/b/c', 'lists/e1/b/d', 'lists/e10/a', 'lists/e2'];
      for (const name of names) await blobs.put(name, partsOf(name));
      expect(await namesOf(blobs, 'lists/e1')).toEqual(['lists/e1/a', 'lists/e1/b/c', 'lists/e1/b/d']);
      expect(await namesOf(blobs, 'lists')).toEqual(names);
      expect(await namesOf(blobs, 'nothing')).toEqual([]);
    });

    it('stores many at once in folders that others empty', async () => {
      await Promise.all(
        Array.from({ length: 40 }, async (_, index) => {
          const name = `many/e1/folder/${index}`;
          await blobs.put(name, partsOf(name));
          expect(await textOf(blobs, name)).toBe(name);
          await blobs.remove(name);
        }),
      );
      expect(await namesOf(blobs, 'many')).toEqual([]);
    });

    it.each(['', 'one', '/exports/a', 'exports/../a', 'exports//a', 'exports/a/', 'exports/.a', 'exports/a b', `exports/${'a'.repeat(201)}`])(
      'has no blob of the name %j',
      async (wrong) => {
        await expect(blobs.put(wrong, partsOf('a'))).rejects.toThrow('is no name of a blob');
        await expect(blobs.get(wrong)).rejects.toThrow('is no name of a blob');
        await expect(blobs.stat(wrong)).rejects.toThrow('is no name of a blob');
        await expect(blobs.remove(wrong)).rejects.toThrow('is no name of a blob');
      },
    );
  });
}

/** An upload as the end of a process leaves it: the content neither ends nor fails, until what this answers is called. */
export async function leftUnfinished(blobs: Blobs, name: string): Promise<() => Promise<void>> {
  const [started, end] = [new Signal(), new Signal()];
  const content = async function* (): AsyncGenerator<Uint8Array> {
    // Two parts of a long upload, and the beginning of the third, which is waited for.
    for (let part = 0; part < 17; part += 1) yield Buffer.alloc(MIB);
    started.tell();
    await end.told;
    throw new Error('It has ended.');
  };
  const ended = blobs.put(name, content()).then(
    () => {},
    () => {},
  );
  await started.told;
  return () => {
    end.tell();
    return ended;
  };
}

class Signal {
  tell!: () => void;
  readonly told = new Promise<void>((resolve) => {
    this.tell = resolve;
  });
}

/** Refusals of a store that is away, slow, or not what it says it is. */
export async function expectUnavailable(work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect({ error, isUnavailable: isUnavailable(error) }).toMatchObject({ error: { kind: 'unavailable' }, isUnavailable: true });
}

export function partsOf(...texts: readonly string[]): AsyncIterable<Uint8Array> {
  return streamOf(texts.map((text) => Buffer.from(text)));
}

async function* streamOf(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

export async function textOf(blobs: Blobs, name: string, range?: Parameters<Blobs['get']>[1]): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of (await blobs.get(name, range))!.bytes) parts.push(part);
  return Buffer.concat(parts).toString();
}

async function namesOf(blobs: Blobs, folder: string): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { name } of blobs.list(folder)) names.push(name);
  return names.sort();
}
