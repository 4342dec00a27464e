import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { CSV, GivenDirectory, group, NDJSON, user } from '#libs/testing/src/given-directory';

const { jest } = import.meta;

/** An object with so many names. */
function namesOf(count: number): Readonly<Record<string, number>> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`attribute-${index}`, index]));
}

type Body = Awaited<ReturnType<GivenDirectory['run']>>;

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

describe('a full listing', () => {
  let directory: GivenDirectory;
  beforeEach(async () => void (directory = await GivenDirectory.open(suite)));

  it('in JSON makes people and groups, then what changed of them, and nothing where nothing did', async () => {
    const first = [
      group('Engineering', ['ada', 'bob']),
      user('ada', { first_name: 'Ada', last_name: 'Lovelace', job_title: 'Countess', department: 'Research', shoe: 39 }),
      user('bob', { state: 'suspended', username: 'Bob' }),
      user('cyd'),
      group('Empty', []),
    ];
    const run = await directory.carryOut(first);
    expect(run).toMatchObject({ phase: 'completed', error_count: 0, errors: [], dry_run: false });
    expect(run.users).toEqual({ listed: 3, created: 3, updated: 0, unchanged: 0, removed: 0 });
    expect(run.groups).toEqual({ listed: 2, created: 2, updated: 0, unchanged: 0, removed: 0, members_added: 2, members_removed: 0 });
    const { ada, bob } = await directory.users();
    expect(ada).toMatchObject({
      email: 'ada@acme.test',
      first_name: 'Ada',
      last_name: 'Lovelace',
      job_title: 'Countess',
      state: 'active',
      raw_attributes: { shoe: 39 },
    });
    expect(ada.custom_attributes).toEqual({ job_title: 'Countess', department: 'Research' });
    expect(bob).toMatchObject({ username: 'Bob', state: 'inactive' });
    expect(await directory.groups()).toEqual({ Engineering: ['ada', 'bob'], Empty: [] });
    // Group and people before who is in it.
    await eventually(async () => expect((await directory.told()).filter((name) => name === 'dsync.group.user_added')).toHaveLength(2));
    const told = await directory.told();
    expect(told.filter((name) => name === 'dsync.activated')).toHaveLength(1);
    expect(told.indexOf('dsync.group.user_added')).toBeGreaterThan(Math.max(told.lastIndexOf('dsync.user.created'), told.indexOf('dsync.group.created')));
    await suite.get(`/directories/${directory.id}`).expect(200, { state: 'linked', metadata: { users: { active: 2, inactive: 1 }, groups: 2 } });

    const again = await directory.carryOut(first);
    expect(again).toMatchObject({ users: { unchanged: 3, created: 0, updated: 0, removed: 0 }, groups: { unchanged: 2, updated: 0, members_added: 0 } });
    expect(await directory.told()).toEqual(told);

    const second = await directory.carryOut(
      [user('ada', { first_name: 'Augusta' }), user('bob', { username: 'Bob' }), user('dan'), group('Engineering', ['bob', 'dan'])],
      '?removal_limit=50',
    );
    expect(second).toMatchObject({ phase: 'completed', users: { created: 1, updated: 2, unchanged: 0, removed: 1 } });
    expect(second.groups).toEqual({ listed: 1, created: 0, updated: 1, unchanged: 0, removed: 1, members_added: 1, members_removed: 1 });
    const users = await directory.users();
    expect(Object.keys(users).sort()).toEqual(['ada', 'bob', 'dan']);
    expect(users['ada']).toMatchObject({ id: ada.id, first_name: 'Augusta', job_title: null });
    expect(users['bob']).toMatchObject({ id: bob.id, state: 'active' });
    expect(await directory.groups()).toEqual({ Engineering: ['bob', 'dan'] });
    await eventually(async () =>
      expect(await directory.told()).toEqual(expect.arrayContaining(['dsync.user.deleted', 'dsync.group.deleted', 'dsync.group.user_removed'])),
    );
    expect((await directory.told()).filter((name) => name === 'dsync.activated')).toHaveLength(1);
  });

  it('in CSV names groups with each person, and leaves groups alone without that column', async () => {
    const csv =
      '\uFEFFid,email,username,first_name,last_name,state,groups,department\r\n1,ada@acme.test,ada,"Ada, Countess",Lovelace,active,Research;All,"R&D ""X"""\r\n2,bob@acme.test,,Bob,,inactive,All,\r\n3,,zoë,Zoë,,,,\r\n';
    const run = await directory.carryOut(csv, '', CSV);
    expect(run).toMatchObject({ phase: 'completed', users: { created: 3 }, groups: { created: 2, members_added: 3 }, errors: [] });
    expect(await directory.groups()).toEqual({ Research: ['1'], All: ['1', '2'] });
    const users = await directory.users();
    expect(users['1']).toMatchObject({ first_name: 'Ada, Countess', custom_attributes: { department: 'R&D "X"' }, username: 'ada' });
    expect(users['2']).toMatchObject({ username: 'bob@acme.test', last_name: null, state: 'inactive' });
    expect(users['3']).toMatchObject({ username: 'zoë', email: null, state: 'active' });
    const without = await directory.carryOut('id,email,first_name\n1,ada@acme.test,Ada\n2,bob@acme.test,Bob\n3,,Zoë\n', '', CSV);
    expect(without).toMatchObject({ phase: 'completed', users: { updated: 3, removed: 0 }, groups: { listed: 0, removed: 0 } });
    expect(await directory.groups()).toEqual({ Research: ['1'], All: ['1', '2'] });
  });

  it('is refused where too many would go, of people and groups apart, or where it is empty, unless by force', async () => {
    const people = ['a', 'b', 'c', 'd', 'e'].map((id) => user(id));
    await directory.carryOut([...people, ...['1', '2', '3', '4', '5'].map((id) => group(id, []))]);
    const before = await directory.told();
    const codes = async (lines: string | readonly string[], query = ''): Promise<readonly string[]> => {
      const run = await directory.carryOut(lines, query);
      expect(run.phase).toBe('refused');
      return run.errors.map(({ code, line }: Body) => `${code} ${line}`);
    };
    expect(await codes([...people.slice(2), group('1', []), group('2', []), group('3', []), group('4', [])])).toEqual(['removes_too_many_users null']);
    expect(await codes([...people, group('1', []), group('2', [])])).toEqual(['removes_too_many_groups null']);
    expect(await codes(people.slice(1), '?removal_limit=10')).toEqual(['removes_too_many_users null', 'removes_too_many_groups null']);
    expect(await codes('\n')).toEqual(['empty_listing null']);
    expect(await directory.told()).toEqual(before);
    // As many as may.
    expect(await directory.carryOut([...people.slice(1), ...['1', '2', '3', '4'].map((id) => group(id, []))])).toMatchObject({
      phase: 'completed',
      users: { removed: 1 },
      groups: { removed: 1 },
    });
    expect(await directory.carryOut('', '?force=true&dry_run=true')).toMatchObject({
      phase: 'completed',
      dry_run: true,
      users: { removed: 4 },
      groups: { removed: 4 },
    });
    expect(Object.keys(await directory.users())).toHaveLength(4);
    expect(await directory.carryOut('', '?force=true')).toMatchObject({ phase: 'completed', users: { listed: 0, removed: 4 } });
    expect([await directory.users(), await directory.groups()]).toEqual([{}, {}]);
  });

  it('only compares where that is asked, also before the directory is linked', async () => {
    const run = await directory.carryOut([user('a'), group('g', ['a'])], '?dry_run=true');
    expect(run).toMatchObject({ phase: 'completed', dry_run: true, users: { created: 1 }, groups: { created: 1, members_added: 1 } });
    expect(await directory.told()).toEqual(['dsync.token.created']);
    await suite.get(`/directories/${directory.id}`).expect(200, { state: 'validating' });
  });

  it('gives a name that is free to who comes for it, whoever had it before', async () => {
    await directory.carryOut([user('1', { username: 'ada' }), user('2', { username: 'bob' }), user('3', { username: 'cyd' })]);
    const run = await directory.carryOut([user('1', { username: 'bob' }), user('2', { username: 'dan' }), user('4', { username: 'cyd' })], '?force=true');
    expect(run).toMatchObject({ phase: 'completed', error_count: 0 });
    const users = await directory.users();
    expect(
      Object.entries(users)
        .map(([id, { username }]) => `${id} ${username}`)
        .sort(),
    ).toEqual(['1 bob', '2 dan', '4 cyd']);
  });

  it('passes names on along a chain, and tells of those that two want to exchange', async () => {
    const names = ['ada', 'bob', 'cyd', 'dan', 'eve', 'fay', 'gil', 'hal'];
    const named = (from: number) => names.map((_, index) => user(String(index), { username: names[index + from] ?? `new ${index}` }));
    await directory.carryOut([...named(0), user('x', { username: 'one' }), user('y', { username: 'two' })]);
    const run = await directory.carryOut([...named(1), user('x', { username: 'two' }), user('y', { username: 'one' })]);
    expect(run).toMatchObject({ phase: 'completed', users: { updated: 10 } });
    expect(run.errors.map(({ line, code }: Body) => `${code} ${line}`)).toEqual(['uniqueness 9', 'uniqueness 10']);
    const users = await directory.users();
    expect(names.map((_, index) => users[index].username)).toEqual([...names.slice(1), 'new 7']);
  });

  it.each([
    ['a line that is no JSON', NDJSON, [user('a'), '{"type":"user","id":', user('c')], ['invalid_json 2']],
    ['half a line at its end', NDJSON, `${user('a')}\n${user('b').slice(0, 20)}`, ['invalid_json 2']],
    [
      'types that are none',
      NDJSON,
      ['{"type":"robot","id":"a"}', '[]', '7', user('d', { state: 'gone' }), user('')],
      ['invalid_entry 1', 'invalid_entry 2', 'invalid_entry 3', 'invalid_entry 4', 'invalid_entry 5'],
    ],
    [
      'fields that are none',
      NDJSON,
      [
        user('a', { email: 7 }),
        user('b', { groups: 'all' }),
        user('c', { active: true }),
        user('d', { __proto__: 1, constructor: 1 }),
        group('g', [], { members: 'all' }),
        group('h', [], { name: '' }),
      ],
      ['invalid_entry 1', 'invalid_entry 2', 'invalid_entry 3', 'invalid_entry 4', 'invalid_entry 5', 'invalid_entry 6'],
    ],
    [
      'two of one id, or of one name',
      NDJSON,
      [user('a'), user('a', { username: 'other' }), user('b', { username: 'A@acme.test' }), group('g', []), group('h', [], { name: 'G' })],
      ['given_twice 2', 'given_twice 3', 'given_twice 5'],
    ],
    ['members whom it does not name', NDJSON, [user('a'), group('g', ['a', 'z'])], ['unknown_member 2']],
    ['other encodings than UTF-8', NDJSON, Buffer.concat([Buffer.from(`${user('a')}\n`), Buffer.from(user('é'), 'latin1')]), ['invalid_utf8 2']],
    ['no columns', CSV, '', ['invalid_columns 1']],
    ['columns without id', CSV, 'email,first_name\na@acme.test,A\n', ['invalid_columns 1']],
    ['a column twice', CSV, 'id,email,email\n', ['invalid_columns 1']],
    ['more columns than there are', CSV, 'id,email\n1,a@acme.test\n2,b@acme.test,x\n3,c@acme.test\n', ['invalid_csv 3']],
    ['half a line of CSV', CSV, 'id,email,first_name\n1,a@acme.test,A\n2,b@acm', ['invalid_csv 3']],
    ['a quote that is not closed', CSV, 'id,email\n1,a@acme.test\n2,"b@acme.test\n3,c@acme.test\n', ['invalid_csv 4']],
    ['a second file behind the first', CSV, 'id,email\n1,a@acme.test\n\uFEFF2,b@acme.test\n3,c@acme.test\n', ['invalid_csv 3']],
    ['a quote in the middle', CSV, 'id,email\n1,a@acme.test\n2,b"b"@acme.test\n', ['invalid_csv 3']],
    ['mixed encodings', CSV, Buffer.concat([Buffer.from('id,first_name\n1,Zoë\n2,'), Buffer.from('Zoë', 'latin1'), Buffer.from('\n')]), ['invalid_utf8 3']],
  ])('with %s changes nothing, and tells the lines', async (_, type, lines, expected) => {
    const run = await directory.carryOut(lines, '?force=true', type);
    expect(run.errors.map(({ code, line }: Body) => `${code} ${line}`)).toEqual(expected);
    expect(run).toMatchObject({ phase: 'failed', error_count: expected.length });
    // What a line says is nobody's to read in a refusal.
    expect(JSON.stringify(run.errors)).not.toContain('acme.test');
    expect(await directory.told()).toEqual(['dsync.token.created']);
  });

  it('refuses a line of more attributes than anything has before it is taken apart, and takes many members', async () => {
    const parse = jest.spyOn(JSON, 'parse');
    const lines = [user('a"\\'), user('b', namesOf(20_000)), group('g', [], { x: [namesOf(20_000)] })];
    const run = await directory.carryOut(lines);
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length));
    parse.mockRestore();
    expect(run.errors.map(({ code, line }: Body) => `${code} ${line}`)).toEqual(['invalid_entry 2', 'invalid_entry 3']);
    expect(longest).toBeLessThan(lines[1]!.length);
    // What stands in names is text.
    const people = Array.from({ length: 3_000 }, (_, index) => `${index}${'":\\["'.repeat(20)}`);
    expect(await directory.carryOut([...people.map((id) => user(id, { email: null })), group('g', people)], '?dry_run=true')).toMatchObject({
      phase: 'completed',
      groups: { members_added: 3_000 },
    });
  });

  it('tells the first hundred faults and counts the others', async () => {
    const run = await directory.carryOut(Array.from({ length: 130 }, () => '{}'));
    expect([run.phase, run.errors.length, run.error_count]).toEqual(['failed', 100, 130]);
  });

  it('is one at a time of a directory, and is asked for by its id there alone', async () => {
    const lines = Array.from({ length: 400 }, (_, index) => user(`u${index}`));
    const answers = await Promise.all([directory.send(lines), directory.send(lines)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
    const [accepted, refused] = answers.sort((one, other) => one.status - other.status).map(({ body }) => body);
    expect(refused).toMatchObject({ code: 'directory_run_in_progress', entity_id: accepted.id });
    expect(await directory.over(accepted.id)).toMatchObject({ phase: 'completed', users: { created: 400 }, lines: 400 });
    const other = await GivenDirectory.open(suite);
    await suite.get(`/admin/directories/${other.id}/runs/${accepted.id}`).expect(404);
    // The next may come as soon as it is over.
    expect(await directory.carryOut(lines)).toMatchObject({ phase: 'completed', users: { unchanged: 400 } });
  });

  it('takes nothing for a directory that is switched off, or is not there', async () => {
    await suite.patch(`/admin/directories/${directory.id}`, { state: 'unlinked' }).expect(200);
    await directory.send([user('a')]).expect(403, { code: 'directory_unlinked' });
    await suite.delete(`/directories/${directory.id}`).expect(202);
    await directory.send([user('a')]).expect(404);
    await directory.send([user('a')], '?removal_limit=101').expect(422);
    await directory.send([user('a')], '', 'application/json').expect(400);
  });

  it('ends with its directory', async () => {
    const { id } = await directory.send(Array.from({ length: 1_000 }, (_, index) => user(`u${index}`))).expect(202);
    await eventually(async () => expect((await suite.get(`/admin/directories/${directory.id}/runs/${id}`).expect(200)).phase).toBe('applying'));
    await suite.delete(`/directories/${directory.id}`).expect(202);
    await suite.get(`/admin/directories/${directory.id}/runs/${id}`).expect(404);
    // Whoever was made last ends with it as well; nothing more is made.
    await eventually(async () => {
      const made = (await suite.records()).filter(({ data }) => JSON.stringify(data).includes(directory.id)).map(({ type }) => type);
      const count = (type: string) => made.filter((each) => each === type).length;
      expect(count('directory_user.ended')).toBe(count('dsync.user.created'));
    }, 30_000);
  });

  it('and SCIM write beside each other: who came by SCIM after it stays', async () => {
    const lines = Array.from({ length: 600 }, (_, index) => user(`u${index}`));
    const { id } = await directory.send(lines, '?force=true').expect(202);
    const [made, clash] = await Promise.all([
      directory.scim('POST', '/Users', { userName: 'late@acme.test', externalId: 'late' }),
      directory.scim('POST', '/Users', { userName: 'u599@acme.test', externalId: 'other' }),
    ]);
    expect(made.status).toBe(201);
    const run = await directory.over(id);
    expect(run.phase).toBe('completed');
    // Whichever came first has the name.
    if (clash.status === 201) expect(run.errors).toEqual([{ line: 600, code: 'uniqueness', message: expect.any(String) }]);
    else expect([clash.status, run.error_count]).toEqual([409, 0]);
    await suite.get(`/directory_users?directory=${directory.id}&idp_id=late`).expect(200, { data: [expect.objectContaining({ username: 'late@acme.test' })] });
  });
});
