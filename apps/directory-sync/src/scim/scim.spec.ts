import { randomUUID } from 'node:crypto';
import { newUlid } from '#libs/platform/src/ids';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually, until } from '#libs/testing/src/until';

const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
const NOBODY = 'directory_user_01J0000000000000000000000A';

type Answer = Awaited<ReturnType<GivenSuite['scim']>>;
type Method = Parameters<GivenSuite['scim']>[0];

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

/** A directory with a token. */
class GivenDirectory {
  private constructor(
    readonly id: string,
    readonly organization: string,
    readonly token: string,
    readonly tokenId: string,
  ) {}

  static async open(organization?: string): Promise<GivenDirectory> {
    const organization_id = organization ?? (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
    const { id } = await suite.post('/admin/directories', { organization_id, type: 'okta scim v2.0', name: 'Acme Okta' }).expect(201);
    const { token, id: tokenId } = await suite.post(`/admin/directories/${id}/tokens`).expect(201);
    return new GivenDirectory(id, organization_id, token, tokenId);
  }

  async ask(method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    const answer = await suite.scim(method, this.id, path, this.token, { body, ...(headers && { headers }) });
    // Replicas of a spec have a port each, which stands in their answers.
    const text = answer.text.replaceAll(/"http:\/\/[\w.]+:\d+\//g, '"/');
    return { ...answer, body: text === '' ? undefined : JSON.parse(text) };
  }

  async expect(status: number, method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer['body']> {
    const answer = await this.ask(method, path, body, headers);
    expect(answer.status === status ? status : `${answer.status} ${answer.text}`).toBe(status);
    if (answer.text !== '') expect(answer.headers['content-type']).toBe('application/scim+json; charset=utf-8');
    return answer.body;
  }

  get(path: string): Promise<Answer['body']> {
    return this.expect(200, 'GET', path);
  }

  filtered(kind: 'Users' | 'Groups', filter: string, more = ''): Promise<Answer['body']> {
    return this.get(`/${kind}?filter=${encodeURIComponent(filter)}${more}`);
  }

  person(fields: object = {}): Promise<Answer['body']> {
    return this.expect(201, 'POST', '/Users', { schemas: [USER], userName: `${randomUUID()}@acme.test`, ...fields });
  }

  group(fields: object = {}): Promise<Answer['body']> {
    return this.expect(201, 'POST', '/Groups', { displayName: `Group ${randomUUID()}`, ...fields });
  }

  patch(path: string, status: number, ...Operations: readonly object[]): Promise<Answer['body']> {
    return this.expect(status, 'PATCH', path, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations });
  }

  async members(group: string): Promise<readonly string[]> {
    return ((await this.get(`/Groups/${group}`)).members ?? []).map(({ value }: { readonly value: string }) => value).sort();
  }

  /** What was announced of it, by name and id. */
  async told(): Promise<readonly (readonly [name: string, of: string])[]> {
    const records = (await suite.records()).filter(({ data }) => JSON.stringify(data).includes(this.id));
    return records.flatMap(({ public: names, subject }) =>
      names.map(({ name }) => {
        const { id, user } = subject as { readonly id?: string; readonly user?: { readonly id: string } };
        return [name, user?.id ?? id!] as const;
      }),
    );
  }
}

const manyNames = (count: number): string => `{"displayName":"many"${Array.from({ length: count }, (_, index) => `,"n${index}":1`).join('')}}`;
const nestedGroup = (depth: number): string => `${'{"urn:ietf:params:scim:schemas:core:2.0:Group":'.repeat(depth)}{"displayName":"deep"}${'}'.repeat(depth)}`;
const sorted = (...people: readonly { readonly id: string }[]) => people.map(({ id }) => id).sort();

describe('requests of providers', () => {
  let directory: GivenDirectory;
  beforeAll(async () => void (directory = await GivenDirectory.open()));

  it('entra: test connection', async () => {
    expect(await directory.filtered('Users', `userName eq "${randomUUID()}"`)).toMatchObject({ totalResults: 0, Resources: [] });
  });

  it('okta: test connection', async () => {
    for (const path of ['/Users?startIndex=1&count=2', '/Groups?startIndex=1&count=100'])
      expect(await directory.get(path)).toMatchObject({ totalResults: expect.any(Number), startIndex: 1, itemsPerPage: expect.any(Number) });
  });

  it('okta: look, create; okta: spec test', async () => {
    const userName = `${randomUUID()}@acme.test`;
    expect(await directory.filtered('Users', `userName eq "${userName}"`, '&startIndex=1&count=100')).toMatchObject({ totalResults: 0 });
    const body = { schemas: [USER], userName, externalId: '00u1', groups: [], password: 'hunter-2-password', name: { givenName: 'Ada' }, active: true };
    const made = await directory.ask('POST', '/Users', body);
    expect(made).toMatchObject({ status: 201, headers: { location: expect.stringContaining(`/scim/v2/${directory.id}/Users/`), etag: 'W/"1"' } });
    expect(made.text).not.toContain('hunter-2-password');
    expect(await directory.get(`/Users/${made.body.id}`)).toEqual(made.body);
    expect(await directory.expect(409, 'POST', '/Users', body)).toMatchObject({ status: '409', scimType: 'uniqueness', detail: expect.any(String) });
    expect(await directory.filtered('Users', `userName eq "${userName.toUpperCase()}"`)).toMatchObject({ totalResults: 1, Resources: [made.body] });
    expect(await directory.expect(404, 'GET', `/Users/${NOBODY}`)).toEqual({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
      status: '404',
      detail: 'There is no such User.',
    });
  });

  it('okta: update; okta: deactivate', async () => {
    const person = await directory.person({ externalId: '00u2' });
    const put = { ...person, groups: [{ value: 'x' }], meta: { version: 'x' }, id: 'other', title: 'Dr' };
    expect(await directory.expect(200, 'PUT', `/Users/${person.id}`, put)).toMatchObject({ id: person.id, title: 'Dr', externalId: '00u2' });
    expect(await directory.patch(`/Users/${person.id}`, 200, { op: 'replace', value: { active: false } })).toMatchObject({ active: false, title: 'Dr' });
    expect(await directory.get(`/Users/${person.id}`)).toMatchObject({ active: false });
    await suite.get(`/directory_users/${person.id}`).expect(200, { state: 'inactive' });
  });

  it('okta: group push; okta: rename', async () => {
    const [one, two] = [await directory.person(), await directory.person()];
    const group = await directory.group({ members: [] });
    const path = `/Groups/${group.id}`;
    await directory.patch(path, 204, { op: 'add', path: 'members', value: [{ value: one.id, display: 'one' }] });
    await directory.patch(path, 204, { op: 'remove', path: `members[value eq "${one.id}"]` }, { op: 'add', path: 'members', value: [{ value: two.id }] });
    expect(await directory.members(group.id)).toEqual([two.id]);
    await directory.patch(path, 204, { op: 'replace', path: 'members', value: [{ value: one.id }, { value: two.id }] });
    expect(await directory.members(group.id)).toEqual(sorted(one, two));
    await directory.expect(200, 'PUT', path, { displayName: group.displayName, members: [{ value: one.id }] });
    expect(await directory.members(group.id)).toEqual([one.id]);
    const { version } = (await directory.get(path)).meta;
    await directory.patch(path, 204, { op: 'replace', value: { id: group.id, displayName: group.displayName } });
    expect((await directory.get(path)).meta.version).toBe(version);
    const other = await directory.group();
    expect(await directory.patch(path, 409, { op: 'replace', value: { displayName: other.displayName.toUpperCase() } })).toMatchObject({
      scimType: 'uniqueness',
    });
  });

  it('entra: create; entra: patch; entra: manager; entra: absent work mail; entra: roles', async () => {
    const group = await directory.group({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group', 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'],
      meta: { resourceType: 'Group' },
    });
    expect(group.schemas).toContain('http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group');
    const person = await directory.person({ meta: { resourceType: 'User' }, roles: [], externalId: 'e-1' });
    const path = `/Users/${person.id}`;
    expect(
      await directory.patch(
        path,
        200,
        { op: 'Replace', path: 'active', value: 'False' },
        { op: 'Add', value: { 'name.givenName': 'Ada', [`${ENTERPRISE}:employeeNumber`]: '7' } },
        { op: 'Replace', path: 'emails[type eq "work"].value', value: 'ada@acme.test' },
        { op: 'Add', path: `${ENTERPRISE}:manager`, value: 'manager-1' },
      ),
    ).toMatchObject({
      active: false,
      name: { givenName: 'Ada' },
      emails: [{ type: 'work', value: 'ada@acme.test' }],
      [ENTERPRISE]: { employeeNumber: '7', manager: { value: 'manager-1' } },
    });
    await directory.patch(
      path,
      200,
      { op: 'Remove', path: `${ENTERPRISE}:manager` },
      { op: 'Add', path: 'roles', value: [{ value: 'admin', primary: 'True' }] },
    );
    expect(await directory.patch(path, 200, { op: 'Replace', path: 'roles[primary eq "True"].value', value: 'owner' })).toMatchObject({
      roles: [{ value: 'owner', primary: true }],
      [ENTERPRISE]: { employeeNumber: '7' },
    });
    await suite.get(`/directory_users/${person.id}`).expect(200, { email: 'ada@acme.test', custom_attributes: { employee_number: '7' } });
  });

  it('entra: group look-up; entra: remove members', async () => {
    const [one, two, three] = [await directory.person(), await directory.person(), await directory.person()];
    const group = await directory.group({ members: [one, two, three].map(({ id }) => ({ value: id })) });
    const found = await directory.filtered('Groups', `displayName eq "${group.displayName}"`, '&excludedAttributes=members');
    expect(found).toMatchObject({ totalResults: 1, Resources: [{ id: group.id }] });
    expect(found.Resources[0]).not.toHaveProperty('members');
    expect(await directory.filtered('Groups', `id eq "${group.id}" and members eq "${one.id}"`)).toMatchObject({ totalResults: 1 });
    await directory.patch(`/Groups/${group.id}`, 204, { op: 'Remove', path: 'members', value: [{ value: one.id }] });
    expect(await directory.filtered('Groups', `id eq "${group.id}" and members eq "${one.id}"`)).toMatchObject({ totalResults: 0 });
    expect(await directory.filtered('Groups', `members.value eq "${two.id}"`)).toMatchObject({ totalResults: 1 });
    await directory.patch(`/Groups/${group.id}`, 204, { op: 'Remove', path: `members[value eq "${two.id}"]` });
    expect(await directory.members(group.id)).toEqual([three.id]);
    await directory.patch(`/Groups/${group.id}`, 204, { op: 'Remove', path: 'members' });
    expect(await directory.members(group.id)).toEqual([]);
  });

  it('entra: soft delete, restore; entra: hard delete; entra: userName change', async () => {
    const person = await directory.person({ externalId: 'hard' });
    const path = `/Users/${person.id}`;
    await directory.patch(path, 200, { op: 'Replace', path: 'active', value: 'False' });
    expect(await directory.filtered('Users', `userName eq "${person.userName}"`)).toMatchObject({ Resources: [{ id: person.id, active: false }] });
    expect(await directory.patch(path, 200, { op: 'Replace', path: 'active', value: 'True' })).toMatchObject({ id: person.id, active: true });
    await directory.patch(path, 200, { op: 'Replace', path: 'userName', value: `new-${person.userName}` });
    const second = await directory.person({ userName: person.userName });
    await directory.expect(204, 'DELETE', path);
    await directory.expect(404, 'DELETE', path);
    await directory.expect(404, 'GET', path);
    const again = await directory.person({ userName: `new-${person.userName}`, externalId: 'hard' });
    expect(again.id).not.toBe(person.id);
    expect(await directory.filtered('Users', 'externalId eq "hard"')).toMatchObject({ totalResults: 1, Resources: [{ id: again.id }] });
    expect(second.id).not.toBe(again.id);
  });

  it('jumpcloud: activation', async () => {
    const [person, group] = [await directory.person(), await directory.group()];
    await directory.patch(`/Groups/${group.id}`, 204, { op: 'add', path: 'members', value: [{ value: person.id }] });
    await directory.expect(200, 'PUT', `/Users/${person.id}`, { ...person, active: false });
    await directory.expect(204, 'DELETE', `/Groups/${group.id}`);
    await directory.expect(204, 'DELETE', `/Users/${person.id}`);
  });

  it('PUT that does not say active leaves whoever is inactive so, and clears the rest', async () => {
    const { id, userName } = await directory.person({ title: 'Dr' });
    await directory.expect(200, 'PUT', `/Users/${id}`, { userName, title: 'Dr', active: 'False' });
    const after = await directory.expect(200, 'PUT', `/Users/${id}`, { userName });
    expect(after).toMatchObject({ id, active: false });
    expect(after).not.toHaveProperty('title');
    await suite.get(`/directory_users/${id}`).expect(200, { state: 'inactive' });
    expect(await directory.expect(200, 'PUT', `/Users/${id}`, { userName, active: true })).toMatchObject({ active: true });
    expect(await directory.expect(200, 'PUT', `/Users/${id}`, { userName })).not.toHaveProperty('active');
    await suite.get(`/directory_users/${id}`).expect(200, { state: 'active' });
  });

  it('group PATCH; members', async () => {
    const other = await GivenDirectory.open();
    const [person, stranger] = [await directory.person(), await other.person()];
    const group = await directory.group({ members: [{ value: person.id }] });
    const path = `/Groups/${group.id}`;
    const version = async (): Promise<string> => (await directory.get(path)).meta.version;
    const before = await version();
    expect(await directory.patch(path, 204, { op: 'add', path: 'members', value: [{ value: person.id }] })).toBeUndefined();
    await directory.patch(path, 204, { op: 'remove', path: `members[value eq "${NOBODY}"]` });
    expect(await version()).toBe(before);
    for (const id of [NOBODY, stranger.id, 'nothing'])
      expect(await directory.patch(path, 400, { op: 'add', path: 'members', value: [{ value: id }] })).toMatchObject({ scimType: 'invalidValue' });
    expect(await directory.patch(`${path}?attributes=members`, 200, { op: 'remove', path: 'members' })).not.toHaveProperty('displayName');
  });

  it('paging', async () => {
    const own = await GivenDirectory.open();
    const people = [];
    for (let each = 0; each < 5; each++) people.push(await own.person({ displayName: 'Zoë Two Words' }));
    const ids = people.map(({ id }) => id);
    const page = async (query: string) => {
      const { totalResults, Resources } = await own.get(`/Users?${query}`);
      expect(totalResults).toBe(5);
      return Resources.map(({ id }: { readonly id: string }) => id);
    };
    expect(await page('count=0')).toEqual([]);
    expect(await page('count=-1')).toEqual([]);
    expect(await page('startIndex=0&count=2')).toEqual(ids.slice(0, 2));
    expect(await page('startIndex=3&count=2')).toEqual(ids.slice(2, 4));
    // Without the page before it.
    expect(await page('startIndex=2&count=1')).toEqual(ids.slice(1, 2));
    expect(await page('startIndex=5&count=2')).toEqual(ids.slice(4));
    expect(await page('startIndex=9')).toEqual([]);
    expect(await page('filter=displayName+eq+%22zo%C3%AB+two+words%22')).toEqual(ids);
  });

  it('races', async () => {
    const people = await Promise.all(Array.from({ length: 6 }, () => directory.person()));
    const group = await directory.group();
    const path = `/Groups/${group.id}`;
    const adding = people.map(({ id }) => directory.ask('PATCH', path, { Operations: [{ op: 'add', path: 'members', value: [{ value: id }] }] }));
    const deleting = people.slice(0, 3).map(({ id }) => directory.expect(204, 'DELETE', `/Users/${id}`));
    for (const { status } of await Promise.all(adding)) expect([204, 400]).toContain(status);
    await Promise.all(deleting);
    expect(await directory.members(group.id)).toEqual(sorted(...people.slice(3)));
  });
});

describe('SCIM', () => {
  let directory: GivenDirectory;
  beforeAll(async () => void (directory = await GivenDirectory.open()));

  it('tells what it can, as lists without nulls', async () => {
    for (const path of ['/ServiceProviderConfig', '/ResourceTypes', '/Schemas', '/ResourceTypes/User', `/Schemas/${USER}`]) {
      const answer = await directory.get(path);
      expect(JSON.stringify(answer)).not.toContain('null');
      if (path.endsWith('s') && path !== '/ServiceProviderConfig') expect(answer.Resources.length).toBe(answer.totalResults);
    }
    expect(await directory.get('/ServiceProviderConfig')).toMatchObject({ patch: { supported: true }, bulk: { supported: false }, sort: { supported: false } });
    for (const path of ['/Me', '/Bulk']) await directory.expect(501, 'GET', path);
    await directory.expect(404, 'GET', '/Nothing');
    await directory.expect(405, 'DELETE', '/Users');
    expect((await directory.ask('DELETE', '/Users')).headers['allow']).toBe('GET, POST');
  });

  it('answers what is asked for of a resource', async () => {
    const person = await directory.person({ name: { givenName: 'Ada', familyName: 'L' }, emails: [{ value: 'a@acme.test', type: 'work' }] });
    const group = await directory.group({ members: [{ value: person.id }] });
    const path = `/Users/${person.id}`;
    expect(await directory.get(`${path}?attributes=userName,name.givenName`)).toEqual({
      schemas: [USER],
      id: person.id,
      userName: person.userName,
      name: { givenName: 'Ada' },
    });
    expect(await directory.get(`${path}?excludedAttributes=emails.type,name`)).toMatchObject({ emails: [{ value: 'a@acme.test' }] });
    expect(await directory.get(`${path}?attributes=groups`)).toMatchObject({ groups: [{ value: group.id, display: group.displayName }] });
    const search = { schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'], filter: `userName eq "${person.userName}"`, attributes: ['userName'] };
    expect(await directory.expect(200, 'POST', '/Users/.search', search)).toMatchObject({ Resources: [{ id: person.id, userName: person.userName }] });
  });

  it('has versions: what changed meanwhile is not changed, and what is known is not sent again', async () => {
    const { id } = await directory.person();
    const path = `/Users/${id}`;
    await directory.expect(304, 'GET', path, undefined, { 'If-None-Match': 'W/"1"' });
    const change = { Operations: [{ op: 'replace', path: 'title', value: 'Dr' }] };
    await directory.expect(412, 'PATCH', path, change, { 'If-Match': 'W/"7"' });
    expect((await directory.expect(200, 'PATCH', path, change, { 'If-Match': 'W/"1"' })).meta.version).toBe('W/"2"');
    await directory.expect(412, 'DELETE', path, undefined, { 'If-Match': 'W/"1"' });
    await directory.expect(204, 'DELETE', path, undefined, { 'If-Match': '*' });
  });

  it('makes a resource once for each Idempotency-Key', async () => {
    const body = { schemas: [USER], userName: `${randomUUID()}@acme.test` };
    const key = { 'Idempotency-Key': randomUUID() };
    const first = await directory.expect(201, 'POST', '/Users', body, key);
    expect(await directory.expect(201, 'POST', '/Users', body, key)).toEqual(first);
    await directory.expect(409, 'POST', '/Users', body, { 'Idempotency-Key': randomUUID() });
  });

  it('finds the groups that several people are in together', async () => {
    const [one, other] = [await directory.person(), await directory.person()];
    const members = (...people: readonly { readonly id: string }[]) => ({ members: people.map(({ id }) => ({ value: id })) });
    const [both, alone] = [await directory.group(members(one, other)), await directory.group(members(one))];
    const found = async (filter: string) => (await directory.filtered('Groups', filter)).Resources.map(({ id }: { readonly id: string }) => id);
    const [ofOne, ofOther] = [`members.value eq "${one.id}"`, `members[value eq "${other.id}"]`];
    expect(await found(ofOne)).toEqual([both.id, alone.id]);
    expect(await found(`urn:ietf:params:scim:schemas:core:2.0:Group:${ofOne}`)).toEqual([both.id, alone.id]);
    expect(await found(`${ofOne} and ${ofOther}`)).toEqual([both.id]);
    expect(await found(`${ofOne} and (${ofOther} and displayName eq "${both.displayName}")`)).toEqual([both.id]);
    expect(await found(`${ofOther} and id eq "${alone.id}"`)).toEqual([]);
  });

  it('takes no more of a person in many requests than in one, and always less', async () => {
    const { id } = await directory.person();
    const path = `/Users/${id}`;
    const add = (name: string) => ({ Operations: [{ op: 'add', path: name, value: 'x'.repeat(20_000) }] });
    await directory.expect(200, 'PATCH', path, add('one'));
    await directory.expect(413, 'PATCH', path, add('two'));
    expect(await directory.get(path)).not.toHaveProperty('two');
    await directory.patch(path, 200, { op: 'remove', path: 'one' });
    await directory.expect(200, 'PATCH', path, add('two'));
  });

  it('takes no brackets within texts for more than that, and as many negations as there is room for', async () => {
    const own = await GivenDirectory.open();
    const { id } = await own.group({ displayName: 'R/D ((((((((((((((((((((' });
    for (const name of ['R/D ', 'R\\/D '])
      expect(await own.filtered('Groups', `displayName eq "${name}${'('.repeat(20)}"`)).toMatchObject({ totalResults: 1, Resources: [{ id }] });
    const nobody = Array.from({ length: 20 }, (_, index) => `not (displayName eq "${index}")`).join(' and ');
    expect(await own.filtered('Groups', nobody)).toMatchObject({ totalResults: 1 });
  });

  it('takes what is of the schema of the resource, or of a company, with the name of that schema', async () => {
    const [one, other] = [await directory.person(), await directory.person({ [`${ENTERPRISE}:department`]: 'R', [ENTERPRISE]: { costCenter: '7' } })];
    expect(other).toMatchObject({ schemas: [USER, ENTERPRISE], [ENTERPRISE]: { department: 'R', costCenter: '7' } });
    const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group';
    const members = (...people: readonly { readonly id: string }[]) => people.map(({ id }) => ({ value: id }));
    const group = await directory.group({ [`${GROUP}:members`]: members(one) });
    expect(await directory.members(group.id)).toEqual([one.id]);
    const path = `/Groups/${group.id}`;
    await directory.expect(200, 'PUT', path, { [GROUP]: { displayName: group.displayName, members: members(one, other) } });
    expect(await directory.members(group.id)).toEqual(sorted(one, other));
    await directory.patch(path, 204, { op: 'replace', path: GROUP, value: { members: members(other) } });
    expect(await directory.members(group.id)).toEqual([other.id]);
    expect(await directory.patch(`/Users/${one.id}`, 200, { op: 'add', path: USER, value: { title: 'Dr' } })).toMatchObject({ title: 'Dr' });
    expect(await directory.patch(`/Users/${one.id}`, 400, { op: 'remove', path: USER })).toMatchObject({ scimType: 'noTarget' });
  });

  it('keeps no password, whatever schema it is said to be of', async () => {
    const secret = `pw-${randomUUID()}`;
    const { id } = await directory.person({ [ENTERPRISE]: { Password: secret }, 'urn:acme:2.0:User': { password: secret }, [`${USER}:password`]: secret });
    const path = `/Users/${id}`;
    await directory.patch(
      path,
      200,
      { op: 'add', path: `${ENTERPRISE}:password`, value: secret },
      { op: 'add', path: 'urn:acme:2.0:User', value: { password: secret } },
      { op: 'add', value: { password: secret } },
    );
    expect(JSON.stringify(await suite.records())).not.toContain(secret);
    expect(JSON.stringify([await directory.get(path), await suite.get(`/directory_users/${id}`).expect(200)])).not.toContain(secret);
  });

  it('removes of a list nothing for what names nothing', async () => {
    const { id } = await directory.person({ emails: [{ value: 'a@acme.test' }] });
    for (const value of [{}, [{}]]) expect((await directory.patch(`/Users/${id}`, 200, { op: 'remove', path: 'emails', value })).emails).toHaveLength(1);
  });

  it('takes an empty name that nobody has to have for none', async () => {
    const person = await directory.person({ displayName: '', externalId: '' });
    expect(person).not.toHaveProperty('displayName');
    expect(await directory.patch(`/Users/${person.id}`, 200, { op: 'replace', path: 'displayName', value: 'Ada' })).toMatchObject({ displayName: 'Ada' });
    expect(await directory.patch(`/Users/${person.id}`, 200, { op: 'replace', path: 'displayName', value: '' })).not.toHaveProperty('displayName');
    await directory.expect(400, 'POST', '/Groups', { displayName: '' });
  });

  it.each([
    ['an attribute that there is not', 'Users', 'nothing eq "a"'],
    ['an attribute of groups', 'Users', 'members.value eq "a"'],
    ['an attribute of people', 'Groups', 'userName eq "a"'],
    ['a part that there is not', 'Users', 'emails.nothing eq "a"'],
    ['a part of what has none', 'Users', 'userName.value eq "a"'],
    ['a part in brackets that there is not', 'Users', 'emails[nothing eq "a"].value eq "b"'],
    ['an attribute of a schema that there is not', 'Users', 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:nothing eq "a"'],
    ['what an answer alone has: groups', 'Users', 'groups.value eq "a"'],
    ['what an answer alone has: custom attributes', 'Users', 'urn:ietf:params:scim:schemas:extension:gatehouse:2.0:User:customAttributes.job_title pr'],
    ['what an answer alone has: its address', 'Users', 'meta.location eq "a"'],
    ['members in general', 'Groups', 'members pr'],
    ['members who are not', 'Groups', `not (members.value eq "${NOBODY}")`],
    ['members, or something else', 'Groups', `members.value eq "${NOBODY}" or displayName eq "a"`],
    ['members by their type', 'Groups', `members.value eq "${NOBODY}" and members.type eq "User"`],
    ['nothing that can be read', 'Users', 'userName eq'],
    ['nothing that comes to an end', 'Users', `${'('.repeat(100)}userName eq "a"${')'.repeat(100)}`],
    [
      'nothing that comes to an end, behind brackets of a text',
      'Users',
      `userName eq "${')'.repeat(100)}" and ${'('.repeat(100)}userName pr${')'.repeat(100)}`,
    ],
    ['what is not not not', 'Users', `${'not '.repeat(20)}(userName pr)`],
  ])('refuses a filter that names %s', async (_, kind, filter) => {
    const answer = await directory.ask('GET', `/${kind}?filter=${encodeURIComponent(filter)}`);
    expect(answer).toMatchObject({ status: 400, body: { scimType: 'invalidFilter', status: '400', detail: expect.any(String) } });
  });

  it('keeps what it gives back as it came, and refuses what it could not', async () => {
    const userName = `${randomUUID()} Zoë 😀`;
    const bytes = (encoding: BufferEncoding) => new Uint8Array(Buffer.from(JSON.stringify({ userName }), encoding));
    for (const text of ['a\0', 'a\ud800', '\udc00a'])
      for (const body of [{ userName: text }, { userName, title: text }, { userName, [text]: 'x' }, { userName, own: [{ deep: text }] }])
        expect(await directory.ask('POST', '/Users', body)).toMatchObject({ status: 400, body: { scimType: 'invalidValue' } });
    expect(await directory.ask('POST', '/Users', bytes('latin1'))).toMatchObject({ status: 400, body: { scimType: 'invalidSyntax' } });
    const large = Buffer.concat([Buffer.from(`{"displayName":"${'x'.repeat(100_000)}`), Buffer.from('é"}', 'latin1')]);
    expect(await directory.ask('POST', '/Groups', new Uint8Array(large))).toMatchObject({ status: 400, body: { scimType: 'invalidSyntax' } });
    // Of clients that begin with a mark of the order of bytes.
    const { id } = await directory.expect(201, 'POST', '/Users', new Uint8Array(Buffer.concat([Buffer.from('\uFEFF'), bytes('utf8')])));
    expect((await directory.get(`/Users/${id}`)).userName).toBe(userName);
  });

  it('finds whoever has a name by every spelling that nobody else can have', async () => {
    const own = await GivenDirectory.open();
    for (const [name, other] of [
      ['straße@acme.test', 'STRASSE@acme.test'],
      ['Σίσυφος', 'ΣΊΣΥΦΟΣ'],
      [' Ada', 'ada '],
    ]) {
      const { id } = await own.person({ userName: name });
      expect(await own.expect(409, 'POST', '/Users', { userName: other })).toMatchObject({ scimType: 'uniqueness' });
      expect(await own.filtered('Users', `userName eq "${other}"`)).toMatchObject({ totalResults: 1, Resources: [{ id }] });
      const group = await own.group({ displayName: name });
      expect(await own.filtered('Groups', `displayName eq "${other}"`)).toMatchObject({ totalResults: 1, Resources: [{ id: group.id }] });
    }
  });

  it('filters by indexes', async () => {
    const own = await GivenDirectory.open();
    const ada = await own.person({ userName: 'ada.lovelace@acme.test', displayName: 'Ada Lovelace', emails: [{ value: 'ADA@acme.test', type: 'work' }] });
    await until(() => Date.now() > Date.parse(ada.meta.lastModified));
    const bob = await own.person({ userName: 'adam@acme.test', active: false, emails: [{ value: 'ada@acme.test', type: 'home' }] });
    const found = async (filter: string) => (await own.filtered('Users', filter)).Resources.map(({ id }: { readonly id: string }) => id);
    expect(await found('userName sw "ada"')).toEqual([ada.id, bob.id]);
    expect(await found('userName sw "ada.lovelace@"')).toEqual([ada.id]);
    expect(await found('displayName sw "Ada L"')).toEqual([ada.id]);
    expect(await found('emails.value eq "ada@ACME.test"')).toEqual([ada.id, bob.id]);
    expect(await found('emails[type eq "work"].value eq "ada@acme.test"')).toEqual([ada.id]);
    expect(await found('active eq false')).toEqual([bob.id]);
    expect(await found('active eq "True" and userName co "a"')).toEqual([ada.id]);
    expect(await found(`id eq "${bob.id}"`)).toEqual([bob.id]);
    expect(await found('meta.lastModified gt "2025-06-01T00:00:00Z"')).toEqual([ada.id, bob.id]);
    expect(await found(`meta.lastModified gt "${ada.meta.lastModified}"`)).toEqual([bob.id]);
    expect(await found(`meta.lastModified le "${ada.meta.lastModified}"`)).toEqual([ada.id]);
    expect(await found('not (userName eq "adam@acme.test")')).toEqual([ada.id]);
    for (const filter of ['members.value eq "NONE"', 'id eq "NONE" and members eq "NONE"', `id eq "NONE" and members eq "${ada.id}"`])
      expect(await own.filtered('Groups', filter.replaceAll('NONE', 'x'.repeat(990)))).toMatchObject({ totalResults: 0, Resources: [] });
    // Addresses that end with a slash, and a path.
    expect(await own.get(`//Users/${ada.id}`)).toMatchObject({ id: ada.id });
  });

  it.each([
    ['GET', '/Users?filter=userName+is+%22x%22', undefined, 400, 'invalidFilter'],
    ['GET', '/Users?filter=meta.lastModified+gt+%22yesterday%22', undefined, 400, 'invalidFilter'],
    ['POST', '/Users', '{', 400, 'invalidSyntax'],
    ['POST', '/Users', [], 400, 'invalidSyntax'],
    ['POST', '/Users', { schemas: [USER] }, 400, 'invalidValue'],
    ['POST', '/Users', { userName: 'x'.repeat(300) }, 400, 'invalidValue'],
    ['POST', '/Users', '{"userName": "proto@acme.test", "__proto__": {"a": 1}}', 400, 'invalidSyntax'],
    [
      'POST',
      '/Users',
      {
        userName: 'x',
        emails: [
          { value: 'a', primary: true },
          { value: 'b', primary: true },
        ],
      },
      400,
      'invalidValue',
    ],
    ['POST', '/Users', { userName: 'long@acme.test', title: 'x'.repeat(40_000) }, 413, undefined],
    ['POST', '/Groups', { displayName: 'x', members: [{ value: NOBODY }] }, 400, 'invalidValue'],
    ['POST', '/Groups', { displayName: 'x', members: [{ display: 'nobody' }] }, 400, 'invalidValue'],
    ['POST', '/Groups', { displayName: 'x', description: 'x'.repeat(40_000) }, 413, undefined],
    ...[40, 1_200, 2_000, 9_000, 100_000].map((depth) => ['POST', '/Groups', nestedGroup(depth), 400, 'invalidValue'] as const),
    ['GET', '/ServiceProviderConfig/x', undefined, 404, undefined],
    ['GET', '/Users?startIndex=1.5', undefined, 400, 'invalidValue'],
    ['GET', `/Users?attributes=${'a,'.repeat(101)}`, undefined, 400, 'invalidValue'],
    ['POST', '/Users', { userName: 'many@acme.test', ...Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`a${index}`, 1])) }, 400, 'invalidValue'],
  ] as const)('refuses %s %s with what is wrong: %#', async (method, path, body, status, scimType) => {
    expect(await directory.expect(status, method, path, body)).toMatchObject({
      status: String(status),
      detail: expect.any(String),
      ...(scimType && { scimType }),
    });
  });

  it('refuses values that are too many where it parsed them, beside the event loop', async () => {
    const { detail } = await directory.expect(400, 'POST', '/Groups', manyNames(100_000));
    expect(detail).toContain('beside the members');
  });

  it('says that it reads nothing compressed', async () => {
    expect(await directory.expect(415, 'POST', '/Users', { userName: 'zip@acme.test' }, { 'Content-Encoding': 'gzip' })).toMatchObject({ status: '415' });
  });

  it('takes a large group, beside the event loop', async () => {
    const people = await Promise.all(Array.from({ length: 20 }, () => directory.person()));
    const members = Array.from({ length: 2_000 }, (_, index) => ({ value: people[index % 20]!.id, display: 'x'.repeat(30) }));
    const group = await directory.group({ members });
    expect(await directory.members(group.id)).toEqual(sorted(...people));
  });
});

