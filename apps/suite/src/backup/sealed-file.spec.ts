import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MasterKeys } from '#libs/event-sourcing/src/sealing/master-keys';
import { StartRefused } from '#libs/platform/src/start-refused';
import { sealed, SealedFile } from './sealed-file.ts';

const root = mkdtempSync(join(tmpdir(), 'gatehouse-sealed-file-'));
afterAll(() => rmSync(root, { recursive: true }));

const master = (): string => randomBytes(32).toString('base64');
const first = master();
const masters = MasterKeys.of([first]);
let files = 0;

async function* of(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

async function bytesOf(lines: readonly string[], by = masters): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of sealed(of(lines), by)) parts.push(part);
  return Buffer.concat(parts);
}

function written(bytes: Buffer): string {
  const path = join(root, String(++files));
  writeFileSync(path, bytes);
  return path;
}

async function read(path: string, by = masters): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of (await SealedFile.open(path, by)).lines()) lines.push(line);
  return lines;
}

describe('a file of sealed lines', () => {
  // Each long line fills a frame, whatever it is zipped to.
  const lines = ['{"a":1}', ...Array.from({ length: 3 }, () => randomBytes(200_000).toString('base64')), '{"ключ":"😀"}'];

  it.each([
    ['none', []],
    ['one', ['{}']],
    ['many frames', lines],
    ['lines that end with a frame', lines.slice(1, 4)],
  ])('gives back the lines that were written, as often as they are asked for: %s', async (_what, some) => {
    const path = written(await bytesOf(some));
    expect(await read(path)).toEqual(some);
    expect(await read(path)).toEqual(some);
  });

  it('is opened by whoever has its master key, wherever in the list', async () => {
    const path = written(await bytesOf(['x']));
    expect(await read(path, MasterKeys.of([master(), first]))).toEqual(['x']);
    await expect(read(path, MasterKeys.of([master()]))).rejects.toThrow(/^A data key was wrapped by master key [0-9a-f]{16}, which is not among MASTER_KEYS/);
  });

  it('shows nothing of what is in it, and no two are the same', async () => {
    const [one, two] = [await bytesOf(['a secret that is a secret']), await bytesOf(['a secret that is a secret'])];
    expect(one.includes('secret')).toBe(false);
    expect(one.subarray(-40).equals(two.subarray(-40))).toBe(false);
  });

  it('is refused wherever it ends too early', async () => {
    const bytes = await bytesOf(lines.slice(0, 3));
    const head = bytes.indexOf('\n') + 1;
    const lengths: number[] = [];
    for (let at = head; at < bytes.length; at += 4 + bytes.readUInt32BE(at)) lengths.push(at);
    expect(lengths.length).toBeGreaterThan(2);
    const ends = [...lengths, ...lengths.map((at) => at + 2), ...lengths.slice(0, -1).map((at) => at + 100), bytes.length - 1];
    for (const end of ends) {
      const problem = await read(written(bytes.subarray(0, end))).catch((error: unknown) => error);
      expect(problem).toBeInstanceOf(StartRefused);
      expect((problem as Error).message).toContain('is cut off');
    }
  });

  it('is refused wherever a byte of it is another, and where something follows it', async () => {
    const bytes = await bytesOf(['{"a":1}', '{"b":2}']);
    for (let at = 0; at < bytes.length; at++) {
      const other = Buffer.from(bytes);
      other[at]! ^= 1;
      await expect(read(written(other))).rejects.toThrow(StartRefused);
    }
    await expect(read(written(Buffer.concat([bytes, Buffer.from('x')])))).rejects.toThrow('is not what was written');
    await expect(read(written(Buffer.concat([bytes, bytes])))).rejects.toThrow('is not what was written');
  });

  it('is refused where its frames have another order, or are of another file', async () => {
    const [one, two] = [await bytesOf(lines.slice(1, 4)), await bytesOf(lines.slice(1, 4))];
    const framesOf = (bytes: Buffer): Buffer[] => {
      const frames: Buffer[] = [];
      for (let at = bytes.indexOf('\n') + 1; at < bytes.length;) {
        const end = at + 4 + bytes.readUInt32BE(at);
        frames.push(bytes.subarray(at, end));
        at = end;
      }
      return frames;
    };
    const head = one.subarray(0, one.indexOf('\n') + 1);
    const [a, b, ...rest] = framesOf(one);
    await expect(read(written(Buffer.concat([head, b!, a!, ...rest])))).rejects.toThrow('is not what was written');
    await expect(read(written(Buffer.concat([head, a!, ...rest])))).rejects.toThrow('is not what was written');
    await expect(read(written(Buffer.concat([head, ...framesOf(two)])))).rejects.toThrow('is not what was written');
    expect(await read(written(Buffer.concat([head, a!, b!, ...rest])))).toEqual(lines.slice(1, 4));
  });

  it('is told from files that are none, and from those of later releases', async () => {
    const bytes = await bytesOf(['x']);
    const foreign = [
      Buffer.alloc(0),
      Buffer.from('{}\n'),
      Buffer.from('null\n'),
      randomBytes(10_000),
      readFileSync(import.meta.filename),
      Buffer.alloc(5_000, 'x'),
    ];
    for (const other of foreign) await expect(read(written(other))).rejects.toThrow("is no backup of a cluster's small state");
    const later = Buffer.from(bytes.toString('latin1').replace('"format":1', '"format":2'), 'latin1');
    await expect(read(written(later))).rejects.toThrow('has format 2, and this release knows 1');
    await expect(read(join(root, 'nowhere'))).rejects.toThrow('cannot be read (ENOENT)');
    await expect(read(root)).rejects.toThrow(StartRefused);
  });
});
