import { givenSuite } from '#libs/testing/src/suite';

const PATH = '/user_management/organization_memberships';

describe('where memberships have one role only', () => {
  it('more are refused by name', async () => {
    const suite = await givenSuite({ variables: { MULTIPLE_ROLES: 'off' } });
    const organization_id = (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
    const user_id = (await suite.post('/user_management/users', { email: 'ada@acme.test' }).expect(201)).id;
    const refusal = { code: 'multiple_roles_not_enabled', errors: [{ code: 'multiple_roles_not_enabled', field: 'role_slugs' }] };
    await suite.post(PATH, { organization_id, user_id, role_slugs: ['admin', 'member'] }).expect(422, refusal);
    const { id } = await suite.post(PATH, { organization_id, user_id, role_slugs: ['admin'] }).expect(201);
    await suite.put(`${PATH}/${id}`, { role_slugs: ['member', 'admin'] }).expect(422, refusal);
  });
});