describe('a directory', () => {
  it('is linked by the first request, once, and lets only its own tokens in', async () => {
    const directory = await GivenDirectory.open();
    const path = `/directories/${directory.id}`;
    await suite.get(path).expect(200, { state: 'validating', metadata: { users: { active: 0, inactive: 0 }, groups: 0 } });
    expect((await suite.scim('GET', directory.id, '/Users', 'dst_unknown')).status).toBe(401);
    await suite.get(path).expect(200, { state: 'validating' });
    await directory.get('/Users');
    await directory.get('/Users');
    await suite.get(path).expect(200, { state: 'linked' });
    expect((await directory.told()).map(([name]) => name)).toEqual(['dsync.token.created', 'dsync.activated']);
    // A process that dies between the two leaves none that could never be reached.
    const of = (await suite.records('directory_address.registered', 'directory.created')).filter(
      ({ data }) => (data as { readonly id: string }).id === directory.id,
    );
    expect(of.map(({ type }) => type)).toEqual(['directory_address.registered', 'directory.created']);

    const other = await GivenDirectory.open();
    expect((await suite.scim('GET', directory.id, '/Users', other.token)).status).toBe(404);
    expect((await suite.scim('GET', 'directory_01J0000000000000000000000A', '/Users', other.token)).status).toBe(404);
  });

  it('has invalid credentials where its product goes on with a token that was revoked, until it comes with a good one', async () => {
    const directory = await GivenDirectory.open();
    await directory.get('/Users');
    await suite.delete(`/admin/directories/${directory.id}/tokens/${directory.tokenId}`).expect(204);
    for (let each = 0; each < 4; each++) expect((await directory.ask('GET', '/Users')).status).toBe(401);
    await suite.get(`/directories/${directory.id}`).expect(200, { state: 'linked' });
    await directory.ask('GET', '/Users');
    await suite.get(`/directories/${directory.id}`).expect(200, { state: 'invalid_credentials' });
    const { token } = await suite.post(`/admin/directories/${directory.id}/tokens`).expect(201);
    expect((await suite.scim('GET', directory.id, '/Users', token)).status).toBe(200);
    await suite.get(`/directories/${directory.id}`).expect(200, { state: 'linked' });
    // Its refusals are counted anew.
    for (let each = 0; each < 4; each++) await directory.ask('GET', '/Users');
    await suite.get(`/directories/${directory.id}`).expect(200, { state: 'linked' });
    await directory.ask('GET', '/Users');
    await suite.get(`/directories/${directory.id}`).expect(200, { state: 'invalid_credentials' });
  });

  it('is unlinked and linked by hand', async () => {
    const directory = await GivenDirectory.open();
    await directory.person();
    const path = `/admin/directories/${directory.id}`;
    await suite.patch(path, { state: 'unlinked', name: 'Off' }).expect(200, { state: 'unlinked', name: 'Off' });
    await directory.expect(403, 'GET', '/Users');
    await suite.patch(path, { state: 'linked' }).expect(200, { state: 'linked' });
    await directory.get('/Users');
  });

  it('is found by organization, domain and name', async () => {
    const directory = await GivenDirectory.open();
    const domain = `${randomUUID()}.test`;
    await suite.post('/organization_domains', { domain, organization_id: directory.organization }).expect(201);
    const word = randomUUID();
    await suite.patch(`/admin/directories/${directory.id}`, { name: `People of ${word}` }).expect(200);
    for (const query of [
      `domain=${domain}`,
      `organization_id=${directory.organization}`,
      `search=${word}`,
      `domain=${domain}&search=people&organization_id=${directory.organization}`,
    ])
      expect((await suite.get(`/directories?${query}`).expect(200)).data).toMatchObject([{ id: directory.id, domain }]);
    for (const query of ['domain=nothing.test', `domain=${domain}&search=nobody`]) await suite.get(`/directories?${query}`).expect(200, { data: [] });
  });

  it('shows its people and groups, by their filters', async () => {
    const directory = await GivenDirectory.open();
    const ada = await directory.person({ externalId: 'e-1', name: { givenName: 'Ada' }, emails: [{ value: 'Ada@acme.test' }], title: 'Dr' });
    const bob = await directory.person();
    const cyd = await directory.person({ userName: 'cyd' });
    const group = await directory.group({ externalId: 'g-1', members: [{ value: ada.id }] });
    const empty = await directory.group();
    // Typed clients throw where one of these is not there.
    const always = { email: null, raw_attributes: { schemas: [USER], userName: 'cyd' }, custom_attributes: {}, groups: [], name: null };
    await suite.get(`/directory_users/${cyd.id}`).expect(200, { ...always, idp_id: cyd.id });
    await suite.get(`/directory_groups/${empty.id}`).expect(200, { idp_id: empty.id, raw_attributes: { displayName: empty.displayName } });
    await directory.expect(204, 'DELETE', `/Users/${cyd.id}`);
    await directory.expect(204, 'DELETE', `/Groups/${empty.id}`);
    const list = async (path: string) => (await suite.get(path).expect(200)).data;
    const shown = { id: ada.id, idp_id: 'e-1', email: 'Ada@acme.test', first_name: 'Ada', job_title: 'Dr', groups: [{ id: group.id, idp_id: 'g-1' }] };
    await suite.get(`/directory_users/${ada.id}`).expect(200, { ...shown, custom_attributes: { job_title: 'Dr' } });
    await suite.get(`/directory_groups/${group.id}`).expect(200, { name: group.displayName, directory_id: directory.id });
    expect(await list(`/directory_users?directory=${directory.id}`)).toMatchObject([{ id: bob.id, idp_id: bob.id, groups: [] }, shown]);
    expect(await list(`/directory_users?group=${group.id}`)).toMatchObject([{ id: ada.id, groups: [] }]);
    expect(await list(`/directory_users?directory=${directory.id}&idp_id=e-1`)).toMatchObject([shown]);
    expect(await list(`/directory_users?directory=${directory.id}&email=ada@ACME.test`)).toMatchObject([shown]);
    // The address that is shown of whoever has no other.
    expect(await list(`/directory_users?directory=${directory.id}&email=${bob.userName.toUpperCase()}`)).toMatchObject([{ id: bob.id, email: bob.userName }]);
    expect(await list(`/directory_users?directory=${directory.id}&email=ada@acme.test&group=${group.id}&idp_id=other`)).toEqual([]);
    expect(await list(`/directory_groups?directory=${directory.id}`)).toMatchObject([{ id: group.id }]);
    expect(await list(`/directory_groups?user=${ada.id}`)).toMatchObject([{ id: group.id }]);
    expect(await list(`/directory_groups?user=${bob.id}`)).toEqual([]);
    await suite.get('/directory_users?email=ada@acme.test').expect(422, { errors: [{ field: 'email' }] });
    await suite.get(`/directories/${directory.id}`).expect(200, { metadata: { users: { active: 2, inactive: 0 }, groups: 1 } });
    await suite.patch(`/admin/directories/${directory.id}`, { attributes: [{ name: 'call_me', source: 'name.givenName' }] }).expect(200);
    await suite
      .patch(`/admin/directories/${directory.id}`, {
        attributes: [
          { name: 'call_me', source: 'title' },
          { name: 'first', source: 'name.given' },
        ],
      })
      .expect(422, { errors: [{ code: 'unknown_path', field: 'attributes.1.source' }] });
    await suite.get(`/directory_users/${ada.id}`).expect(200, { custom_attributes: { call_me: 'Ada' } });
  });

  it('tells of people before their groups, of removals before additions, and of nobody after their end', async () => {
    const directory = await GivenDirectory.open();
    const [ada, bob] = [await directory.person(), await directory.person()];
    const group = await directory.group({ members: [{ value: ada.id }] });
    await directory.patch(`/Groups/${group.id}`, 204, { op: 'replace', path: 'members', value: [{ value: bob.id }] });
    await directory.patch(`/Users/${bob.id}`, 200, { op: 'replace', path: 'title', value: 'Dr' });
    const { data } = await suite.eventually(`/events?events=dsync.user.updated&order=desc&limit=1`, { data: [{ data: { id: bob.id } }] });
    expect(data[0].data.previous_attributes).toEqual({ job_title: null, custom_attributes: {}, raw_attributes: { title: null } });
    await suite.eventually(`/events?events=dsync.group.user_added&order=desc&limit=1`, {
      data: [{ data: { user: { id: bob.id, raw_attributes: {} }, group: { id: group.id } } }],
    });
    await directory.expect(204, 'DELETE', `/Users/${bob.id}`);
    await directory.expect(204, 'DELETE', `/Groups/${group.id}`);
    const told = (await directory.told()).filter(([name]) => name.startsWith('dsync.user') || name.startsWith('dsync.group'));
    const named = told.map(([name, id]) => `${name} ${id === ada.id ? 'ada' : id === bob.id ? 'bob' : 'group'}`);
    // Of groups, people are told a moment later, whatever else becomes of them.
    expect(named.filter((name) => !name.startsWith('dsync.user.updated')).slice(0, 4)).toEqual([
      'dsync.user.created ada',
      'dsync.user.created bob',
      'dsync.group.created group',
      'dsync.group.user_added ada',
    ]);
    expect(named.filter((name) => name.includes('user_'))).toEqual([
      'dsync.group.user_added ada',
      'dsync.group.user_removed ada',
      'dsync.group.user_added bob',
    ]);
    expect(named.filter((name) => name.endsWith('bob')).at(-1)).toBe('dsync.user.deleted bob');
    expect(named.filter((name) => name.endsWith('group'))).toEqual(['dsync.group.created group', 'dsync.group.deleted group']);
  });

  it('ends with one event, and all that is in it with it', async () => {
    const directory = await GivenDirectory.open();
    const person = await directory.person();
    const group = await directory.group({ members: [{ value: person.id }] });
    await suite.delete(`/directories/${directory.id}`).expect(202);
    for (const path of [
      `/directories/${directory.id}`,
      `/directory_users/${person.id}`,
      `/directory_groups/${group.id}`,
      `/directory_users?directory=${directory.id}`,
    ])
      await suite.get(path).expect(404);
    expect((await suite.get('/directory_users?limit=100').expect(200)).data.map(({ id }: { readonly id: string }) => id)).not.toContain(person.id);
    await directory.expect(404, 'GET', '/Users');
    await suite.delete(`/directories/${directory.id}`).expect(404);
    await eventuallyRecorded('directory_user.ended', person.id);
    await eventuallyRecorded('directory_group.ended', group.id);
    expect((await directory.told()).map(([name]) => name).filter((name) => name.endsWith('deleted'))).toEqual(['dsync.deleted']);
  });

  it('ends with its organization', async () => {
    const directory = await GivenDirectory.open();
    await directory.person();
    await suite.delete(`/organizations/${directory.organization}`).expect(202);
    await suite.get(`/directories/${directory.id}`).expect(404);
    await directory.expect(404, 'GET', '/Users');
    await eventuallyRecorded('dsync.deleted', directory.id);
  });

  it('shows what came by SCIM, and nothing personal of it', async () => {
    const directory = await GivenDirectory.open();
    const secret = randomUUID();
    await directory.person({ userName: `${secret}@acme.test`, password: secret });
    await directory.filtered('Users', `userName eq "${secret}@acme.test"`);
    await directory.expect(409, 'POST', '/Users', { userName: `${secret}@acme.test` });
    await directory.expect(400, 'GET', `/Users?filter=userName+eq+${secret}`);
    await directory.expect(404, 'GET', `/Users/${secret}@acme.test?attributes=${secret}@acme.test,title&count=x${secret}`);
    await directory.expect(400, 'PATCH', `/Users/${NOBODY}`, {
      Operations: [
        { op: 'Replace', path: `emails[type eq "work" and value eq "${secret}"].value`, value: secret },
        { op: 'Replace', path: 'title', value: secret },
        { op: 'Add', value: { [`${secret}@acme.test`]: secret, 'name.givenName': secret } },
        { op: 'Remove', path: `title ${secret}` },
      ],
    });
    const path = `/admin/directories/${directory.id}/requests`;
    // Each replica notes what it answered within a second.
    const { data } = await suite.eventually(path, {
      data: [
        {
          path: `/Users/${NOBODY}`,
          attributes: ['replace emails[(type eq "…" and value eq "…")].value', 'replace title', 'add …, name.givenName', 'remove …'],
        },
        { path: '/Users/…?count=…&attributes=…,title' },
        { path: '/Users?filter=…', error: 'invalidFilter' },
        { method: 'POST', path: '/Users', status: 409, error: 'uniqueness', attributes: ['userName'] },
        { method: 'GET', path: '/Users?filter=userName eq "…"', status: 200, error: null },
        { method: 'POST', status: 201, attributes: ['schemas', 'userName', 'password'] },
      ],
    });
    expect(Math.max(...data.map((request: { readonly duration_ms: number }) => request.duration_ms))).toBeGreaterThan(0);
    expect(JSON.stringify(data)).not.toContain(secret);
  });

  it.each([30, 130])('shows the last hundred requests, where %i come after others that are shown already', async (amount) => {
    const directory = await GivenDirectory.open();
    const shown = async (): Promise<readonly string[]> => {
      const { data } = await suite.get(`/admin/directories/${directory.id}/requests?limit=100`).expect(200);
      return data.map(({ path }: { readonly path: string }) => path);
    };
    const come = async (count: number): Promise<readonly string[]> => {
      const paths = Array.from({ length: count }, () => `/Users/directory_user_${newUlid(Date.now())}`);
      for (const each of paths) await directory.expect(404, 'GET', each);
      return paths;
    };
    const earlier = await come(90);
    await eventually(async () => expect(await shown()).toEqual(earlier.toReversed()));
    const all = [...earlier, ...(await come(amount))];
    await eventually(async () => expect(await shown()).toEqual(all.slice(-100).reverse()));
  });
});

async function eventuallyRecorded(type: string, id: string): Promise<void> {
  await eventually(async () => {
    const records = await suite.records(type);
    expect(records.map(({ data }) => (data as { readonly id: string }).id)).toContain(id);
  });
}
