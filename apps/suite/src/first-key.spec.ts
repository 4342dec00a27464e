import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { StartRefused } from '#libs/platform/src/start-refused';
import { firstKey } from './first-key.ts';

describe('the first key', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-first-key-'));
  afterAll(() => rmSync(root, { recursive: true }));

  it('is made and kept where nobody has made the directory, as beside engines', () => {
    const made = firstKey(join(root, 'not', 'there'));
    expect(made.isNew).toBe(true);
    expect(firstKey(join(root, 'not', 'there'))).toEqual({ ...made, isNew: false });
    expect([made.path, dirname(made.path)].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o700]);
  });

  it('is refused in a sentence where it cannot be kept', () => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    expect(() => firstKey(join(file, 'below'))).toThrow(StartRefused);
    const directory = unwritable();
    expect(() => firstKey(directory)).toThrow(/^.*development\.key cannot be written \(E[A-Z]+\): set DATA_DIR to a directory that this user may write to\.$/);
  });

  /** Root may write anywhere but where nobody may. */
  function unwritable(): string {
    if (process.getuid?.() === 0) return '/sys/gatehouse';
    chmodSync(root, 0o500);
    return join(root, 'unwritable');
  }
});
