import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

describe('the roles of an environment', () => {
  let suite: GivenSuite;
  beforeAll(async () => {
    suite = await givenSuite();
    for (const slug of ['read', 'write']) await suite.post('/authorization/permissions', { slug, name: slug }).expect(201);
  });

  const create = (slug: string, fields: object = {}) => suite.post('/authorization/roles', { slug, name: 'Name', ...fields }).expect(201);
  const announced = async () => (await suite.records()).flatMap((record) => record.public.map(({ name }) => name));
  const since = async (before: readonly string[]) => (await announced()).slice(before.length);
  const slugsOf = ({ data }: { data: readonly { slug: string }[] }) => data.map(({ slug }) => slug);

  it('begin with admin and member, of which nobody was told', async () => {
    const other = await suite.otherEnvironment('begun');
    const roles = await other.get('/authorization/roles').expect(200);
    expect(roles).toMatchObject({
      object: 'list',
      data: [
        { slug: 'admin', type: 'EnvironmentRole' },
        { slug: 'member', permissions: [] },
      ],
      list_metadata: { before: null, after: null },
    });
    expect(roles.data[0].permissions).toHaveLength(7);
    expect((await other.get('/events').expect(200)).data).toEqual([]);
  });

  it('are created at the bottom, read and listed', async () => {
    const before = await announced();
    const role = await create('editor', { description: 'Writes.' });
    expect(role).toEqual({
      object: 'role',
      id: expect.stringMatching(/^role_[0-9A-HJKMNP-TV-Z]{26}$/),
      slug: 'editor',
      name: 'Name',
      description: 'Writes.',
      type: 'EnvironmentRole',
      resource_type_slug: 'organization',
      permissions: [],
      created_at: expect.any(String),
      updated_at: role.created_at,
    });
    await suite.get('/authorization/roles/editor').expect(200, role);
    const { data, list_metadata } = await suite.get('/authorization/roles').expect(200);
    expect(data.at(-1)).toEqual(role);
    expect(list_metadata).toEqual({ before: null, after: null });
    expect(await since(before)).toEqual(['role.created']);
  });

  it.each([
    ['no slug', { name: 'x' }, 422, 'invalid_request_parameters'],
    ['no name', { slug: 'x' }, 422, 'invalid_request_parameters'],
    ['a slug in capitals', { slug: 'X', name: 'x' }, 422, 'invalid_request_parameters'],
    ['a slug with a colon', { slug: 'a:b', name: 'x' }, 422, 'invalid_request_parameters'],
    ['a slug of 49 characters', { slug: 'x'.repeat(49), name: 'x' }, 422, 'invalid_request_parameters'],
    ['a name of 49 characters', { slug: 'x', name: 'x'.repeat(49) }, 422, 'invalid_request_parameters'],
    ['a description of 151 characters', { slug: 'x', name: 'x', description: 'x'.repeat(151) }, 422, 'invalid_request_parameters'],
    ['the slug of a custom role', { slug: 'org-x', name: 'x' }, 400, 'bad_request'],
    ['an unknown type', { slug: 'x', name: 'x', resource_type_slug: 'unknown' }, 404, 'entity_not_found'],
    ['the slug of another', { slug: 'admin', name: 'x' }, 409, 'role_slug_conflict'],
  ])('are not created with %s', async (_, body, status, code) => {
    await suite.post('/authorization/roles', body).expect(status, { code });
  });

  it('are of a type of resource', async () => {
    await suite.post('/admin/resource_types', { slug: 'project', name: 'x', parent_type_slugs: ['organization'] }).expect(201);
    expect(await create('project-lead', { resource_type_slug: 'project' })).toMatchObject({ resource_type_slug: 'project' });
  });

  it('are updated, with an event where something changes', async () => {
    await create('updated');
    const before = await announced();
    await suite.patch('/authorization/roles/updated', { name: 'Other', description: 'd' }).expect(200, { name: 'Other', description: 'd' });
    await suite.patch('/authorization/roles/updated', { name: 'Other' }).expect(200, { description: 'd' });
    await suite.patch('/authorization/roles/updated', {}).expect(200, { name: 'Other' });
    await suite.patch('/authorization/roles/updated', { description: null }).expect(200, { description: null });
    expect(await since(before)).toEqual(['role.updated', 'role.updated']);
    await suite.patch('/authorization/roles/unknown', { name: 'x' }).expect(404, { code: 'entity_not_found' });
  });

  it('hold permissions', async () => {
    await create('holder');
    const before = await announced();
    const path = '/authorization/roles/holder/permissions';
    await suite.put(path, { permissions: ['write', 'read', 'write'] }).expect(200, { permissions: ['write', 'read'] });
    await suite.put(path, { permissions: ['read', 'write'] }).expect(200, { permissions: ['write', 'read'] });
    await suite.put(path, { permissions: [] }).expect(200, { permissions: [] });
    await suite.post(path, { slug: 'read' }).expect(200, { permissions: ['read'] });
    await suite.post(path, { slug: 'read' }).expect(200, { permissions: ['read'] });
    expect(await since(before)).toEqual(['role.updated', 'role.updated', 'role.updated']);
    await suite.post(path, { slug: 'unknown' }).expect(404, { code: 'entity_not_found', entity_id: 'unknown' });
    await suite.put(path, { permissions: ['read', 'unknown'] }).expect(404, { entity_id: 'unknown' });
    await suite.put(path, {}).expect(422);
    await suite.post(path, { slug: 'Read' }).expect(422);
    await suite.put('/authorization/roles/unknown/permissions', { permissions: [] }).expect(404);
    await suite.post('/authorization/roles/unknown/permissions', { slug: 'read' }).expect(404);
  });

  it('tell of themselves what they are', async () => {
    await create('told');
    await suite.post('/authorization/roles/told/permissions', { slug: 'write' }).expect(200);
    const [record] = await suite.records('role.updated').then((records) => records.slice(-1));
    expect(record).toMatchObject({ subject: { object: 'role', slug: 'told', resource_type_slug: 'organization', permissions: ['write'] } });
    expect(record!.meta).not.toHaveProperty('organization');
  });

  it('are deleted, except the default one', async () => {
    await create('deleted');
    const before = await announced();
    expect(await suite.delete('/admin/roles/deleted')).toMatchObject({ status: 204, text: '' });
    expect(await since(before)).toEqual(['role.deleted']);
    await suite.get('/authorization/roles/deleted').expect(404);
    await suite.delete('/admin/roles/deleted').expect(404, { code: 'entity_not_found' });
    await suite.delete('/admin/roles/member').expect(400, { code: 'bad_request' });
    await suite.get('/authorization/roles/member').expect(200);
    await suite.delete('/admin/roles/priority').expect(404, { code: 'entity_not_found' });
  });

  it('have an order of priority', async () => {
    const other = await suite.otherEnvironment('ordered');
    for (const slug of ['a', 'b']) await other.post('/authorization/roles', { slug, name: slug }).expect(201);
    const put = (...role_slugs: readonly string[]) => other.put('/admin/roles/priority', { role_slugs });
    expect(slugsOf(await put('b', 'admin').expect(200))).toEqual(['b', 'admin', 'member', 'a']);
    expect(slugsOf(await other.get('/authorization/roles').expect(200))).toEqual(['b', 'admin', 'member', 'a']);
    await eventually(async () => {
      const { data } = await other.get('/events?limit=100').expect(200);
      expect(data.map(({ event, data: role }: { event: string; data: { slug: string } }) => `${event} ${role.slug}`).slice(2)).toEqual([
        'role.updated b',
        'role.updated admin',
        'role.updated member',
        'role.updated a',
      ]);
    });
    expect(slugsOf(await put('b', 'admin', 'member', 'a').expect(200))).toEqual(['b', 'admin', 'member', 'a']);
    expect((await other.get('/events?limit=100').expect(200)).data).toHaveLength(6);
    await other.post('/authorization/roles', { slug: 'c', name: 'c' }).expect(201);
    expect(slugsOf(await other.get('/authorization/roles').expect(200)).at(-1)).toBe('c');
    await put('unknown').expect(404, { code: 'entity_not_found' });
    await put('a', 'a').expect(422, { errors: [{ code: 'duplicate', field: 'role_slugs.1' }] });
    await put().expect(422);
  });

  it('of another environment are as if they never were', async () => {
    const other = await suite.otherEnvironment('apart');
    await create('ours');
    await other.get('/authorization/roles/ours').expect(404, { code: 'entity_not_found' });
    await other.patch('/authorization/roles/ours', { name: 'x' }).expect(404);
    await other.delete('/admin/roles/ours').expect(404);
    await other.put('/admin/roles/priority', { role_slugs: ['ours'] }).expect(404);
    expect(await other.post('/authorization/roles', { slug: 'ours', name: 'theirs' }).expect(201)).toMatchObject({ name: 'theirs' });
    await suite.get('/authorization/roles/ours').expect(200, { name: 'Name' });
  });

  it('are made once of those who ask for one slug at once', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => suite.post('/authorization/roles', { slug: 'race', name: 'x' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });
});
