import { createRemoteJWKSet } from 'jose';
import { ListEnvironments } from '#libs/contracts/src/environments/operations';
import { RotateTokenKeys } from '#libs/contracts/src/token-keys/operations';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

const environmentOf = async (id: string) => (await suite.call(ListEnvironments, {})).find((environment) => environment.id === id)!;

describe('the key set of an environment', () => {
  it('is there for everybody, before anything was signed, and may be kept for 5 minutes', async () => {
    const { id } = await suite.otherEnvironment('keys');
    const { client_id } = await environmentOf(id);
    const [first, second] = await Promise.all([
      fetch(`${suite.url}/sso/jwks/${client_id}`),
      fetch(`${suite.url}/sso/jwks/${client_id}`, { headers: { Authorization: 'Bearer wrong' } }),
    ]);
    expect(first.headers.get('cache-control')).toBe('public, max-age=300');
    const { keys } = (await first.json()) as { readonly keys: readonly object[] };
    expect(keys).toEqual([
      {
        kty: 'RSA',
        use: 'sig',
        alg: 'RS256',
        kid: expect.any(String),
        n: expect.any(String),
        e: 'AQAB',
        x5c: [expect.any(String)],
        'x5t#S256': expect.any(String),
      },
    ]);
    expect(await second.json()).toEqual({ keys });
    await suite.get(`/sso/jwks/${client_id}`).expect(200, { keys });
    expect(await createRemoteJWKSet(new URL(`${suite.url}/sso/jwks/${client_id}`))({ alg: 'RS256' })).toMatchObject({ type: 'public' });
  });

  it('is that of its client id alone', async () => {
    const ids = (await Promise.all([suite.otherEnvironment('one'), suite.otherEnvironment('two')])).map(({ id }) => id);
    const sets = await Promise.all(
      ids.map(async (id) => (await suite.get(`/sso/jwks/${(await environmentOf(id)).client_id}`).expect(200)).keys[0].kid as string),
    );
    expect(new Set(sets).size).toBe(2);
    await suite.get('/sso/jwks/client_nobody').expect(404, { code: 'entity_not_found' });
    await suite.get(`/sso/jwks/${ids[0]}`).expect(404, { code: 'entity_not_found' });
  });

  it('has the next key a day before it signs', async () => {
    const { id } = await suite.otherEnvironment('rotated');
    const { client_id, name } = await environmentOf(id);
    const { keys } = await suite.get(`/sso/jwks/${client_id}`).expect(200);
    const { kid, alg, signs_from } = await suite.call(RotateTokenKeys, { environment_name: name, now: false, drop: false });
    expect(alg).toBe('RS256');
    expect(Date.parse(signs_from) - Date.now()).toBeGreaterThan(86_000_000);
    await suite.eventually(`/sso/jwks/${client_id}`, { keys: [keys[0], { kid }] });
    const stolen = await suite.call(RotateTokenKeys, { environment_name: name, now: false, drop: true });
    expect((await suite.eventually(`/sso/jwks/${client_id}`, { keys: [{ kid: stolen.kid }] })).keys).toHaveLength(1);
    await expect(suite.call(RotateTokenKeys, { environment_name: 'nowhere', now: false, drop: false })).rejects.toMatchObject({ code: 'entity_not_found' });
  });

  it('has keys of the chosen algorithm', async () => {
    const caller = await suite.otherEnvironment('es256');
    const { client_id } = await environmentOf(caller.id);
    await caller.patch('/admin/environment_settings', { token_algorithm: 'ES256' }).expect(200);
    const { keys } = await suite.get(`/sso/jwks/${client_id}`).expect(200, { keys: [{ kty: 'EC', alg: 'ES256', crv: 'P-256' }] });
    expect(keys).toHaveLength(1);
    expect(JSON.stringify(await suite.records('token_key.created'))).not.toMatch(/"d":|PRIVATE/);
  });
});
