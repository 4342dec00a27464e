import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('resource types', () => {
  let suite: GivenSuite;
  beforeAll(async () => void (suite = await givenSuite()));

  const create = (slug: string, ...parent_type_slugs: readonly string[]) =>
    suite
      .post('/admin/resource_types', { slug, name: slug, parent_type_slugs: parent_type_slugs.length === 0 ? ['organization'] : parent_type_slugs })
      .expect(201);
  const slugsOf = ({ data }: { data: readonly { slug: string }[] }) => data.map(({ slug }) => slug);
  const typesOf = async () => (await suite.records()).map(({ type }) => type).filter((type) => type.startsWith('resource_type'));

  it('are created, read and listed', async () => {
    const type = await suite
      .post('/admin/resource_types', { slug: 'workspace', name: 'Workspace', description: null, parent_type_slugs: ['organization'] })
      .expect(201);
    expect(type).toEqual({
      object: 'resource_type',
      id: expect.stringMatching(/^resource_type_[0-9A-HJKMNP-TV-Z]{26}$/),
      slug: 'workspace',
      name: 'Workspace',
      description: null,
      parent_type_slugs: ['organization'],
      created_at: expect.stringMatching(TIME),
      updated_at: type.created_at,
    });
    await suite.get('/admin/resource_types/workspace').expect(200, type);
    const other = await create('project', 'workspace', 'organization');
    expect(await suite.get('/admin/resource_types').expect(200)).toEqual({ object: 'list', data: [other, type], list_metadata: { before: null, after: null } });
    expect((await suite.get('/admin/resource_types?order=asc&limit=1').expect(200)).list_metadata).toEqual({ before: null, after: type.id });
  });

  it.each([
    ['no slug', { name: 'x', parent_type_slugs: ['organization'] }, 422, 'invalid_request_parameters'],
    ['a slug in capitals', { slug: 'X', name: 'x', parent_type_slugs: ['organization'] }, 422, 'invalid_request_parameters'],
    ['a slug of 49 characters', { slug: 'x'.repeat(49), name: 'x', parent_type_slugs: ['organization'] }, 422, 'invalid_request_parameters'],
    ['a name of 49 characters', { slug: 'x', name: 'x'.repeat(49), parent_type_slugs: ['organization'] }, 422, 'invalid_request_parameters'],
    [
      'a description of 151 characters',
      { slug: 'x', name: 'x', description: 'x'.repeat(151), parent_type_slugs: ['organization'] },
      422,
      'invalid_request_parameters',
    ],
    ['no parent types', { slug: 'x', name: 'x' }, 422, 'invalid_request_parameters'],
    ['an empty list of parent types', { slug: 'x', name: 'x', parent_type_slugs: [] }, 422, 'invalid_request_parameters'],
    ['an unknown parent type', { slug: 'x', name: 'x', parent_type_slugs: ['unknown'] }, 404, 'entity_not_found'],
    ['itself as its parent type', { slug: 'x', name: 'x', parent_type_slugs: ['x'] }, 404, 'entity_not_found'],
    ['the slug of another', { slug: 'workspace', name: 'x', parent_type_slugs: ['organization'] }, 409, 'resource_type_slug_conflict'],
    ['the slug of the built-in type', { slug: 'organization', name: 'x', parent_type_slugs: ['organization'] }, 409, 'resource_type_slug_conflict'],
  ])('are not created with %s', async (_, body, status, code) => {
    await suite.post('/admin/resource_types', body).expect(status, { code });
  });

  it('are updated, and keep what is not given', async () => {
    const before = await create('updated');
    const after = await suite.patch('/admin/resource_types/updated', { description: 'd' }).expect(200, { name: 'updated', description: 'd', slug: 'updated' });
    expect(after.updated_at >= before.updated_at).toBe(true);
    await suite.patch('/admin/resource_types/updated', { description: null, slug: 'other' }).expect(200, { slug: 'updated', description: null });
    const events = await typesOf();
    await suite.patch('/admin/resource_types/updated', { name: 'updated', parent_type_slugs: ['organization'] }).expect(200);
    await suite.patch('/admin/resource_types/updated', {}).expect(200);
    await suite.patch('/admin/resource_types/updated', { name: null, parent_type_slugs: null }).expect(200, { name: 'updated' });
    expect(await typesOf()).toEqual(events);
    await suite.patch('/admin/resource_types/unknown', { name: 'x' }).expect(404, { code: 'entity_not_found', entity_id: 'unknown' });
    await suite.patch('/admin/resource_types/organization', { name: 'x' }).expect(404);
    await suite.patch('/admin/resource_types/updated', { parent_type_slugs: ['unknown'] }).expect(404);
  });

  it('are no more than five deep, and lie in no circle', async () => {
    for (const [slug, parent] of [
      ['d1', 'organization'],
      ['d2', 'd1'],
      ['d3', 'd2'],
      ['d4', 'd3'],
      ['d5', 'd4'],
    ] as const)
      await create(slug, parent);
    await suite.post('/admin/resource_types', { slug: 'd6', name: 'x', parent_type_slugs: ['d5'] }).expect(400, { code: 'bad_request' });
    await suite.patch('/admin/resource_types/d1', { parent_type_slugs: ['d3'] }).expect(400, { code: 'bad_request' });
    await suite.patch('/admin/resource_types/d1', { parent_type_slugs: ['organization', 'd1'] }).expect(400, { code: 'bad_request' });
    await suite.patch('/admin/resource_types/d5', { parent_type_slugs: ['d4', 'organization'] }).expect(200, { parent_type_slugs: ['d4', 'organization'] });
  });

  it('are deleted when nothing uses them', async () => {
    await create('leaf');
    await create('below', 'leaf');
    await suite.delete('/admin/resource_types/leaf').expect(409, { code: 'resource_type_in_use' });
    await suite.delete('/admin/resource_types/below').expect(204);
    await suite.post('/authorization/permissions', { slug: 'leaf:read', name: 'x', resource_type_slug: 'leaf' }).expect(201);
    await suite.delete('/admin/resource_types/leaf').expect(409, { code: 'resource_type_in_use' });
    await suite.delete('/authorization/permissions/leaf:read').expect(204);
    await suite.post('/authorization/roles', { slug: 'leafer', name: 'x', resource_type_slug: 'leaf' }).expect(201);
    await suite.delete('/admin/resource_types/leaf').expect(409, { code: 'resource_type_in_use' });
    await suite.delete('/admin/roles/leafer').expect(204);
    const { id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    await suite.post(`/authorization/organizations/${id}/roles`, { slug: 'org-leafer', name: 'x', resource_type_slug: 'leaf' }).expect(201);
    await suite.delete('/admin/resource_types/leaf').expect(409, { code: 'resource_type_in_use' });
    await suite.delete(`/authorization/organizations/${id}/roles/org-leafer`).expect(204);
    const answer = await suite.delete('/admin/resource_types/leaf');
    expect(answer).toMatchObject({ status: 204, text: '' });
    await suite.get('/admin/resource_types/leaf').expect(404);
    await suite.delete('/admin/resource_types/leaf').expect(404, { code: 'entity_not_found' });
    await suite.delete('/admin/resource_types/organization').expect(404);
  });

  it('stay while there are resources of them, and so do their parent types', async () => {
    await create('above');
    await create('beside');
    await create('lived-in', 'above');
    const { id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    const resource = async (resource_type_slug: string, parent: object = {}): Promise<string> =>
      (await suite.post('/authorization/resources', { organization_id: id, resource_type_slug, external_id: 'x', name: 'x', ...parent }).expect(201)).id;
    const above = await resource('above');
    const inside = await resource('lived-in', { parent_resource_id: above });
    await suite.delete('/admin/resource_types/lived-in').expect(409, { code: 'resource_type_in_use' });
    await suite.patch('/admin/resource_types/lived-in', { parent_type_slugs: ['beside'] }).expect(409, { code: 'resource_type_in_use' });
    await suite.patch('/admin/resource_types/lived-in', { parent_type_slugs: ['beside', 'above'], name: 'Both' }).expect(200, { name: 'Both' });
    await suite.delete(`/authorization/resources/${inside}`).expect(204);
    await suite.patch('/admin/resource_types/lived-in', { parent_type_slugs: ['beside'] }).expect(200, { parent_type_slugs: ['beside'] });
    await suite.delete('/admin/resource_types/lived-in').expect(204);
    await suite.delete('/admin/resource_types/above').expect(409, { code: 'resource_type_in_use' });
    await suite.delete(`/authorization/resources/${above}`).expect(204);
    await suite.delete('/admin/resource_types/above').expect(204);
  });

  it('are free as soon as what was of them is dead, long before all of that was told to be deleted', async () => {
    await create('felled');
    await create('twig', 'felled', 'organization');
    const { id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    const resource = (resource_type_slug: string, external_id: string, parent: object = {}) =>
      suite.post('/authorization/resources', { organization_id: id, resource_type_slug, external_id, name: 'x', ...parent }).expect(201);
    const felled = await resource('felled', 'root');
    for (let number = 0; number < 20; number++) await resource('twig', `twig-${number}`, { parent_resource_id: felled.id });
    await suite.delete(`/authorization/resources/${felled.id}?cascade_delete=true`).expect(204);
    await suite.patch('/admin/resource_types/twig', { parent_type_slugs: ['organization'] }).expect(200);
    await suite.delete('/admin/resource_types/felled').expect(204);
    await resource('twig', 'last');
    await suite.post(`/authorization/organizations/${id}/roles`, { slug: 'org-gardener', name: 'x', resource_type_slug: 'twig' }).expect(201);
    await suite.delete('/admin/resource_types/twig').expect(409, { code: 'resource_type_in_use' });
    await suite.delete(`/organizations/${id}`).expect(202);
    await suite.delete('/admin/resource_types/twig').expect(204);
  });

  it('go by pages, also after one that is gone', async () => {
    const other = await suite.otherEnvironment('paged-types');
    const ids: string[] = [];
    for (const slug of ['a', 'b', 'c'])
      ids.push((await other.post('/admin/resource_types', { slug, name: slug, parent_type_slugs: ['organization'] }).expect(201)).id);
    await other.delete('/admin/resource_types/b').expect(204);
    expect(slugsOf(await other.get(`/admin/resource_types?after=${ids[1]}`).expect(200))).toEqual(['a']);
    expect(slugsOf(await other.get(`/admin/resource_types?order=asc&after=${ids[1]}`).expect(200))).toEqual(['c']);
    for (const cursor of ['resource_type_01HZZZZZZZZZZZZZZZZZZZZZZZ', 'perm_01HZZZZZZZZZZZZZZZZZZZZZZZ', (await create('foreign')).id])
      await other.get(`/admin/resource_types?after=${cursor}`).expect(422, { errors: [{ code: 'invalid_cursor', field: 'after' }] });
  });

  it('of another environment are as if they never were', async () => {
    const other: Caller = await suite.otherEnvironment('apart-types');
    await create('ours');
    await other.get('/admin/resource_types/ours').expect(404, { code: 'entity_not_found' });
    expect((await other.get('/admin/resource_types').expect(200)).data).toEqual([]);
    await other.post('/admin/resource_types', { slug: 'x', name: 'x', parent_type_slugs: ['ours'] }).expect(404);
    await other.post('/admin/resource_types', { slug: 'ours', name: 'theirs', parent_type_slugs: ['organization'] }).expect(201);
    await suite.get('/admin/resource_types/ours').expect(200, { name: 'ours' });
  });

  it('are not announced', async () =>
    expect((await suite.records()).filter(({ type }) => type.startsWith('resource_type')).flatMap((record) => record.public)).toEqual([]));

  it('are made once of those who ask for one slug at once', async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => suite.post('/admin/resource_types', { slug: 'race', name: 'x', parent_type_slugs: ['organization'] })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });
});
