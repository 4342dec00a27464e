import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogForReading } from '#libs/platform/src/storage/log-storage';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { START, type NewEvent } from '../log/event-store.ts';
import { LmdbEventStore } from './lmdb.event-store.ts';

const event = (id: string): NewEvent => ({
  id,
  type: 'note.written',
  shape: 1,
  data: { id },
  subject: null,
  public: [],
  meta: { environment: 'environment_1', actor: { id: 'system', source: 'system', name: null }, requestId: 'r', commandId: 'c', at: 0 },
});

it('reads a log beside the process that writes it, and cannot write', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'log-for-reading-'));
  const storage = await LmdbStorage.open({ directory });
  const written = new LmdbEventStore(storage);
  const { position } = await written.append('note-environment_1-1', 0, [event('1'), event('2')]);

  const read = new LmdbEventStore(new LogForReading(directory));
  expect(await read.head()).toBe(position);
  const chunks: string[] = [];
  const problems = [];
  for await (const problem of read.verify({ from: START, chunk: 1, onChunk: (from) => chunks.push(from) })) problems.push(problem);
  expect(problems).toEqual([]);
  expect(chunks).toHaveLength(2);
  await expect(read.append('note-environment_1-1', 2, [event('3')])).rejects.toThrow('opened for reading');

  await storage.close();
  await rm(directory, { recursive: true });
});
