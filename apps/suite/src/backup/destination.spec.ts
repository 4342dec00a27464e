import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { destinationOf } from './destination.ts';

/** A reader that takes each part a while after it was written. */
class SlowReader extends Writable {
  readonly taken: Buffer[] = [];

  constructor(private readonly most = Infinity) {
    super({ highWaterMark: 1_000_000 });
  }

  override _write(part: Buffer, _encoding: string, done: (error?: Error) => void): void {
    setImmediate(() => {
      if (this.taken.length === this.most) return done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write' }));
      this.taken.push(Buffer.from(part));
      done();
    });
  }
}

async function* parts(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

const unheard = (line: string): void => expect(line).toBe('');

describe('a backup that goes to standard output', () => {
  it('is finished when its reader has taken all of it, and nothing else is said there', async () => {
    const [stdout, stderr] = [new SlowReader(), new SlowReader()];
    const { write, tell } = destinationOf('-', unheard, { stdout, stderr });
    async function* bytes(): AsyncGenerator<Buffer> {
      yield* parts('head');
      tell('Something takes long.');
      yield* parts('middle', 'end');
    }
    await write(bytes());
    expect(Buffer.concat(stdout.taken).toString()).toBe('headmiddleend');
    expect(Buffer.concat(stderr.taken).toString()).toBe('Something takes long.\n');
  });

  it.each([0, 1, 2])('fails where the reader is gone after %d of three parts', async (most) => {
    const stdout = new SlowReader(most);
    await expect(destinationOf('-', unheard, { stdout, stderr: new SlowReader() }).write(parts('head', 'middle', 'end'))).rejects.toThrow(
      'The backup cannot be written to standard output (EPIPE): what is there is no backup.',
    );
  });
});

describe('a backup that goes into a file', () => {
  let directory: string;
  let path: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-destination-'));
    path = join(directory, 'backup');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('is a file of its own, for its owner alone, whatever lies under the name of the unfinished one', async () => {
    const other = join(directory, 'other');
    writeFileSync(other, 'of somebody else', { mode: 0o644 });
    symlinkSync(other, `${path}.unfinished`);
    await destinationOf(path, unheard).write(parts('all of it'));
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['all of it', 0o600]);
    expect(readFileSync(other, 'utf8')).toBe('of somebody else');

    writeFileSync(`${path}-2.unfinished`, 'left by one that was killed', { mode: 0o644 });
    await destinationOf(`${path}-2`, unheard).write(parts('all of it'));
    expect([readFileSync(`${path}-2`, 'utf8'), statSync(`${path}-2`).mode & 0o777]).toEqual(['all of it', 0o600]);
  });

  it('is one whole backup where two are written under one name at once', async () => {
    let began = (): void => {};
    const bothBegan = new Promise<void>((resolve) => (began = resolve));
    async function* first(): AsyncGenerator<Buffer> {
      yield* parts('the first');
      await bothBegan;
      yield* parts(', to its end');
    }
    async function* second(): AsyncGenerator<Buffer> {
      yield* parts('the second');
      began();
      await refused;
      // The one that was given up leaves the draft of the other alone.
      yield* parts(', to its end');
    }
    const refused = expect(destinationOf(path, unheard).write(first())).rejects.toThrow('Another backup has begun to write');
    while (!readdirSync(directory).includes('backup.unfinished')) await new Promise(setImmediate);
    await destinationOf(path, unheard).write(second());
    expect([readdirSync(directory), readFileSync(path, 'utf8')]).toEqual([['backup'], 'the second, to its end']);
  });

  it('leaves nothing there when it fails', async () => {
    async function* failing(): AsyncGenerator<Buffer> {
      yield* parts('half');
      throw new Error('The database is away.');
    }
    await expect(destinationOf(path, unheard).write(failing())).rejects.toThrow('The database is away.');
    expect(readdirSync(directory)).toEqual([]);
  });
});
