import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { originOf, parseCheckpoint, rawPublicKey, signedCheckpoint, verifierKey, verifyCheckpoint, type Checkpoint } from './checkpoint.ts';
import { leafHash } from './merkle-hash.ts';
import { consistencySpans, inclusionSpans, isConsistent, rootByInclusion } from './proofs.ts';
import { rootOf, rootsOf } from './spans.ts';
import { Edge, TreeNodes, type Tiles } from './tiles.ts';

/**
 * What `golang.org/x/mod` v0.22.0, of the authors of the format, makes of a thousand entries `event 0`, `event 1`, …: `sumdb/tlog` the tree and its proofs, `sumdb/note` the
 * signed note, with the key of the bytes 0 to 31.
 */
const GO = {
  origin: 'gatehouse/environment_01J0000000000000000000000E/org_01J0000000000000000000000A',
  verifierKey: 'gatehouse/environment_01J0000000000000000000000E/org_01J0000000000000000000000A+76b7a664+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4',
  checkpoint: `gatehouse/environment_01J0000000000000000000000E/org_01J0000000000000000000000A
1000
zzutuPVe00TYre4V0ypbVRktq+Kiw9Chfh5LGuaOApE=
time 2026-11-23T06:10:00.000Z

— gatehouse/environment_01J0000000000000000000000E/org_01J0000000000000000000000A dremZDyTEqEXtN5P9cfUgvwQImUZlrUwZqRbg7KVCauSVGjeVkpkBEOpNVlrVDNA3IhXeEtgi0hHx+xlrgMWFpRfGgM=
`,
  inclusionOf777: [
    'lqUg/anN0pOzpPXGw8FGKmjSJHTK8SKT4ZFvtlS5+sk=',
    'C27MXi8vmmvPFf0DHy1hgJ6o/MLF9jjYA1v5Z6FxNMI=',
    'tYwwIu2eIomAZpPrjGd/W0BO2knJxFASsZR3X9hlG04=',
    'fG/TVOLukT2iUaAarWt3uWYvGVe+6aAciRCCZjlyulY=',
    'x3R946M2utdBX5h8Wd+s/K8I6yiugKR0ByxkpUJlBaQ=',
    'xK1tElPPC1HMU6qxqF4Z5ys+o36Rv9e5c3LgtjpRGMA=',
    '7+QA5wASqP96rf0fSu1GoGEYrEHlHTu9faSmemUnM9s=',
    'sS55KRr02Au/zhvoVCNHUpUznOzUQD4PO6fRXQzVRzI=',
    'cHYqUJz0SAUfnAN+9+6+dq2lS13DIDrC32o7ZoicJ6Q=',
    'CWOxhB+wH8oSGDH0cKltbHmMjXVpbSD0efKdKsjWfL4=',
  ],
  rootAt300: 'G6q9MvIh86seCVhu76uGtC/csMNY/P+UeOoWkNv8tKc=',
  consistencyFrom300: [
    '6WKRAzQpJvyqb60Q7VwmFi8uvBZifuxER73O7+ccGLs=',
    'VCkmmQZTLatGmumfDwWQH3esj86Ha8FoXtsC/CUANxw=',
    'a4M9IRfQWaak+d6i+iXPn3aX70ejbc/6LZMFh7J8GlI=',
    'MwK859ADPD8pkhkjnVDvWPCEIagBA1Jx28p46DNLJAk=',
    '1+z+yVrsNm/thCw/yIgkXG9hCBimxkh0wwlfmBCNQXw=',
    'kaQv/b9gg6WHZUdlK9psKDQfGByk2ohtMdA0PdK/Xr8=',
    'tNM/hRztulWXyfoo7IG1utkc214p7TjDMs+wI4h+ZG8=',
    '1WpOHKSIeSyDfM1/qYXrqmfDXBe25wuAzTG+z62FGxc=',
    '5AUAlJyMndj1EsPJub0EYcn/sfuKWwy0JYNPh/liWE8=',
  ],
};

const privateKey = createPrivateKey({
  key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Uint8Array.from({ length: 32 }, (_, at) => at)]),
  format: 'der',
  type: 'pkcs8',
});
const publicOf = (key: KeyObject): Buffer => rawPublicKey(createPublicKey(key));
const publicKey = publicOf(privateKey);
const base64 = (hashes: readonly Buffer[]) => hashes.map((hash) => hash.toString('base64'));

const kept = new Map<string, Buffer>();
const tiles: Pick<Tiles, 'read'> = { read: (level, index) => Promise.resolve(kept.get(`${level}/${index}`)!) };
const edge = Edge.empty();
for (let at = 0; at < 1_000; at += 1) {
  for (const { level, index, hashes } of edge.append(leafHash(`event ${at}`))) kept.set(`${level}/${index}`, Buffer.concat(hashes));
}
const nodes = new TreeNodes(tiles, edge);

