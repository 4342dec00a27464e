import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const SYSTEM = 'widgets:sso:manage';

describe('permissions', () => {
  let suite: GivenSuite;
  beforeAll(async () => void (suite = await givenSuite()));

  const create = (slug: string, fields: object = {}) => suite.post('/authorization/permissions', { slug, name: 'Name', ...fields }).expect(201);
  const announced = async () => (await suite.records()).flatMap((record) => record.public.map(({ name }) => name));
  const since = async (before: readonly string[]) => (await announced()).slice(before.length);

  it('begin with those of the widgets', async () => {
    const other = await suite.otherEnvironment('begun');
    const { data } = await other.get('/authorization/permissions?order=asc').expect(200);
    expect(data).toHaveLength(7);
    for (const permission of data) expect(permission).toMatchObject({ object: 'permission', system: true, resource_type_slug: 'organization' });
    expect(data[0].id).not.toBe((await suite.get('/authorization/permissions?order=asc').expect(200)).data[0].id);
  });

  it('are created, read and listed', async () => {
    const before = await announced();
    const permission = await create('documents:read');
    expect(permission).toEqual({
      object: 'permission',
      id: expect.stringMatching(/^perm_[0-9A-HJKMNP-TV-Z]{26}$/),
      slug: 'documents:read',
      name: 'Name',
      description: null,
      system: false,
      resource_type_slug: 'organization',
      created_at: expect.any(String),
      updated_at: permission.created_at,
    });
    await suite.get('/authorization/permissions/documents:read').expect(200, permission);
    expect((await suite.get('/authorization/permissions').expect(200)).data[0]).toEqual(permission);
    expect(await since(before)).toEqual(['permission.created']);
  });

  it('have any slug that they may have', async () => {
    for (const slug of ['a.b', '*', 'a:*', 'a-b_c', 'x'.repeat(48)]) {
      const { id } = await create(slug);
      await suite.get(`/authorization/permissions/${encodeURIComponent(slug)}`).expect(200, { id, slug });
    }
  });

  it.each([
    ['no slug', { name: 'x' }, 422],
    ['no name', { slug: 'x' }, 422],
    ['a slug in capitals', { slug: 'Read', name: 'x' }, 422],
    ['a slug with a space', { slug: 'a b', name: 'x' }, 422],
    ['a slug of 49 characters', { slug: 'y'.repeat(49), name: 'x' }, 422],
    ['a name of 49 characters', { slug: 'x', name: 'x'.repeat(49) }, 422],
    ['a description of 151 characters', { slug: 'x', name: 'x', description: 'x'.repeat(151) }, 422],
    ['an unknown type', { slug: 'x', name: 'x', resource_type_slug: 'unknown' }, 404],
    ['the slug of a system permission', { slug: SYSTEM, name: 'x' }, 409],
    ['the slug of another', { slug: 'documents:read', name: 'x' }, 409],
  ])('are not created with %s', async (_, body, status) => {
    const code = { 404: 'entity_not_found', 409: 'permission_slug_conflict', 422: 'invalid_request_parameters' }[status];
    await suite.post('/authorization/permissions', body).expect(status, { code });
  });

  it('are about a type of resource', async () => {
    await suite.post('/admin/resource_types', { slug: 'workspace', name: 'x', parent_type_slugs: ['organization'] }).expect(201);
    expect(await create('workspace:read', { resource_type_slug: 'workspace' })).toMatchObject({ resource_type_slug: 'workspace' });
  });

  it('are updated, with an event where something changes', async () => {
    await create('updated');
    const before = await announced();
    await suite.patch('/authorization/permissions/updated', { name: 'Other', description: 'd' }).expect(200, { name: 'Other', description: 'd' });
    await suite.patch('/authorization/permissions/updated', { name: 'Other' }).expect(200, { description: 'd' });
    await suite.patch('/authorization/permissions/updated', { description: null }).expect(200, { name: 'Other', description: null });
    expect(await since(before)).toEqual(['permission.updated', 'permission.updated']);
    await suite.patch('/authorization/permissions/unknown', { name: 'x' }).expect(404, { code: 'entity_not_found' });
  });

  it('of the system stay as they are', async () => {
    await suite.patch(`/authorization/permissions/${SYSTEM}`, { name: 'x' }).expect(403, { code: 'forbidden' });
    await suite.delete(`/authorization/permissions/${SYSTEM}`).expect(403, { code: 'forbidden' });
    await suite.get(`/authorization/permissions/${SYSTEM}`).expect(200, { name: 'Manage single sign-on' });
  });

  it('are deleted, and leave every role that held them', async () => {
    await create('gone');
    await create('stays');
    for (const slug of ['both', 'other']) await suite.post('/authorization/roles', { slug, name: slug }).expect(201);
    await suite.put('/authorization/roles/both/permissions', { permissions: ['gone', 'stays'] }).expect(200);
    await suite.put('/authorization/roles/other/permissions', { permissions: ['stays'] }).expect(200);
    const { id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    const own = `/authorization/organizations/${id}/roles/org-own`;
    await suite.post(`/authorization/organizations/${id}/roles`, { slug: 'org-own', name: 'x' }).expect(201);
    await suite.put(`${own}/permissions`, { permissions: ['stays', 'gone'] }).expect(200);
    const before = await announced();

    expect(await suite.delete('/authorization/permissions/gone')).toMatchObject({ status: 204, text: '' });
    // At once, whether or not the role was told of already.
    await suite.get(own).expect(200, { permissions: ['stays'] });
    await suite.get('/authorization/roles/both').expect(200, { permissions: ['stays'] });
    await suite.get('/authorization/permissions/gone').expect(404);
    await suite.delete('/authorization/permissions/gone').expect(404);
    await suite.put('/authorization/roles/both/permissions', { permissions: ['gone'] }).expect(404, { entity_id: 'gone' });
    await create('gone');
    await suite.get(own).expect(200, { permissions: ['stays'] });
    await suite.get('/authorization/roles/both').expect(200, { permissions: ['stays'] });

    const happened = ['organization_role.updated', 'permission.created', 'permission.deleted', 'role.updated'];
    await eventually(async () => expect([...(await since(before))].sort()).toEqual(happened));
    const [told] = await suite.records('organization_role.updated').then((records) => records.slice(-1));
    expect(told).toMatchObject({ subject: { slug: 'org-own', permissions: ['stays'] }, meta: { organization: id, actor: { source: 'system' } } });
  });

  it('go by pages, also after one that is gone', async () => {
    const other = await suite.otherEnvironment('paged');
    const made: string[] = [];
    for (const slug of ['a', 'b', 'c']) made.push((await other.post('/authorization/permissions', { slug, name: slug }).expect(201)).id);
    const first = await other.get('/authorization/permissions?limit=2').expect(200);
    expect(first).toMatchObject({ data: [{ slug: 'c' }, { slug: 'b' }], list_metadata: { before: null, after: made[1] } });
    await other.delete('/authorization/permissions/b').expect(204);
    expect((await other.get(`/authorization/permissions?limit=1&after=${made[1]}`).expect(200)).data).toMatchObject([{ slug: 'a' }]);
    expect((await other.get(`/authorization/permissions?before=${made[1]}`).expect(200)).data).toMatchObject([{ slug: 'c' }]);
    await suite.get(`/authorization/permissions?after=${made[1]}`).expect(422, { errors: [{ code: 'invalid_cursor', field: 'after' }] });
  });

  it('of another environment are as if they never were', async () => {
    const other = await suite.otherEnvironment('apart');
    await create('ours');
    await other.get('/authorization/permissions/ours').expect(404, { code: 'entity_not_found' });
    await other.patch('/authorization/permissions/ours', { name: 'x' }).expect(404);
    await other.delete('/authorization/permissions/ours').expect(404);
    await other.put('/authorization/roles/member/permissions', { permissions: ['ours'] }).expect(404);
  });

  it('are made once of those who ask for one slug at once', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => suite.post('/authorization/permissions', { slug: 'race', name: 'x' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  it('are made once by a request that is sent again', async () => {
    const send = () => suite.post('/authorization/permissions', { slug: 'again', name: 'x' }, { 'Idempotency-Key': 'again' }).expect(201);
    expect(await send()).toEqual(await send());
  });
});
