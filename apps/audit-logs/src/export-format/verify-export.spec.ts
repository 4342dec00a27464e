import { execFile } from 'node:child_process';
import { generateKeyPairSync, createPublicKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { ROOT } from '#libs/testing/src/process';
import { seedOf } from '#libs/testing/src/seed';
import { rawPublicKey } from '../tree/checkpoint.ts';
import { CSV_HEAD, CsvReader, csvLine } from './csv.ts';
import { NotGenuine, type Trust, type Verified } from './export-check.ts';
import { NotAnExport, type ExportedEvent, type EventReader } from './exported-event.ts';
import { ndjsonLine, NdjsonReader } from './ndjson.ts';
import { ExportedTrail, ORGANIZATION, publicKey } from './testing/exported-trail.ts';
import { verifyExport } from './verify-export.ts';

const STANDALONE = join(ROOT, 'docs/examples/verify-audit-export.mjs');
const run = promisify(execFile);

const trust: Trust = { publicKeys: [publicKey] };

/** What spreadsheets, commas, quotes, lines and JSON could fall over. */
const AWKWARD = [
  '',
  "'",
  "''a",
  '=1+1',
  '+a',
  '-1',
  '@a',
  '\ta',
  '\ra',
  'a,b',
  'a"b',
  '"',
  'a\nb',
  'a\r\nb',
  '\n',
  '😀',
  ' a ',
  'ä',
  '0',
  'null',
  '{}',
  '\u2028',
  '\u0000',
];

function eventAt(leaf_index: number): ExportedEvent {
  const text = (at: number): string => AWKWARD[(leaf_index + at) % AWKWARD.length]!;
  const nullable = (at: number): string | null => ((leaf_index + at) % 5 === 0 ? null : text(at));
  return {
    id: `audit_event_${leaf_index}`,
    organization_id: ORGANIZATION,
    received_at: new Date(1_800_000_000_000 + leaf_index).toISOString(),
    occurred_at: '2026-11-23T06:10:00.000Z',
    action: `document.${text(0)}`,
    version: leaf_index % 3 === 0 ? null : leaf_index,
    actor: { id: text(1), type: text(2), name: nullable(3), metadata: { [`k${leaf_index}`]: text(4), n: leaf_index / 3, is: leaf_index % 2 === 0 } },
    targets: Array.from({ length: leaf_index % 3 }, (_, at) => ({ id: text(at), type: text(5), name: nullable(at), metadata: {} })),
    context: { location: text(6), user_agent: nullable(7) },
    metadata: leaf_index % 2 === 0 ? {} : { text: text(8), big: 1e21 },
    leaf_index,
    salt: leaf_index.toString(16).padStart(32, '0'),
  };
}

const SIZE = 300;
const events = Array.from({ length: SIZE }, (_, leaf) => eventAt(leaf));

type Format = 'csv' | 'ndjson';
const FORMATS: readonly Format[] = ['csv', 'ndjson'];
const fileOf = (format: Format, exported: readonly ExportedEvent[]): string =>
  format === 'csv' ? CSV_HEAD + exported.map(csvLine).join('') : exported.map(ndjsonLine).join('');

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'gatehouse-export-'))));
afterAll(() => rmSync(folder, { recursive: true }));

async function verified(file: string | Buffer, proof: string, by: Trust = trust): Promise<Verified> {
  const path = join(folder, 'export');
  writeFileSync(path, file);
  writeFileSync(`${path}.proof`, proof);
  return verifyExport({ file: path, proof: `${path}.proof`, trust: by });
}

let pages = 0;

/** What the program of the page says of the same, or why it refuses. */
async function saidByPage(file: string, proof: string): Promise<string> {
  const path = join(folder, `page-${(pages += 1)}`);
  writeFileSync(path, file);
  writeFileSync(`${path}.proof`, proof);
  writeFileSync(`${path}.keys`, JSON.stringify({ object: 'list', data: [{ public_key: publicKey.toString('base64') }] }));
  return run(process.execPath, [STANDALONE, path, `${path}.keys`]).then(
    ({ stdout }) => stdout.trim(),
    ({ stderr }: { readonly stderr: string }) => /^(?:Syntax)?Error: .*$/m.exec(stderr)![0],
  );
}