describe('tree and checkpoint', () => {
  it('are those of the reference implementation', async () => {
    const root = await rootOf({ from: 0, to: 1_000 }, nodes);
    expect(signedCheckpoint({ origin: GO.origin, size: 1_000, root, time: '2026-11-23T06:10:00.000Z' }, privateKey)).toBe(GO.checkpoint);
    expect(verifierKey(GO.origin, publicKey)).toBe(GO.verifierKey);
    const proof = await rootsOf(inclusionSpans(777, 1_000), nodes);
    expect(base64(proof)).toEqual(GO.inclusionOf777);
    expect(rootByInclusion(777, 1_000, { hash: leafHash('event 777'), proof })).toEqual(root);
    const older = { size: 300, root: await rootOf({ from: 0, to: 300 }, nodes) };
    expect(base64([older.root])).toEqual([GO.rootAt300]);
    const consistency = await rootsOf(consistencySpans(300, 1_000), nodes);
    expect(base64(consistency)).toEqual(GO.consistencyFrom300);
    expect(isConsistent(older, { size: 1_000, root }, consistency)).toBe(true);
  });
});

describe('a checkpoint', () => {
  const checkpoint: Checkpoint = { origin: originOf('environment_1', 'org_1'), size: 3, root: leafHash('a'), time: '2026-11-23T06:10:00.000Z' };
  const note = signedCheckpoint(checkpoint, privateKey);
  const other = generateKeyPairSync('ed25519').privateKey;
  const otherKey = publicOf(other);

  it('reads as what was signed, by whichever of the keys', () => {
    expect(checkpoint.origin).toBe('gatehouse/environment_1/org_1');
    expect(parseCheckpoint(note)).toEqual(checkpoint);
    expect(verifyCheckpoint(note, [otherKey, publicKey])).toEqual(checkpoint);
    expect(verifyCheckpoint(note, [otherKey])).toBeNull();
    expect(verifyCheckpoint(note, [])).toBeNull();
    const empty = { ...checkpoint, size: 0 };
    expect(verifyCheckpoint(signedCheckpoint(empty, privateKey), [publicKey])).toEqual(empty);
  });

  it('may have the signatures of others as well, and each of a known key has to hold', () => {
    const witnessed = `${note}— witness.test/one AAAAAAAA\n`;
    expect(verifyCheckpoint(witnessed, [publicKey])).toEqual(checkpoint);
    const second = signedCheckpoint(checkpoint, other).split('\n').at(-2)!;
    expect(verifyCheckpoint(`${note}${second}\n`, [publicKey, otherKey])).toEqual(checkpoint);
    const wrong = signedCheckpoint({ ...checkpoint, size: 4 }, other)
      .split('\n')
      .at(-2)!;
    expect(verifyCheckpoint(`${note}${wrong}\n`, [publicKey])).toEqual(checkpoint);
    expect(verifyCheckpoint(`${note}${wrong}\n`, [publicKey, otherKey])).toBeNull();
  });

  it('is none where a word of it is another', () => {
    for (const [was, is] of [
      ['environment_1', 'environment_2'],
      ['org_1', 'org_2'],
      ['\n3\n', '\n4\n'],
      [checkpoint.root.toString('base64'), leafHash('b').toString('base64')],
      ['06:10:00', '06:09:00'],
    ] as const) {
      const forged = note.replaceAll(was, is);
      expect(parseCheckpoint(forged)).not.toBeNull();
      expect(verifyCheckpoint(forged, [publicKey])).toBeNull();
    }
    // Signed in the name of another trail.
    const [name, id] = verifierKey('gatehouse/environment_1/org_2', publicKey).split('+');
    const signature = Buffer.from(note.split(' ').at(-1)!, 'base64').subarray(4);
    const line = `— ${name} ${Buffer.concat([Buffer.from(id!, 'hex'), signature]).toString('base64')}\n`;
    expect(verifyCheckpoint(note.replace(/— .*\n/, line), [publicKey])).toBeNull();
  });

  it('is none where the note is not exactly one', () => {
    const root = checkpoint.root.toString('base64');
    const spoiled = [
      '',
      '\n\n',
      note.slice(0, -1),
      note.slice(1).replace(/^[^\n]*/, ''),
      note.replace('\n\n', '\n'),
      note.replace('\n3\n', '\n03\n'),
      note.replace('\n3\n', '\n-3\n'),
      note.replace('\n3\n', '\n9007199254740993\n'),
      note.replace(root, root.slice(0, -1)),
      note.replace(root, `${root.slice(0, -2)}B=`),
      note.replace(root, Buffer.alloc(31).toString('base64')),
      note.replace('time ', 'at '),
      note.replace(/time .*/, 'time soon'),
      note.replace(/\ntime .*/, ''),
      note.replace(/(time .*)/, '$1\nand more'),
      note.replace('\n3', '\r\n3'),
      note.replace(/— \S+ /, '- key '),
      note.replace(/— (\S+) /, '— $1+ '),
      note.replace(/(— \S+ ).*/, '$1AAAA'),
      `${note}\n`,
      `${note}${'— a AAAAAAAA\n'.repeat(10_000)}`,
    ];
    for (const text of spoiled) expect([text, parseCheckpoint(text), verifyCheckpoint(text, [publicKey])]).toEqual([text, null, null]);
  });
});
