import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id as string;
const pathOf = (id: string): string => `/admin/organizations/${id}/authentication_policy`;

describe('the authentication policy of an organization', () => {
  it('begins with everything allowed, and changes where it is told to', async () => {
    const id = await organization();
    const before = await suite
      .get(pathOf(id))
      .expect(200, { organization_id: id, sso: 'optional', mfa: 'inherit', jit_membership: true, invitations: 'allowed', updated_at: null });
    expect(Object.values(before.methods)).toEqual(Array.from({ length: 6 }, () => true));
    await suite
      .patch(pathOf(id), { methods: { password: false }, sso: 'required' })
      .expect(200, { methods: { ...before.methods, password: false }, sso: 'required', mfa: 'inherit' });
    await suite.patch(pathOf(id), { mfa: 'required' }).expect(200, { methods: { password: false }, sso: 'required', mfa: 'required' });
    await suite.get(pathOf(await organization())).expect(200, { ...before, organization_id: expect.any(String) });
  });

  it('records who changed what, as of its organization', async () => {
    const id = await organization();
    await suite.patch(pathOf(id), { sso: 'required' }).expect(200);
    await suite.patch(pathOf(id), { sso: 'required', methods: {} }).expect(200);
    const records = (await suite.records('authentication_policy.changed')).filter(({ meta }) => meta.organization === id);
    expect(records.map(({ data, meta }) => [data, meta.actor.source])).toEqual([[{ organization_id: id, sso: 'required' }, 'api']]);
  });

  it('is that of a living organization of this environment', async () => {
    const id = await organization();
    const other = await suite.otherEnvironment();
    await other.get(pathOf(id)).expect(404);
    await other.patch(pathOf(id), { sso: 'required' }).expect(404);
    await suite.delete(`/organizations/${id}`).expect(202);
    await suite.get(pathOf(id)).expect(404);
    await suite.patch(pathOf(id), {}).expect(404);
  });

  it.each([{ sso: 'always' }, { mfa: 'off' }, { methods: { password: 'no' } }, { jit_membership: 1 }, { invitations: false }])('refuses %j', async (body) => {
    await suite.patch(pathOf(await organization()), body).expect(422);
  });
});
