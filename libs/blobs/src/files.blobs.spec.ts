import { readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DomainError } from '#libs/platform/src/domain-error';
import { blobsContract, expectUnavailable, leftUnfinished, partsOf, textOf } from './blobs.contract.ts';
import { FilesBlobs } from './files.blobs.ts';

const directories: string[] = [];
const newDirectory = async (): Promise<string> => {
  directories.push(await mkdtemp(join(tmpdir(), 'blobs-')));
  return join(directories.at(-1)!, 'blobs');
};
afterAll(() => Promise.all(directories.map((directory) => rm(directory, { recursive: true }))));

blobsContract('files', async () => FilesBlobs.open({ directory: await newDirectory() }));

describe('files', () => {
  let directory: string;
  let isFull: boolean;
  let blobs: FilesBlobs;
  beforeEach(async () => {
    directory = await newDirectory();
    isFull = false;
    blobs = await FilesBlobs.open({
      directory,
      assertWritable: () => {
        if (isFull) throw new DomainError('unavailable', 'storage_full', 'Full.');
      },
    });
  });

  it('are for their owner alone', async () => {
    await blobs.put('exports/e1/a', partsOf('a'));
    const modes = ['', 'exports', 'exports/e1', 'exports/e1/a'].map((path) => (statSync(join(directory, path)).mode & 0o777).toString(8));
    expect(modes).toEqual(['700', '700', '700', '600']);
  });

  it('leave nothing of what the disk has no room for, nor folders of what was removed', async () => {
    await blobs.put('exports/e1/a', partsOf('a'));
    isFull = true;
    await expect(blobs.put('exports/e1/b', partsOf('b'))).rejects.toMatchObject({ code: 'storage_full' });
    expect(await textOf(blobs, 'exports/e1/a')).toBe('a');
    await blobs.remove('exports/e1/a');
    expect(readdirSync(directory)).toEqual(['.incoming']);
    expect(readdirSync(join(directory, '.incoming'))).toEqual([]);
  });

  it('that a process left unfinished are gone after the next start', async () => {
    const end = await leftUnfinished(blobs, 'exports/e1/a');
    expect(readdirSync(join(directory, '.incoming'))).toHaveLength(1);
    const next = await FilesBlobs.open({ directory });
    expect(readdirSync(directory)).toEqual([]);
    await next.put('exports/e1/a', partsOf('a'));
    await end();
    expect(await textOf(next, 'exports/e1/a')).toBe('a');
  });

  it('that became shorter while they are read are not taken for whole', async () => {
    await blobs.put('exports/e1/a', partsOf('a'.repeat(200_000)));
    const { bytes } = (await blobs.get('exports/e1/a'))!;
    await truncate(join(directory, 'exports/e1/a'), 100);
    const reading = async (): Promise<void> => {
      for await (const part of bytes) expect(part.byteLength).toBeGreaterThan(0);
    };
    await expectUnavailable(reading());
  });

  it('cannot be in a place that is none', async () => {
    await blobs.put('exports/e1/a', partsOf('a'));
    await expectUnavailable(blobs.put('exports/e1/a/b', partsOf('b')));
    expect(await blobs.downloadAddress()).toBeNull();
  });
});
