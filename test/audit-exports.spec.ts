import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { givenProgram } from '#libs/testing/src/given-program';
import { gatehouse, ROOT } from '#libs/testing/src/process';
import { givenSuite } from '#libs/testing/src/suite';

/** What others read in an export. */
interface Read {
  readonly csv: readonly Readonly<Record<string, string>>[];
  readonly duckdb: readonly Readonly<Record<string, string>>[];
  readonly columns: readonly string[];
  readonly targets: readonly number[];
}

const TIMEOUT_MS = 60_000;
const version = /^duckdb==(\S+)$/m.exec(readFileSync(join(ROOT, 'test/audit-exports/requirements.txt'), 'utf8'))![1]!;
const python = givenProgram(`python-duckdb-${version}`);

const NAMES = ['Ada', '=1+1', '+1', '-1', '@a', '\tt', '\rr', "'quoted'", '"double", and a comma', 'two\nlines\r\nthree', '𝒳 Zoë', ' ', 'null', ''];

describe('an export of an audit trail', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-exports-'));
  const file = join(folder, 'events.csv');
  afterAll(() => rmSync(folder, { recursive: true }));

  it(
    "is read by Python's csv and by DuckDB as it was recorded, and verified by the command line, which finds what is altered",
    async () => {
      const suite = await givenSuite();
      const { id: organization_id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
      const occurred_at = new Date().toISOString();
      for (const [index, name] of NAMES.entries()) {
        const target = { id: name || 'none', type: 'person', name };
        const actor = { id: String(index), type: 'user', name, metadata: { name } };
        const event = { action: `name.${index}`, occurred_at, actor, targets: [target, target], context: { location: name }, metadata: { name } };
        await suite.post('/audit_logs/events', { organization_id, event }).expect(200);
      }
      const { id } = await suite.post('/audit_logs/exports', { organization_id, range_start: occurred_at, range_end: occurred_at }).expect(201);
      const made = await suite.eventually(`/audit_logs/exports/${id}`, { state: 'ready' });
      const addressOf = (url: string): string => (url.startsWith('http://localhost:3000/') ? suite.url + url.slice('http://localhost:3000'.length) : url);
      for (const [url, path] of [
        [made.url, file],
        [made.proof_url, `${file}.proof`],
      ])
        writeFileSync(path, Buffer.from(await (await fetch(addressOf(url))).arrayBuffer()));
      const keys = await suite.get(`/audit_logs/keys?client_id=${await suite.clientIdOf(suite)}`).expect(200);
      writeFileSync(join(folder, 'keys.json'), JSON.stringify(keys));
      const verify = () => gatehouse({}, 'audit', 'verify', file, '--keys', join(folder, 'keys.json'));
      expect(await verify()).toMatchObject({ code: 0, stdout: expect.stringContaining(`${NAMES.length} events`) });

      if (python !== null) {
        const { stdout } = await promisify(execFile)(python, [join(ROOT, 'test/audit-exports/read-csv.py'), file], { timeout: TIMEOUT_MS });
        const read = JSON.parse(stdout) as Read;
        expect(read.csv).toEqual(read.duckdb);
        expect(read.columns.join()).toBe(
          'id,organization_id,received_at,occurred_at,action,version,actor_type,actor_id,actor_name,actor_metadata,targets,location,user_agent,metadata,leaf_index,salt',
        );
        // What a spreadsheet would compute has a ' before it.
        const shown = (name: string): string => (/^[=+\-@\t\r']/.test(name) ? `'${name}` : name);
        const cells = read.csv.map(({ action, actor_name, location, metadata, targets, leaf_index }) => ({
          action,
          actor_name,
          location,
          metadata,
          targets,
          leaf_index,
        }));
        expect(cells).toEqual(
          NAMES.map((name, index) => ({
            action: `name.${index}`,
            actor_name: shown(name),
            location: shown(name),
            metadata: JSON.stringify({ name }),
            targets: JSON.stringify([0, 1].map(() => ({ id: name || 'none', metadata: {}, name: name || null, type: 'person' }))),
            leaf_index: String(index),
          })),
        );
        expect(read.targets).toEqual(NAMES.map(() => 2));
      }

      writeFileSync(file, readFileSync(file, 'utf8').replace('name.3', 'name.4'));
      expect(await verify()).toMatchObject({ code: 1, stderr: expect.stringContaining('NOT verified') });
    },
    TIMEOUT_MS,
  );
});
