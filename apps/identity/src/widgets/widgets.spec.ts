import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

const PATH = '/widgets/token';
const SCOPES = ['widgets:users-table:manage', 'widgets:sso:manage'];

let suite: GivenSuite;
let organization_id: string;
beforeAll(async () => {
  suite = await givenSuite();
  organization_id = (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id as string;
});

let people = 0;
const member = async (role_slug: string): Promise<string> => {
  const user_id = (await suite.post('/user_management/users', { email: `person${++people}@widgets.test` }).expect(201)).id as string;
  await suite.post('/user_management/organization_memberships', { organization_id, user_id, role_slug }).expect(201);
  return user_id;
};
const claimsOf = async (body: object) => {
  const { token } = await suite.post(PATH, body).expect(201);
  const clientId = decodeJwt(token as string)
    .iss!.split('/')
    .at(-1)!;
  return jwtVerify(token as string, createRemoteJWKSet(new URL(`${suite.url}/sso/jwks/${clientId}`)), {
    typ: 'widget+jwt',
    audience: 'urn:gatehouse:widgets',
  });
};

describe('a token for a widget', () => {
  it('is valid for an hour, for one member of one organization', async () => {
    const user_id = await member('admin');
    const { payload, protectedHeader } = await claimsOf({ organization_id, user_id, scopes: SCOPES });
    expect(protectedHeader).toMatchObject({ alg: 'RS256', typ: 'widget+jwt', kid: expect.any(String) });
    expect(payload).toMatchObject({
      sub: user_id,
      org_id: organization_id,
      scopes: SCOPES,
      iss: expect.stringContaining('/user_management/client_'),
      jti: expect.any(String),
    });
    expect(payload.exp! - payload.iat!).toBe(3_600);
    expect(payload).not.toHaveProperty('nbf');
  });

  it('has the scopes alone that the roles of the member hold', async () => {
    await suite.post('/authorization/roles', { slug: 'sso-admin', name: 'SSO admin' }).expect(201);
    await suite.put('/authorization/roles/sso-admin/permissions', { permissions: ['widgets:sso:manage'] }).expect(200);
    expect((await claimsOf({ organization_id, user_id: await member('sso-admin'), scopes: SCOPES })).payload['scopes']).toEqual(['widgets:sso:manage']);
    expect((await claimsOf({ organization_id, user_id: await member('member'), scopes: SCOPES })).payload['scopes']).toEqual([]);
    expect((await claimsOf({ organization_id })).payload['scopes']).toEqual([]);
  });

  it('is refused for whoever is no active member, and for scopes of nothing', async () => {
    const user_id = (await suite.post('/user_management/users', { email: 'stranger@widgets.test' }).expect(201)).id as string;
    await suite.post(PATH, { organization_id, user_id, scopes: SCOPES }).expect(404);
    await suite.post(PATH, { organization_id, user_id: 'user_01J0000000000000000000000A' }).expect(404);
    await suite.post(PATH, { organization_id: 'org_01J0000000000000000000000A', user_id }).expect(404);
    await suite.post(PATH, { user_id, scopes: SCOPES }).expect(422, { errors: [{ code: 'required', field: 'organization_id' }] });
    await suite.post(PATH, { organization_id, scopes: ['widgets:everything:manage'] }).expect(422);
    await (await suite.otherEnvironment()).post(PATH, { organization_id }).expect(404);
  });

  it('is made anew for each request, whatever its Idempotency-Key', async () => {
    const ask = async () => (await suite.post(PATH, { organization_id }, { 'Idempotency-Key': 'same' }).expect(201)).token as string;
    expect(await ask()).not.toBe(await ask());
  });
});
