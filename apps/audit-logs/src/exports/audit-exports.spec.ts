import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ForwardedClock } from '#libs/testing/src/forwarded-clock';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { NotGenuine } from '../export-format/export-check.ts';
import { verifyExport } from '../export-format/verify-export.ts';

const EXPORTS = '/audit_logs/exports';
const DAY = 86_400_000;

describe('exports of audit trails', () => {
  let suite: GivenSuite;
  let publicKeys: readonly Buffer[];
  let names = 0;
  const clock = new ForwardedClock();
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-exports-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  beforeAll(async () => {
    suite = await givenSuite({ clock, variables: { SWEEP_INTERVAL: '1s' } });
    const { data } = await suite.get(`/audit_logs/keys?client_id=${await suite.clientIdOf(suite)}`).expect(200);
    publicKeys = data.map(({ public_key }: { public_key: string }) => Buffer.from(public_key, 'base64'));
  });

  const organization = async (caller: Caller = suite): Promise<string> => (await caller.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const ago = (days: number): string => new Date(clock.now() - days * DAY).toISOString();
  /** Nobody has heard of anybody for that long. */
  const later = async (milliseconds: number): Promise<void> => {
    clock.forward(milliseconds);
    await eventually(() => suite.get('/organizations?limit=1').expect(200));
  };
  const record = async (organization_id: string, fields: object = {}): Promise<void> => {
    const event = {
      action: 'document.shared',
      occurred_at: ago(1),
      actor: { id: 'user_42', type: 'user', name: 'Ada Lovelace' },
      targets: [{ id: `document_${names++}`, type: 'document' }],
      context: { location: '192.0.2.1' },
      ...fields,
    };
    await suite.post('/audit_logs/events', { organization_id, event }).expect(200);
  };
  const ask = (organization_id: string, more: object = {}, caller: Caller = suite) =>
    caller.post(EXPORTS, { organization_id, range_start: ago(30), range_end: ago(0), ...more });
  const over = (id: string) =>
    eventually(async () => {
      const made = await suite.get(`${EXPORTS}/${id}`).expect(200);
      expect(made.state).not.toBe('pending');
      return made;
    }, 30_000);
  const ready = async (organization_id: string, more: object = {}) => {
    const made = await over((await ask(organization_id, more).expect(201)).id);
    expect(made).toMatchObject({ state: 'ready', error: null });
    return made;
  };
  const local = (url: string): string => suite.url + url.slice(new URL(url).origin.length);
  const download = async (url: string): Promise<string> => {
    const response = await fetch(local(url));
    expect(response.status).toBe(200);
    return response.text();
  };
  const exported = async (organization_id: string, more: object = {}) => {
    const made = await ready(organization_id, more);
    const file = join(folder, made.id);
    const text = await download(made.url);
    writeFileSync(file, text);
    writeFileSync(`${file}.proof`, await download(made.proof_url));
    return { made, file, text, verified: await verifyExport({ file, proof: `${file}.proof`, trust: { publicKeys } }) };
  };
  const lines = (text: string) =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { readonly [name: string]: unknown; readonly action: string; readonly leaf_index: number });

  it('hold what was recorded, in the order of arrival, and are verified without the server', async () => {
    const acme = await organization();
    await record(acme, { occurred_at: ago(2), metadata: { note: '=1+1\r\n"quoted"' } });
    for (let index = 0; index < 300; index++) await record(acme, { occurred_at: ago(3 - index / 300), actor: { id: 'a', type: 'user', name: '@Zoë 𝒳\n' } });
    const { made, verified, text } = await exported(acme, { format: 'ndjson' });
    expect(made).toMatchObject({ object: 'audit_log_export', organization_id: acme, format: 'ndjson', id: expect.stringMatching(/^audit_log_export_/) });
    expect(verified).toMatchObject({ events: 301, isComplete: true, leaves: { first: 0, last: 300 } });
    const listed = (await suite.get(`/audit_logs/events?organization_id=${acme}&limit=100`).expect(200)).data as { object: string; leaf_index: number }[];
    const told = lines(text);
    for (const { object: _, ...event } of listed) expect(told[event.leaf_index]).toEqual({ ...event, salt: expect.stringMatching(/^[0-9a-f]{32}$/) });
  });

  it('say so where they were altered', async () => {
    const acme = await organization();
    for (let index = 0; index < 3; index++) await record(acme);
    const { file, text, verified } = await exported(acme);
    expect(verified).toMatchObject({ events: 3, isComplete: true });
    for (const altered of [text.replace('document.shared', 'document.hidden'), text.split('\r\n').toSpliced(2, 1).join('\r\n')]) {
      writeFileSync(file, altered);
      await expect(verifyExport({ file, proof: `${file}.proof`, trust: { publicKeys } })).rejects.toThrow(NotGenuine);
    }
  });

  it('have only what is in their range, matches one value of each filter, and was recorded before', async () => {
    const acme = await organization();
    const people = ['Ada', 'Bob', 'Cyd, or = not'];
    const recorded: { readonly action: string; readonly name: string; readonly id: string; readonly type: string }[] = [];
    for (let index = 0; index < 24; index++) {
      const event = { action: `action.${index % 2}`, name: people[index % 3]!, id: `user_${index % 4}`, type: `type_${index % 6}` };
      recorded.push(event);
      await record(acme, {
        action: event.action,
        occurred_at: ago(10 - index / 10),
        actor: { id: event.id, type: 'user', name: event.name },
        targets: [
          { id: 'first', type: 'every' },
          { id: 'second', type: event.type },
        ],
      });
    }
    const leavesOf = async (more: object) => lines((await exported(acme, { ...more, format: 'ndjson' })).text).map(({ leaf_index }) => leaf_index);
    const where = (isSo: (event: (typeof recorded)[number], index: number) => boolean) =>
      recorded.flatMap((event, index) => (isSo(event, index) ? [index] : []));
    const all = where(() => true);
    expect(await Promise.all([{}, { actions: [] }, { targets: ['every'] }, { actors: people }].map(leavesOf))).toEqual([all, all, all, all]);
    expect(await leavesOf({ actions: ['action.1', 'none'], actor_names: ['Bob'], actor_ids: ['user_1', 'user_3'], targets: ['type_1', 'type_5'] })).toEqual(
      where(
        ({ action, name, id, type }) => action === 'action.1' && name === 'Bob' && ['user_1', 'user_3'].includes(id) && ['type_1', 'type_5'].includes(type),
      ),
    );
    expect(await leavesOf({ actor_names: ['Ada'], actors: ['Cyd, or = not'] })).toEqual(where(({ name }) => name !== 'Bob'));
    expect(await leavesOf({ actions: ['action.1'], actor_ids: ['user_2'] })).toEqual([]);
    const [from, to] = await Promise.all(
      [5, 9].map(async (leaf) => (await suite.get(`/audit_logs/events?organization_id=${acme}&order=asc&limit=100`)).body.data[leaf].occurred_at),
    );
    expect(await leavesOf({ range_start: from, range_end: to })).toEqual([5, 6, 7, 8, 9]);
    const { verified } = await exported(acme, { actions: ['action.0'] });
    expect(verified).toMatchObject({ events: 12, isComplete: false });
    // What an address or a list could tell of people lies nowhere in clear.
    const facts = JSON.stringify(await suite.records('audit_log_export.created'));
    expect(people.filter((name) => facts.includes(name))).toEqual([]);
  });

  it('of an empty trail are empty, and verified all the same', async () => {
    for (const format of ['csv', 'ndjson']) {
      const { verified, text } = await exported(await organization(), { format, actor_names: ['Ada'] });
      expect(verified).toMatchObject({ events: 0, leaves: null, checkpoint: { size: 0 } });
      expect(text.split('\n')).toHaveLength(format === 'csv' ? 2 : 1);
    }
  });

  it.each<[string, object, number, object]>([
    ['a range that ends before it begins', { range_start: '2026-01-02', range_end: '2026-01-01' }, 400, {}],
    ['a range of 367 days', { range_start: ago(367), range_end: ago(0) }, 400, {}],
    ['a range of a century', { range_start: ago(36_525), range_end: ago(0) }, 400, {}],
    ['a range in the future', { range_start: ago(-1), range_end: ago(-2) }, 400, {}],
    ['a range of which nothing is kept', { range_start: '0001-01-01', range_end: '0001-02-01' }, 400, {}],
    ['no beginning', { range_start: undefined }, 422, { field: 'range_start', code: 'required' }],
    ['a beginning that is none', { range_start: 'yesterday' }, 422, { field: 'range_start', code: 'invalid_format' }],
    ['another format', { format: 'pdf' }, 422, { field: 'format' }],
    ['an action that is no text', { actions: [1] }, 422, { field: 'actions.0' }],
    ['101 names', { actor_names: Array.from({ length: 101 }, (_, index) => `n${index}`) }, 422, { field: 'actor_names', code: 'too_many' }],
    ['half a character', { actor_names: ['\ud800'] }, 422, { field: 'actor_names.0' }],
  ])('are refused for %s', async (_, wrong, status, error) => {
    const code = status === 400 ? 'invalid_audit_log_export_range_date' : 'invalid_request_parameters';
    const acme = await organization();
    await ask(acme, wrong).expect(status, { code, ...(status === 422 && { errors: [error] }) });
    expect((await suite.records('audit_log_export.created')).filter(({ data }) => JSON.stringify(data).includes(acme))).toEqual([]);
  });

  it('are of organizations of the same environment that live', async () => {
    const other = await suite.otherEnvironment();
    const foreign = await organization(other);
    for (const id of ['org_01J0000000000000000000000A', foreign, 'x']) await ask(id).expect(404, { code: 'entity_not_found', entity_id: id });
    const acme = await organization();
    await record(acme);
    const { id, url } = await ready(acme);
    await other.get(`${EXPORTS}/${id}`).expect(404, { entity_id: id });
    await suite.get(`${EXPORTS}/audit_log_export_01J0000000000000000000000A`).expect(404);
    await suite.delete(`/organizations/${acme}`).expect(202);
    await suite.get(`${EXPORTS}/${id}`).expect(404, { entity_id: id });
    expect((await fetch(local(url))).status).toBe(404);
    await eventually(async () =>
      expect((await suite.records('audit_log_export.expired')).filter(({ data }) => (data as { readonly id: string }).id === id)).toHaveLength(1),
    );
  });

  it('are downloaded in parts, as what they are, at addresses that cannot be made up and serve for ten minutes', async () => {
    const acme = await organization();
    await record(acme);
    const [one, other] = [await ready(acme), await ready(acme)];
    const whole = await fetch(local(one.url));
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${one.id}.csv"`,
      'cache-control': 'private, no-store',
      'x-content-type-options': 'nosniff',
    });
    const text = await whole.text();
    const part = await fetch(local(one.url), { headers: { Range: 'bytes=3-11' } });
    expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([206, `bytes 3-11/${Buffer.byteLength(text)}`, text.slice(3, 12)]);
    const bytes = Buffer.byteLength(text);
    const partOf = async (Range: string, more: Readonly<Record<string, string>> = {}) => {
      const answer = await fetch(local(one.url), { headers: { Range, ...more } });
      return [answer.status, answer.headers.get('content-range'), await answer.text()];
    };
    for (const behind of [`bytes=${bytes}-`, `bytes=${bytes}-${bytes + 1}`, 'bytes=999999999999999999999999-', 'bytes=-0']) {
      const [status, range, refused] = await partOf(behind);
      expect([behind, status, range, JSON.parse(String(refused))]).toEqual([
        behind,
        416,
        `bytes */${bytes}`,
        { code: 'range_not_satisfiable', message: expect.any(String) },
      ]);
    }
    expect(await partOf(`bytes=${bytes - 1}-`)).toEqual([206, `bytes ${bytes - 1}-${bytes - 1}/${bytes}`, text.slice(-1)]);
    expect(await partOf('bytes=-4')).toEqual([206, `bytes ${bytes - 4}-${bytes - 1}/${bytes}`, text.slice(-4)]);
    expect(await partOf('bytes=-99999999999999999999')).toEqual([206, `bytes 0-${bytes - 1}/${bytes}`, text]);
    for (const none of ['bytes=4-2', 'bytes=-', 'bytes=a-b', 'lines=1-2', 'bytes=0-1,3-4']) expect(await partOf(none)).toEqual([200, null, text]);
    const etag = whole.headers.get('etag')!;
    expect((await partOf('bytes=0-1', { 'If-Range': etag }))[0]).toBe(206);
    expect(await partOf('bytes=0-1', { 'If-Range': '"another"' })).toEqual([200, null, text]);
    const head = await fetch(local(one.url), { method: 'HEAD', headers: { Range: 'bytes=0-1' } });
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, String(Buffer.byteLength(text)), '']);
    const url = new URL(local(one.url));
    const changed = (change: (address: URL) => void): string => {
      const address = new URL(url);
      change(address);
      return address.href;
    };
    const until = Number(url.searchParams.get('until'));
    for (const address of [
      changed(({ searchParams }) => searchParams.delete('signature')),
      changed(({ searchParams }) => searchParams.set('signature', `${url.searchParams.get('signature')!.slice(0, -2)}AA`)),
      changed(({ searchParams }) => searchParams.append('signature', 'x')),
      changed(({ searchParams }) => searchParams.set('until', String(until + 1))),
      changed((each) => (each.pathname = each.pathname.replaceAll(one.id, other.id))),
      changed((each) => (each.pathname += '.proof')),
      changed((each) => (each.pathname = each.pathname.replace(/environment_\w+/, 'environment_01J0000000000000000000000A'))),
      changed((each) => (each.pathname = each.pathname.replace(/environment_\w+/, '..%2f..'))),
    ]) {
      const refused = await fetch(address);
      expect([refused.status, await refused.json()]).toEqual([403, { code: 'forbidden', message: expect.any(String) }]);
    }
    expect((await fetch(`${suite.url}/audit_log_exports/nowhere`)).status).toBe(404);
    await later(10 * 60_000 + 1);
    expect((await fetch(url)).status).toBe(403);
    expect(await download((await suite.get(`${EXPORTS}/${one.id}`).expect(200)).url)).toBe(text);
  });

  it('have only what is still kept, and expire after seven days', async () => {
    const acme = await organization();
    await record(acme, { action: 'old' });
    const { id, url, expires_at } = await ready(acme);
    expect(Date.parse(expires_at) - clock.now()).toBeGreaterThan(6.9 * DAY);
    await later(7 * DAY);
    await eventually(() => suite.get(`${EXPORTS}/${id}`).expect(200, { state: 'expired', url: null, proof_url: null, error: null, expires_at }));
    expect((await fetch(local(url))).status).toBe(403);
    await eventually(async () =>
      expect((await suite.records('audit_log_export.expired')).filter(({ data }) => (data as { readonly id: string }).id === id)).toHaveLength(1),
    );
    await later(24 * DAY);
    await record(acme, { action: 'new', occurred_at: ago(0) });
    const { verified, text } = await exported(acme, { format: 'ndjson', range_start: ago(60) });
    expect(lines(text).map(({ action }) => action)).toEqual(['new']);
    expect(verified).toMatchObject({ events: 1, leaves: { first: 1 } });
  });

  it('are made by whoever comes next where a process ends', async () => {
    const acme = await organization();
    for (let index = 0; index < 5; index++) await record(acme);
    const asked = await Promise.all(Array.from({ length: 5 }, () => ask(acme).expect(201)));
    await suite.restart();
    for (const { id } of asked) expect(await over(id)).toMatchObject({ state: 'ready' });
  });
});
