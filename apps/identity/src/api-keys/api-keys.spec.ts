import { hash, randomUUID } from 'node:crypto';
import { FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const ID = /^api_key_[0-9A-HJKMNP-TV-Z]{26}$/;
const VALUE = /^sk_[\w-]{43}$/;
const NEVER = 'api_key_01J0000000000000000000000A';
const MEMBERSHIPS = '/user_management/organization_memberships';
/** Of what is there from the beginning. */
const PERMISSION = 'widgets:sso:manage';

interface Made {
  readonly id: string;
  readonly value: string;
  readonly created_at: string;
}

describe('API keys', () => {
  let suite: GivenSuite;
  let users = 0;
  beforeAll(async () => void (suite = await givenSuite()));

  const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const user = async (): Promise<string> => (await suite.post('/user_management/users', { email: `ada${users++}@keys.test` }).expect(201)).id;
  const join = async (organization_id: string, user_id: string) => suite.post(MEMBERSHIPS, { organization_id, user_id }).expect(201);
  const ofOrganization = (id: string): string => `/organizations/${id}/api_keys`;
  const ofUser = (id: string): string => `/user_management/users/${id}/api_keys`;
  const create = (organizationId: string, fields: object = {}): Promise<Made> =>
    suite.post(ofOrganization(organizationId), { name: 'Build server', ...fields }).expect(201);
  const createForUser = (organization_id: string, userId: string, fields: object = {}): Promise<Made> =>
    suite.post(ofUser(userId), { name: 'Laptop', organization_id, ...fields }).expect(201);
  const idsOf = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id);
  /** What every gateway answers. */
  const validated = async (value: string, { key }: Pick<Caller, 'key'> = suite) => {
    const answers = await Promise.all(suite.urls.map((url) => new Caller(() => url, key).post('/api_keys/validations', { value }).expect(200)));
    for (const answer of answers) expect(Object.keys(answer)).toEqual(['api_key']);
    for (const { api_key } of answers) expect(api_key?.id).toBe(answers[0].api_key?.id);
    return answers[0].api_key;
  };
  const eventsOf = async (id: string) =>
    (await suite.records()).filter(({ stream }) => stream.endsWith(id)).flatMap((record) => record.public.map(({ name }) => [name, record.subject] as const));

  it('of an organization are created, shown once, valid and listed', async () => {
    const acme = await organization();
    const { value, ...key } = await create(acme, { permissions: [PERMISSION, PERMISSION] });
    expect(value).toMatch(VALUE);
    expect(key).toEqual({
      ...{ object: 'api_key', id: expect.stringMatching(ID), owner: { type: 'organization', id: acme }, name: 'Build server' },
      ...{ obfuscated_value: `sk_…${value.slice(-4)}`, last_used_at: null, expires_at: null, permissions: [PERMISSION] },
      ...{ created_at: expect.any(String), updated_at: key.created_at },
    });
    expect(await validated(value)).toEqual({ ...key, last_used_at: expect.any(String) });
    expect(await suite.get(ofOrganization(acme)).expect(200)).toMatchObject({ data: [{ id: key.id }], list_metadata: { before: null, after: null } });
    expect(await eventsOf(key.id)).toEqual([['api_key.created', key]]);
    expect(JSON.stringify(await suite.records())).not.toContain(value);
  });

  it('of a user work in one organization', async () => {
    const [acme, ada] = [await organization(), await user()];
    await join(acme, ada);
    const { value, ...key } = await createForUser(acme, ada);
    expect(key).toMatchObject({ owner: { type: 'user', id: ada, organization_id: acme }, permissions: [] });
    expect(await validated(value)).toMatchObject({ id: key.id, owner: { type: 'user', id: ada, organization_id: acme } });
    expect(idsOf(await suite.get(ofUser(ada)).expect(200))).toEqual([key.id]);
    expect(idsOf(await suite.get(ofOrganization(acme)).expect(200))).toEqual([]);
  });

  it.each([
    ['no name', {}, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a name of 256 characters', { name: 'n'.repeat(256) }, 'name'],
    ['no time', { name: 'n', expires_at: 'tomorrow' }, 'expires_at'],
    ['a time that has passed', { name: 'n', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    ['a permission that there is not', { name: 'n', permissions: [PERMISSION, 'never:was'] }, 'permissions.1'],
  ])('are not created with %s', async (_, body, field) => {
    const refusal = { code: 'invalid_request_parameters', errors: [{ field: expect.stringContaining(field) }] };
    const [acme, ada] = [await organization(), await user()];
    await join(acme, ada);
    await suite.post(ofOrganization(acme), body).expect(422, refusal);
    await suite.post(ofUser(ada), { organization_id: acme, ...body }).expect(422, refusal);
  });

  it('may have permissions from the moment that they are there, until they are deleted', async () => {
    const acme = await organization();
    const slug = `keys:${randomUUID().slice(0, 8)}`;
    const refusal = { errors: [{ code: 'permission_not_found', field: 'permissions.0' }] };
    await suite.post(ofOrganization(acme), { name: 'n', permissions: [slug] }).expect(422, refusal);
    await suite.post('/authorization/permissions', { slug, name: 'Keys' }).expect(201);
    const key = await create(acme, { permissions: [slug] });
    await suite.delete(`/authorization/permissions/${slug}`).expect(204);
    await suite.post(ofOrganization(acme), { name: 'n', permissions: [slug] }).expect(422, refusal);
    expect(await validated(key.value)).toMatchObject({ permissions: [slug] });
  });

  it('are not created for what is not there', async () => {
    const [acme, ada] = [await organization(), await user()];
    await suite.post(ofOrganization('org_01J0000000000000000000000A'), { name: 'n' }).expect(404, { code: 'entity_not_found' });
    await suite.post(ofUser('user_01J0000000000000000000000A'), { name: 'n', organization_id: acme }).expect(404);
    await suite.post(ofUser(ada), { name: 'n', organization_id: 'org_01J0000000000000000000000A' }).expect(404);
    await suite.post(ofUser(ada), { name: 'n' }).expect(422, { errors: [{ field: 'organization_id' }] });
  });

  it('of a user need an active membership, whenever they are asked for', async () => {
    const [acme, ada] = [await organization(), await user()];
    const asked = { name: 'n', organization_id: acme };
    const refusal = { code: 'user_not_organization_member', errors: [{ code: 'user_not_organization_member', field: 'organization_id' }] };
    await suite.post(ofUser(ada), asked).expect(400, refusal);
    const membership = await join(acme, ada);
    const { value } = await createForUser(acme, ada);
    await suite.put(`${MEMBERSHIPS}/${membership.id}/deactivate`).expect(200);
    expect(await validated(value)).toBeNull();
    await suite.post(ofUser(ada), asked).expect(400, refusal);
    await suite.put(`${MEMBERSHIPS}/${membership.id}/reactivate`).expect(200);
    expect(await validated(value)).not.toBeNull();
  });

  it('show the same value when their creation is repeated', async () => {
    const acme = await organization();
    const headers = { 'Idempotency-Key': randomUUID() };
    const ask = () => suite.post(ofOrganization(acme), { name: 'Once' }, headers).expect(201);
    const [first, twin] = await Promise.all([ask(), ask()]);
    expect(twin).toEqual(first);
    expect(await ask()).toEqual(first);
    expect(idsOf(await suite.get(ofOrganization(acme)).expect(200))).toEqual([first.id]);
    expect((await create(acme)).value).not.toBe(first.value);
  });

  it('are listed page by page, those of an owner, of a user those of one organization', async () => {
    const [acme, other, ada] = [await organization(), await organization(), await user()];
    await join(acme, ada);
    await join(other, ada);
    const [first, second, third] = [await create(acme), await create(acme), await create(acme)];
    expect(await suite.get(`${ofOrganization(acme)}?limit=2`).expect(200)).toMatchObject({
      data: [{ id: third.id }, { id: second.id }],
      list_metadata: { before: null, after: second.id },
    });
    expect(idsOf(await suite.get(`${ofOrganization(acme)}?limit=2&after=${second.id}`).expect(200))).toEqual([first.id]);
    const [here, there] = [await createForUser(acme, ada), await createForUser(other, ada)];
    expect(idsOf(await suite.get(ofUser(ada)).expect(200))).toEqual([there.id, here.id]);
    expect(idsOf(await suite.get(`${ofUser(ada)}?organization_id=${acme}`).expect(200))).toEqual([here.id]);
    await suite.get(`${ofUser(ada)}?organization_id=org_01J0000000000000000000000A`).expect(404);
    await suite.get(ofUser('user_01J0000000000000000000000A')).expect(404);
    await suite.get(ofOrganization('org_01J0000000000000000000000A')).expect(404);
    await suite.get(`${ofOrganization(acme)}?after=${NEVER}`).expect(422, { errors: [{ field: 'after', code: 'invalid_cursor' }] });
  });

  it('that are deleted are valid nowhere with the next request', async () => {
    const acme = await organization();
    const { id, value } = await create(acme);
    expect(await validated(value)).not.toBeNull();
    await suite.delete(`/api_keys/${id}`).expect(204);
    expect(await validated(value)).toBeNull();
    expect(idsOf(await suite.get(ofOrganization(acme)).expect(200))).toEqual([]);
    await suite.delete(`/api_keys/${id}`).expect(404, { code: 'entity_not_found' });
    await suite.post(`/api_keys/${id}/expire`, {}).expect(404);
    await suite.delete(`/api_keys/${NEVER}`).expect(404);
    expect((await eventsOf(id)).map(([name, subject]) => [name, (subject as Made).id])).toEqual([
      ['api_key.created', id],
      ['api_key.revoked', id],
    ]);
  });

  it('expire at once, at a given time, or never', async () => {
    const acme = await organization();
    const { id, value } = await create(acme, { expires_at: '2098-12-31T23:00:00-01:00' });
    const before = '2099-01-01T00:00:00.000Z';
    expect(await validated(value)).toMatchObject({ expires_at: before });
    expect(await suite.post(`/api_keys/${id}/expire`, { expires_at: null }).expect(200)).toMatchObject({ id, expires_at: null });
    await suite.post(`/api_keys/${id}/expire`, { expires_at: before }).expect(200, { expires_at: before });
    const expired = await suite.post(`/api_keys/${id}/expire`, {}).expect(200);
    expect(expired.expires_at < before).toBe(true);
    expect(expired).not.toHaveProperty('value');
    expect(await validated(value)).toBeNull();
    await suite.post(`/api_keys/${id}/expire`, { expires_at: null }).expect(409, { code: 'api_key_already_expired' });
    await suite.post(`/api_keys/${NEVER}/expire`, {}).expect(404);
    await suite.post(`/api_keys/${id}/expire`, { expires_at: 'soon' }).expect(422, { errors: [{ field: 'expires_at' }] });
    expect(await suite.get(ofOrganization(acme)).expect(200)).toMatchObject({ data: [{ id, expires_at: expired.expires_at }] });
    const events = await suite.eventually('/events?events=api_key.updated&limit=100', { object: 'list' });
    const ours = events.data.filter((event: { data: { id: string } }) => event.data.id === id);
    const before3 = [{ expires_at: before }, { expires_at: null }, { expires_at: before }];
    expect(ours).toMatchObject(before3.map((previous_attributes) => ({ data: { previous_attributes }, context: { previous_attributes } })));
  });

  it('stop being valid when their time comes', async () => {
    const { value } = await create(await organization(), { expires_at: new Date(Date.now() + 2_000).toISOString() });
    expect(await validated(value)).not.toBeNull();
    await eventually(async () => expect(await validated(value)).toBeNull());
  });

  it('end with their organization, user and membership: at once, and are told of', async () => {
    const [acme, ada, eve] = [await organization(), await user(), await user()];
    const left = await join(acme, ada);
    await join(acme, eve);
    const [ofAcme, ofAda, ofEve] = [await create(acme), await createForUser(acme, ada), await createForUser(acme, eve)];
    const gone = async ({ id, value }: Made) => {
      expect(await validated(value)).toBeNull();
      await suite.delete(`/api_keys/${id}`).expect(404);
    };
    await suite.delete(`${MEMBERSHIPS}/${left.id}`).expect(200);
    await gone(ofAda);
    expect(idsOf(await suite.get(ofUser(ada)).expect(200))).toEqual([]);
    // Whoever joins again does not find the keys of the time before.
    await join(acme, ada);
    await gone(ofAda);
    await suite.delete(`/user_management/users/${eve}`).expect(200);
    await gone(ofEve);
    const another = await createForUser(acme, ada);
    await suite.delete(`/organizations/${acme}`).expect(202);
    await gone(ofAcme);
    await gone(another);
    expect(idsOf(await suite.get(ofUser(ada)).expect(200))).toEqual([]);
    await eventually(async () => {
      const { data } = await suite.get('/events?events=api_key.revoked&limit=100').expect(200);
      const revoked = data.map((event: { data: Made }) => event.data.id);
      for (const { id } of [ofAda, ofEve, ofAcme, another]) expect(revoked.filter((one: string) => one === id)).toHaveLength(1);
    });
  });

  it('never work in another environment, nor as a key of this API, and keys of this API are none of them', async () => {
    const acme = await organization();
    const { id, value } = await create(acme);
    const other = await suite.otherEnvironment('keyless');
    expect(await validated(value, other)).toBeNull();
    await other.delete(`/api_keys/${id}`).expect(404);
    await other.post(`/api_keys/${id}/expire`, {}).expect(404);
    expect(await validated(value)).not.toBeNull();

    for (const url of suite.urls) await new Caller(() => url, value).get('/organizations').expect(401);
    await expect(suite.call(FindEnvironmentKey, { hash: hash('sha256', value, 'hex') })).rejects.toMatchObject({ code: 'unauthorized' });
    expect(await validated(suite.key)).toBeNull();
    expect(await validated(other.key, other)).toBeNull();
  });

  it.each(['', 'sk_', 'nonsense', `sk_${'a'.repeat(43)}`, 'ü'.repeat(1_000)])('are asked for by any text: %p', async (value) => {
    if (value === '') await suite.post('/api_keys/validations', { value }).expect(422, { errors: [{ field: 'value' }] });
    else expect(await validated(value)).toBeNull();
  });

  it('tell when they were used last, also after a restart, and nothing of what never was', async () => {
    const acme = await organization();
    const [used, unused] = [await create(acme), await create(acme)];
    const { last_used_at } = await validated(used.value);
    expect(last_used_at >= used.created_at).toBe(true);
    const shown = { data: [{ id: unused.id, last_used_at: null }, { id: used.id }] };
    await eventually(async () => {
      for (const url of suite.urls) {
        const { data } = await new Caller(() => url, suite.key).get(ofOrganization(acme)).expect(200, shown);
        expect(data[1].last_used_at >= last_used_at).toBe(true);
      }
    });
    if (suite.urls.length === 1) await suite.restart();
    const { data } = await suite.get(ofOrganization(acme)).expect(200, shown);
    expect(data[1].last_used_at >= last_used_at).toBe(true);
    expect((await suite.post(`/api_keys/${used.id}/expire`, {}).expect(200)).last_used_at).toBe(data[1].last_used_at);
  });

  it('are asked for with a value', async () => {
    await suite.post('/api_keys/validations', {}).expect(422, { errors: [{ field: 'value' }] });
    await suite.post('/api_keys/validations', { value: 7 }).expect(422, { errors: [{ field: 'value' }] });
    await suite.post('/api_keys/validations', { value: 'v'.repeat(4_097) }).expect(422, { errors: [{ field: 'value' }] });
  });
});
