import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CSV_HEAD, csvLine } from '#apps/audit-logs/src/export-format/csv';
import type { ExportedEvent } from '#apps/audit-logs/src/export-format/exported-event';
import { ExportedTrail, ORGANIZATION, publicKey } from '#apps/audit-logs/src/export-format/testing/exported-trail';
import { NotThatFile, verifyAuditExport } from './audit-verify.ts';

const party = (id: string) => ({ id, type: 'user', name: null, metadata: {} });
const events = Array.from({ length: 5 }, (_, leaf_index): ExportedEvent => ({
  ...{ id: `audit_event_${leaf_index}`, organization_id: ORGANIZATION, received_at: '2026-11-23T06:10:00.000Z', occurred_at: '2026-11-23T06:09:00.000Z' },
  ...{ action: 'document.shared', version: null, actor: party('a'), targets: [], context: { location: '192.0.2.1', user_agent: null }, metadata: {} },
  ...{ leaf_index, salt: `0${leaf_index}` },
}));

describe('audit verify', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-verify-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const saved = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const trail = new ExportedTrail(events);
  const keys = saved('keys.json', JSON.stringify({ object: 'list', data: [{ public_key: publicKey.toString('base64') }] }));
  const exported = async (leaves: readonly number[], name = 'export.csv'): Promise<string> => {
    saved(`${name}.proof`, await trail.proof(leaves, await trail.checkpoint()));
    return saved(name, CSV_HEAD + leaves.map((leaf) => csvLine(events[leaf]!)).join(''));
  };
  const verify = (file: string, options: Readonly<Record<string, string>>): Promise<string> => verifyAuditExport({ arguments: [file], options });

  it('says what is proven, and what is not', async () => {
    expect(await verify(await exported([1, 2, 3]), { keys })).toMatch(
      /^3 events are genuine and unaltered, by the checkpoint of gatehouse\/environment_\w+\/org_\w+, of 5 events at [-0-9T:.Z]+\. It has all that arrived from leaf 1 to leaf 3\.$/,
    );
    expect(await verify(await exported([1, 3]), { keys })).toContain('whether others were left out that belong to it is not proven.');
    expect(await verify(await exported([]), { keys })).toContain('That there was nothing to export is not proven.');
  });

  it('takes checkpoints and proofs of consistency as they were answered, and a checkpoint as the text that it is', async () => {
    const file = await exported([1, 2, 3]);
    const early = await trail.checkpoint(2);
    const hashes = (await trail.consistency(2, 5)).map((hash) => hash.toString('base64'));
    const consistency = saved('consistency.json', JSON.stringify({ from: 2, to: 5, hashes }));
    for (const checkpoint of [saved('kept.txt', early), saved('kept.json', JSON.stringify({ checkpoint: early }))])
      expect(await verify(file, { checkpoint, consistency })).toMatch(/^3 events are genuine/);
    expect(await verify(file, { checkpoint: saved('same.txt', await trail.checkpoint()), proof: `${file}.proof` })).toMatch(/^3 events are genuine/);
  });

  it('says that an export is not verified, and why', async () => {
    const file = await exported([1, 2, 3]);
    saved('export.csv', CSV_HEAD + [1, 2, 3].map((leaf) => csvLine({ ...events[leaf]!, occurred_at: '2026-11-22T06:09:00.000Z' })).join(''));
    await expect(verify(file, { keys })).rejects.toThrow(/export\.csv is NOT verified\. The events are not those of the checkpoint/);
  });

  it('asks for something to trust, and for what it can read', async () => {
    const file = await exported([1]);
    const wrong = saved('wrong.json', JSON.stringify({ data: [{ public_key: 'AAAA' }], hashes: 1 }));
    const refused: readonly Readonly<Record<string, string>>[] = [
      {},
      { consistency: keys },
      { keys: wrong },
      { keys: file },
      { keys, consistency: wrong },
      { checkpoint: keys, consistency: wrong },
    ];
    for (const options of refused) await expect(verify(file, options)).rejects.toThrow(NotThatFile);
    await expect(verify(file, { keys: join(folder, 'nowhere') })).rejects.toThrow('ENOENT');
  });
});
