// Checks an export of an audit trail against its checkpoint, without a server and without a dependency: Node 20 or newer runs it.
//   node verify-audit-export.mjs EXPORT KEYS      EXPORT.proof lies beside the export; KEYS is what GET /audit_logs/keys answered when you saved it.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';

const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
const fail = (reason) => {
  throw new Error(reason);
};
const exact = (text, value, reason) => (text === value ? value : fail(reason));

/** RFC 8785. */
function canonical(value) {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  return `{${Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)
    .join(',')}}`;
}

const AS_WRITTEN = 'Something is not written as it was.';

// A cell is null where nothing stands between the commas, and an empty text where quotes do. One ' before it keeps spreadsheets from reading a formula.
function* csvRows(text) {
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy;
  let row = [];
  while (cell.lastIndex < text.length) {
    const [, quoted, plain, end] = cell.exec(text) ?? fail('The file is no CSV.');
    const written = quoted === undefined ? plain || null : quoted.replaceAll('""', '"');
    const value = written?.startsWith("'") ? written.slice(1) : written;
    row.push(value);
    exact(written, /^[=+\-@\t\r']/.test(value ?? '') ? `'${value}` : value, AS_WRITTEN);
    if (end === ',') continue;
    yield row;
    row = [];
  }
  if (row.length > 0) fail('The file ends within a row.');
}

const COLUMNS =
  'id,organization_id,received_at,occurred_at,action,version,actor_type,actor_id,actor_name,actor_metadata,targets,location,user_agent,metadata,leaf_index,salt';
const json = (text) => JSON.parse(exact(text, canonical(JSON.parse(text)), AS_WRITTEN));
const number = (text) => Number(exact(text, String(Number(text)), AS_WRITTEN));

function* eventsOf(text) {
  if (text === '') return;
  if (text.startsWith('{')) return void (yield* text.replace(/\n$/, '').split('\n').map(json));
  const rows = csvRows(text);
  exact(rows.next().value?.join(), COLUMNS, `The columns have to be ${COLUMNS}.`);
  for (const row of rows) {
    if (row.length !== 16) fail('A row has not 16 cells.');
    const [id, organization_id, received_at, occurred_at, action, version, actor_type, actor_id, actor_name, actor_metadata, ...others] = row;
    const [targets, location, user_agent, metadata, leaf_index, salt] = others;
    const actor = { id: actor_id, type: actor_type, name: actor_name, metadata: json(actor_metadata) };
    const content = { action, occurred_at, version: version === null ? null : number(version), actor, targets: json(targets) };
    const context = { location, user_agent };
    yield { id, organization_id, received_at, ...content, context, metadata: json(metadata), leaf_index: number(leaf_index), salt };
  }
}

/** The checkpoint (https://c2sp.org/tlog-checkpoint) that a key of the environment signed. */
function checkpointOf(note, keys) {
  const [text, signatures] = [note.slice(0, note.indexOf('\n\n') + 1), note.slice(note.indexOf('\n\n') + 2)];
  const [origin, size, root, time] = text.split('\n');
  const isSigned = keys.some((key) => {
    const id = sha256(`${origin}\n`, Buffer.of(1), key).subarray(0, 4);
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') }, format: 'jwk' });
    return signatures.split('\n').some((line) => {
      const bytes = Buffer.from(line.split(' ')[2] ?? '', 'base64');
      return line.startsWith(`— ${origin} `) && bytes.subarray(0, 4).equals(id) && verify(null, Buffer.from(text), publicKey, bytes.subarray(4));
    });
  });
  if (!isSigned) fail('None of these keys signed the checkpoint.');
  const [, environment, organization_id] = origin.split('/');
  return { environment, organization_id, size: Number(size), root: Buffer.from(root, 'base64'), time };
}

/** The root (RFC 9162) of the leaves from `from` up to `to`: by the events that are among them, else by the next hash of the proof. The next of both stand last. */
function rootOf(from, to, events, hashes) {
  if (!(events.at(-1)?.leaf_index < to)) return Buffer.from(hashes.pop() ?? fail('The proof has too few hashes.'), 'base64');
  if (to - from === 1) return events.pop().leaf;
  let split = from + 1;
  while ((split - from) * 2 < to - from) split = from + (split - from) * 2;
  const left = rootOf(from, split, events, hashes);
  return sha256(Buffer.of(1), left, rootOf(split, to, events, hashes));
}

const [file, keyFile] = process.argv.slice(2);
const proof = /^gatehouse\/audit-proof@v1\n(.*?\n\n.*?\n)\n(.*)$/s.exec(readFileSync(`${file}.proof`, 'utf8')) ?? fail('The proof is none.');
const utf8 = new TextDecoder('utf-8', { fatal: true });
const keys = JSON.parse(readFileSync(keyFile, 'utf8')).data.map(({ public_key }) => Buffer.from(public_key, 'base64'));
const { environment, organization_id, size, root, time } = checkpointOf(proof[1], keys);
const events = [];
for (const { id, organization_id: organization, received_at, leaf_index, salt, ...content } of eventsOf(utf8.decode(readFileSync(file)))) {
  exact(organization, organization_id, `${id} is of another organization.`);
  exact(salt, Buffer.from(salt, 'hex').toString('hex'), AS_WRITTEN);
  if (!(Number.isInteger(leaf_index) && leaf_index > (events.at(-1)?.leaf_index ?? -1) && leaf_index < size)) fail(`${id} is not where it was.`);
  const commitment = sha256(Buffer.from(salt, 'hex'), canonical(content)).toString('base64url');
  events.push({ leaf_index, leaf: sha256(Buffer.of(0), canonical({ v: 1, environment, organization_id, id, received_at, commitment })) });
}
const [first, last, count] = [events[0]?.leaf_index, events.at(-1)?.leaf_index, events.length];
const hashes = proof[2].split('\n').reverse();
exact(hashes.shift(), '', 'The proof ends within a line.');
if (size > 0 && !rootOf(0, size, events.reverse(), hashes).equals(root)) fail('An event was altered, removed, added or put elsewhere.');
if (hashes.length > 0) fail('The proof goes on behind its end.');
const extent = count > 0 && last - first + 1 === count ? 'nothing that arrived between the first and the last is missing' : 'others may have been left out';
console.log(`${count} events are as they arrived, by the checkpoint of ${size} events at ${time}; ${extent}.`);
