import { CreateEnvironment } from '#libs/contracts/src/environments/operations';
import { seedsOf } from '#libs/contracts/src/roles/seeds';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { until } from '#libs/testing/src/until';

describe('the seeds of an environment', () => {
  let suite: GivenSuite;
  beforeAll(async () => void (suite = await givenSuite()));

  const seededOf = async (environment: string) => (await suite.records('authorization_model.seeded')).filter(({ meta }) => meta.environment === environment);

  it('are recorded although nobody asks', async () => {
    const { id } = await suite.call(CreateEnvironment, { name: 'silent' });
    await until(async () => (await seededOf(id)).length > 0);
    expect(await seededOf(id)).toMatchObject([{ version: 1, data: seedsOf(id), public: [] }]);
  });

  it('are recorded once, whoever asks first', async () => {
    const other: Caller = await suite.otherEnvironment('asked');
    const answers = await Promise.all([
      other.get('/authorization/roles').expect(200),
      other.get('/authorization/permissions').expect(200),
      other.post('/authorization/roles', { slug: 'first', name: 'x' }).expect(201),
      other.post('/authorization/permissions', { slug: 'first', name: 'x' }).expect(201),
      other.post('/admin/resource_types', { slug: 'first', name: 'x', parent_type_slugs: ['organization'] }).expect(201),
      other.delete('/admin/roles/member').expect(400),
      other.get('/authorization/roles/admin').expect(200),
    ]);
    const environment = (await suite.records('role.created')).at(-1)!.meta.environment;
    expect(await seededOf(environment)).toHaveLength(1);
    expect(answers[6].id).toBe(seedsOf(environment).roles[0]!.id);
    const { data } = await other.get('/authorization/roles').expect(200);
    expect(data.map(({ slug }: { slug: string }) => slug)).toEqual(['admin', 'member', 'first']);
  });

  it('are what the default role of a membership is before anybody asked for roles', async () => {
    const other = await suite.otherEnvironment('joined');
    const [user, organization] = await Promise.all([
      other.post('/user_management/users', { email: 'first@acme.test' }).expect(201),
      other.post('/organizations', { name: 'Acme' }).expect(201),
    ]);
    await other
      .post('/user_management/organization_memberships', { user_id: user.id, organization_id: organization.id })
      .expect(201, { role: { slug: 'member' } });
  });

  it('stay after a restart as they were', async () => {
    const before = await suite.get('/authorization/roles').expect(200);
    await suite.restart();
    expect(await suite.get('/authorization/roles').expect(200)).toEqual(before);
  });
});