const trail = new ExportedTrail(events);
const all = events.map(({ leaf_index }) => leaf_index);
const some = [0, 5, 17, 18, 255, 256, 299];
const chosen = some.map((leaf) => events[leaf]!);

describe('an export', () => {
  it.each(FORMATS)('of all that arrived is complete, as %s', async (format) => {
    const proof = await trail.proof(all, await trail.checkpoint());
    expect(await verified(fileOf(format, events), proof)).toMatchObject({
      events: SIZE,
      leaves: { first: 0, last: 299 },
      isComplete: true,
      checkpoint: { size: SIZE },
    });
    expect(await saidByPage(fileOf(format, events), proof)).toMatch(
      /^300 events are as they arrived, by the checkpoint of 300 events .*; nothing that arrived between the first and the last is missing\.$/,
    );
    // Of a part of what arrived as well.
    const part = all.slice(20, 40);
    const ofPart = fileOf(format, events.slice(20, 40));
    expect(await verified(ofPart, await trail.proof(part, await trail.checkpoint(290)))).toMatchObject({
      events: 20,
      leaves: { first: 20, last: 39 },
      isComplete: true,
    });
  });

  it.each(FORMATS)('of some events is genuine, and does not say that it is complete, as %s', async (format) => {
    const proof = await trail.proof(some, await trail.checkpoint());
    expect(await verified(fileOf(format, chosen), proof)).toMatchObject({ events: 7, leaves: { first: 0, last: 299 }, isComplete: false });
    expect(await saidByPage(fileOf(format, chosen), proof)).toMatch(/^7 events are as they arrived.*; others may have been left out\.$/);
    expect(await verified(fileOf(format, []), await trail.proof([], await trail.checkpoint()))).toMatchObject({ events: 0, leaves: null, isComplete: false });
    const none = new ExportedTrail([]);
    expect(await verified(fileOf(format, []), await none.proof([], await none.checkpoint()))).toMatchObject({ events: 0, checkpoint: { size: 0 } });
  });

  /** Everything that one event says, one at a time. */
  const alterations: readonly ((event: ExportedEvent) => ExportedEvent)[] = [
    (event) => ({ ...event, id: `${event.id}0` }),
    (event) => ({ ...event, organization_id: 'org_other' }),
    (event) => ({ ...event, received_at: '2026-11-22T06:10:00.000Z' }),
    (event) => ({ ...event, occurred_at: '2026-11-22T06:10:00.000Z' }),
    (event) => ({ ...event, action: `${event.action}.` }),
    (event) => ({ ...event, version: event.version === null ? 0 : null }),
    (event) => ({ ...event, actor: { ...event.actor, id: 'another' } }),
    (event) => ({ ...event, actor: { ...event.actor, type: 'another' } }),
    (event) => ({ ...event, actor: { ...event.actor, name: event.actor.name === null ? '' : null } }),
    (event) => ({ ...event, actor: { ...event.actor, metadata: {} } }),
    (event) => ({ ...event, targets: [...event.targets, { id: 'a', type: 'b', name: null, metadata: {} }] }),
    (event) => ({ ...event, context: { ...event.context, location: '127.0.0.1' } }),
    (event) => ({ ...event, context: { ...event.context, user_agent: event.context.user_agent === null ? '' : null } }),
    (event) => ({ ...event, metadata: { added: true } }),
    (event) => ({ ...event, leaf_index: event.leaf_index + 1 }),
    (event) => ({ ...event, salt: event.salt.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')) }),
  ];

  it.each(FORMATS)('in which one event is altered, removed, doubled, or put elsewhere is not genuine, as %s', async (format) => {
    const proof = await trail.proof(some, await trail.checkpoint());
    const spoiled = [
      ...alterations.map((altered, at) => chosen.with(at % 7, altered(chosen[at % 7]!))),
      ...chosen.map((_, at) => chosen.toSpliced(at, 1)),
      chosen.toSpliced(2, 0, chosen[2]!),
      chosen.with(1, chosen[2]!).with(2, chosen[1]!),
      chosen.with(1, { ...chosen[2]!, leaf_index: 5 }).with(2, { ...chosen[1]!, leaf_index: 17 }),
      [...chosen, { ...chosen[0]!, leaf_index: 300 }],
      [...chosen.slice(0, -1), events[298]!],
    ];
    for (const [at, wrong] of spoiled.entries()) {
      const outcome = await verified(fileOf(format, wrong), proof).catch((error: unknown) => error);
      expect([at, outcome]).toEqual([at, expect.any(NotGenuine)]);
    }
    const onPage = await Promise.all(
      [spoiled[2]!, spoiled[14]!, spoiled[16]!, spoiled[24]!, spoiled[25]!].map(async (wrong) => saidByPage(fileOf(format, wrong), proof)),
    );
    expect(onPage).toEqual(Array(5).fill(expect.stringMatching(/^Error: (?:An event was altered|audit_event_\w+ is not where|The proof has too few)/)));
  });

  it('has the proof that was made for it, whole', async () => {
    const file = fileOf('csv', chosen);
    const checkpoint = await trail.checkpoint();
    const proof = await trail.proof(some, checkpoint);
    const lines = proof.split('\n');
    const begin = lines.findLastIndex((line) => line === '') === lines.length - 1 ? lines.slice(0, -1).findLastIndex((line) => line === '') + 1 : 0;
    const spoiled = [
      '',
      proof.slice(0, 10),
      proof.slice(0, -1),
      `${proof}${lines.at(-2)}\n`,
      `${proof}more`,
      lines.toSpliced(begin, 1).join('\n'),
      lines.with(begin, lines[begin + 1]!).join('\n'),
      lines.with(begin, 'AAAA').join('\n'),
      lines.with(begin, lines[begin]!.toLowerCase()).join('\n'),
      proof.replace('@v1', '@v2'),
      proof.replace(ORGANIZATION, 'org_other'),
      await trail.proof(some.slice(1), checkpoint),
    ];
    for (const [at, wrong] of spoiled.entries())
      expect([at, await verified(file, wrong).catch((error: unknown) => error)]).toEqual([at, expect.any(NotGenuine)]);
    expect(await saidByPage(file, spoiled[3]!)).toBe('Error: The proof goes on behind its end.');
    expect(await saidByPage(file, spoiled[4]!)).toBe('Error: The proof ends within a line.');
    const unknown = await trail.proof(some, await trail.checkpoint(SIZE, generateKeyPairSync('ed25519').privateKey));
    expect(await saidByPage(file, unknown)).toBe('Error: None of these keys signed the checkpoint.');
  });

  it('is believed by a key, or by a checkpoint that was kept and what lies between the two', async () => {
    const file = fileOf('csv', chosen);
    const [checkpoint, early] = [await trail.checkpoint(), await trail.checkpoint(100)];
    const proof = await trail.proof(some, checkpoint);
    const other = generateKeyPairSync('ed25519').privateKey;
    const consistency = await trail.consistency(100, SIZE);
    const believed: readonly Trust[] = [
      { kept: { note: checkpoint } },
      { kept: { note: early, consistency } },
      { ...trust, kept: { note: early, consistency } },
      { ...trust, kept: { note: await new ExportedTrail([]).checkpoint() } },
    ];
    for (const by of believed) expect(await verified(file, proof, by)).toMatchObject({ events: 7 });
    const older = fileOf('csv', chosen.slice(0, 2));
    expect(await verified(older, await trail.proof(some.slice(0, 2), early), { kept: { note: checkpoint, consistency } })).toMatchObject({ events: 2 });

    const rewritten = new ExportedTrail(events.with(50, { ...events[50]!, occurred_at: '2020-01-01T00:00:00.000Z' }));
    const forged = await rewritten.proof(some, await rewritten.checkpoint());
    // Whoever has the signing key is caught by what was kept outside alone.
    expect(await verified(file, forged)).toMatchObject({ events: 7 });
    const refused: readonly (readonly [string, Trust])[] = [
      [proof, { publicKeys: [] }],
      [proof, { publicKeys: [rawPublicKey(createPublicKey(other))] }],
      [await trail.proof(some, await trail.checkpoint(SIZE, other)), trust],
      [proof, { kept: { note: early } }],
      [proof, { kept: { note: 'none' } }],
      [proof, { kept: { note: early, consistency: consistency.slice(1) } }],
      [proof, { ...trust, kept: { note: await trail.checkpoint(100, other), consistency } }],
      [proof, { kept: { note: early.replaceAll(ORGANIZATION, 'org_other'), consistency } }],
      [forged, { kept: { note: checkpoint } }],
      [forged, { kept: { note: early, consistency } }],
      [forged, { kept: { note: early, consistency: await rewritten.consistency(100, SIZE) } }],
    ];
    for (const [at, [wrong, by]] of refused.entries())
      expect([at, await verified(file, wrong, by).catch((error: unknown) => error)]).toEqual([at, expect.any(NotGenuine)]);
    await expect(verified(file, proof, { kept: { note: early } })).rejects.toThrow('from 100 to 300');
  });
});

describe('the file of an export', () => {
  const readAll = (reader: EventReader, text: string, cuts: readonly number[] = []): readonly ExportedEvent[] => {
    const places = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((one, other) => one - other), text.length];
    return [...places.slice(1).flatMap((to, at) => [...reader.read(text.slice(places[at], to))]), ...reader.end()];
  };

  it('says what was written, wherever its pieces end', () => {
    const text = fc.oneof(fc.constantFrom(...AWKWARD), fc.string({ unit: 'grapheme' }));
    const name = fc.option(text);
    const metadata = fc.dictionary(
      fc.stringMatching(/^[a-zA-Z0-9_-]{1,8}$/),
      fc.oneof(
        text,
        fc.boolean(),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
      ),
      { maxKeys: 3 },
    );
    const party = fc.record({ id: text, type: text, name, metadata }, { noNullPrototype: true });
    const event = fc.record(
      {
        ...{ id: text, organization_id: text, received_at: text, occurred_at: text, action: text, version: fc.option(fc.maxSafeInteger()), actor: party },
        ...{ targets: fc.array(party, { maxLength: 2 }), context: fc.record({ location: text, user_agent: name }, { noNullPrototype: true }), metadata },
        ...{ leaf_index: fc.maxSafeNat(), salt: fc.constantFrom('', '00ff', '-'.repeat(0)) },
      },
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 4 }), fc.array(fc.nat(), { maxLength: 5 }), (written, cuts) => {
        // Minus zero is zero in JSON.
        const expected = JSON.parse(JSON.stringify(written)) as unknown;
        expect(readAll(new CsvReader(), fileOf('csv', written), cuts)).toEqual(expected);
        expect(readAll(new NdjsonReader(), fileOf('ndjson', written), cuts)).toEqual(expected);
      }),
      { seed: seedOf('export files'), numRuns: 60 },
    );
  });

  it('defuses formulas, and tells nothing from an empty text', () => {
    const line = csvLine({
      ...eventAt(1),
      id: '=1+1',
      action: "'a",
      actor: { id: '@a', type: '-', name: null, metadata: {} },
      context: { location: '', user_agent: null },
      targets: [],
    });
    expect(line).toMatch(/^'=1\+1,org_/);
    expect(line).toContain(",''a,1,'-,'@a,,{},[],\"\",,");
    expect(line).toMatch(/\r\n$/);
  });

  it('may have passed through another system: other line ends, a mark at its beginning', async () => {
    const proof = await trail.proof([1], await trail.checkpoint());
    const file = fileOf('csv', [events[1]!]);
    const passed = [`\ufeff${file.replaceAll('\r\n', '\n')}`, file.slice(0, -2), fileOf('ndjson', [events[1]!]).slice(0, -1)];
    for (const each of passed) {
      expect(await verified(each, proof)).toMatchObject({ events: 1 });
      expect(await saidByPage(each, proof)).toMatch(/^1 events are as they arrived/);
    }
  });

  it('is refused with anything in it that somebody would read and nobody has recorded', async () => {
    const proof = await trail.proof(some, await trail.checkpoint());
    const [csv, ndjson] = [fileOf('csv', chosen), fileOf('ndjson', chosen)];
    const forged = { ...chosen[6]!, action: 'forged' };
    // The spreadsheet computes the first, and hides what was before the second.
    const [armed, hidden] = [csv.replace("'=1+1", '=1+1'), csv.replace(',document.', ",'document.")];
    const spoiled = [
      `${csv}${csvLine(forged).slice(0, -2)}`,
      `${csv}${csvLine(forged).slice(0, -2)},`,
      armed,
      hidden,
      csv.replace(/,17,([0-9a-f]{32})/, ',0x11,$1'),
      csv.replace(/,17,([0-9a-f]{32})/, ',17,$1zz'),
      `${ndjson}${ndjsonLine(forged).slice(0, -1)}`,
      `${ndjson}forged`,
      ndjson.replace('"leaf_index":17', '"leaf_index":"17"'),
      ndjson.replace(/"salt":"([0-9a-f]*)"/, '"salt":"$1zz"'),
    ];
    expect([csv, ndjson].filter((as) => spoiled.includes(as))).toEqual([]);
    for (const [at, wrong] of spoiled.entries())
      expect([at, await verified(wrong, proof).catch((error: unknown) => error)]).toEqual([at, expect.any(NotGenuine)]);
    expect(await Promise.all(spoiled.map((wrong) => saidByPage(wrong, proof)))).toEqual(spoiled.map(() => expect.stringMatching(/^(?:Syntax)?Error: /)));
  });

  it('is refused at the line where it is none', async () => {
    const [first, second] = [csvLine(eventAt(9)), csvLine(eventAt(3))];
    const begin = CSV_HEAD + first;
    const lineOf = begin.split('\n').length;
    for (const wrong of [
      '',
      'id\r\n',
      begin + second.replace(',', ''),
      `${begin}"a"b`,
      `${begin}a"b`,
      `${begin}a\rb`,
      `${begin}"a`,
      `${begin}\r\n`,
      `${begin}${second.replace('[]', '[ ]')}`,
    ]) {
      expect(() => readAll(new CsvReader(), wrong)).toThrow(NotAnExport);
    }
    expect(() => readAll(new CsvReader(), begin + second.replace(',', ''))).toThrow(`Line ${lineOf}: there are 15 cells`);
    expect(() => readAll(new CsvReader(), `${CSV_HEAD}"${'a'.repeat(1_100_000)}`)).toThrow('a cell has no end');
    const line = ndjsonLine(eventAt(3));
    for (const wrong of [
      '\n',
      '{}\n',
      'no\n',
      line.replace('{', '{ '),
      line.replace('"action"', '"action":"a","action"'),
      line.replace('{', '{"a":1,'),
      line.replace(/"salt":"/, '"salt":"x'),
      '{"a":"\\ud800"}\n',
    ]) {
      expect(() => readAll(new NdjsonReader(), line + wrong)).toThrow(/^Line 2: /);
    }
    const proof = await trail.proof([1], await trail.checkpoint());
    await expect(verified(Buffer.from([0x7b, 0xff]), proof)).rejects.toThrow(NotGenuine);
    await expect(verified(fileOf('ndjson', [{ ...events[1]!, metadata: { text: 'x' } }]).replace('"x"', '"\\ud800"'), proof)).rejects.toThrow(NotGenuine);
  });
});

describe('the page about exports', () => {
  it('shows the program, in about a hundred lines', () => {
    const code = readFileSync(STANDALONE, 'utf8');
    expect(readFileSync(join(ROOT, 'docs/verifying-exports.md'), 'utf8')).toContain(`\`\`\`js\n${code}\`\`\``);
    expect(code.split('\n').length).toBeLessThanOrEqual(110);
  });
});
