import {
  CreateEnvironment,
  CreateEnvironmentKey,
  EnsureEnvironmentKey,
  FindClient,
  ListEnvironmentKeys,
  ListEnvironments,
  RevokeEnvironmentKey,
  RotateEnvironmentKey,
} from '#libs/contracts/src/environments/operations';
import { newCommandId } from '#libs/platform/src/ids';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

describe('environments', () => {
  let suite: GivenSuite;
  beforeAll(async () => void (suite = await givenSuite()));

  const named = async (name: string) => (await suite.call(ListEnvironments, {})).filter((environment) => environment.name === name);
  const keysOf = (environment_name: string) => suite.call(ListEnvironmentKeys, { environment_name });

  it('begin with the one for development', async () => {
    expect(await named('development')).toEqual([
      {
        object: 'environment',
        id: expect.stringMatching(/^environment_/),
        name: 'development',
        client_id: expect.stringMatching(/^client_/),
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
    ]);
  });

  it('have a name of their own', async () => {
    await suite.call(CreateEnvironment, { name: 'staging' });
    await expect(suite.call(CreateEnvironment, { name: 'staging' })).rejects.toMatchObject({ code: 'environment_name_already_used' });
  });

  it('are created once by all replicas that start at once', async () => {
    const value = `sk_${'replica'.repeat(5)}`;
    const asked = Array.from({ length: 8 }, () => suite.call(EnsureEnvironmentKey, { name: 'replicated', value, client_id: 'client_replicated' }));
    expect(new Set((await Promise.all(asked)).map(({ id }) => id)).size).toBe(1);
    expect(await named('replicated')).toMatchObject([{ client_id: 'client_replicated' }]);
    expect(await keysOf('replicated')).toMatchObject([{ name: 'given at start', obfuscated_value: 'sk_…lica' }]);
  });

  it('are found by their client id, which no other may be given', async () => {
    const { id, client_id } = await suite.call(CreateEnvironment, { name: 'clients' });
    expect(await suite.call(FindClient, { client_id })).toMatchObject({ id, name: 'clients' });
    await expect(suite.call(FindClient, { client_id: 'client_nobody' })).rejects.toMatchObject({ code: 'entity_not_found' });
    const value = `sk_${'clients'.repeat(5)}`;
    await expect(suite.call(EnsureEnvironmentKey, { name: 'thief', value, client_id })).rejects.toMatchObject({ code: 'client_id_already_used' });
    await suite.call(EnsureEnvironmentKey, { name: 'clients', value, client_id: 'client_renamed' });
    expect(await suite.call(FindClient, { client_id: 'client_renamed' })).toMatchObject({ id });
    await expect(suite.call(FindClient, { client_id })).rejects.toMatchObject({ code: 'entity_not_found' });
  });

  it('never see each other', async () => {
    const other = await suite.otherEnvironment('apart');
    const { id } = await suite.post('/organizations', { name: 'Ours' }).expect(201);
    await other.get(`/organizations/${id}`).expect(404);
    expect((await other.get('/organizations').expect(200)).data).toEqual([]);
  });
});

describe('the keys of an environment', () => {
  let suite: GivenSuite;
  beforeAll(async () => {
    suite = await givenSuite();
    await suite.call(CreateEnvironment, { name: 'keyed' });
  });

  const newKey = (name: string) => suite.call(CreateEnvironmentKey, { environment_name: 'keyed', name });
  const works = async (key: string) => new Caller(() => suite.url, key).get('/organizations').expect(200);
  /** Each gateway hears of it from the log by itself, and which one answers is left to chance. */
  const stopsWorking = (key: string): Promise<void> =>
    eventually(async () => {
      const caller = new Caller(() => suite.url, key);
      for (let asked = 0; asked < 20; asked++) await caller.get('/organizations').expect(401);
    });

  it('are shown once, and stored nowhere', async () => {
    const { value, ...key } = await newKey('shown');
    expect(value).toMatch(/^sk_[\w-]{43}$/);
    expect(key).toMatchObject({ object: 'environment_key', name: 'shown', obfuscated_value: `sk_…${value.slice(-4)}`, expires_at: null, revoked_at: null });
    expect(await suite.call(ListEnvironmentKeys, { environment_name: 'keyed' })).toEqual([key]);
    expect(JSON.stringify(await suite.records())).not.toContain(value);
    await works(value);
  });

  it('stop working when they are revoked', async () => {
    const { id, value } = await newKey('revoked');
    await works(value);
    await suite.call(RevokeEnvironmentKey, { id });
    await stopsWorking(value);
    await suite.call(RevokeEnvironmentKey, { id });
    await expect(suite.call(RotateEnvironmentKey, { id, overlap_seconds: 60 })).rejects.toMatchObject({ code: 'environment_key_revoked' });
  });

  it('are replaced at once or after a while', async () => {
    const first = await newKey('rotated');
    const second = await suite.call(RotateEnvironmentKey, { id: first.id, overlap_seconds: 3_600 });
    await works(first.value);
    await works(second.value);
    const third = await suite.call(RotateEnvironmentKey, { id: second.id, overlap_seconds: 0 });
    await stopsWorking(second.value);
    await works(third.value);
  });

  it('show the same value again to a command that is repeated', async () => {
    const [given, commandId] = [{ environment_name: 'development', name: 'repeated' }, newCommandId(Date.now())];
    const first = await suite.call(CreateEnvironmentKey, given, { commandId });
    expect(await suite.call(CreateEnvironmentKey, given, { commandId, attempt: 2 })).toEqual(first);
    const rotated = await suite.call(RotateEnvironmentKey, { id: first.id, overlap_seconds: 3_600 });
    expect(rotated.value).not.toBe(first.value);
    await works(first.value);
  });

  it('stay revoked although they are given at every start', async () => {
    const value = `sk_${'given'.repeat(8)}`;
    const given = { name: 'keyed', value };
    await suite.call(EnsureEnvironmentKey, given);
    await works(value);
    const keys = await suite.call(ListEnvironmentKeys, { environment_name: 'keyed' });
    await suite.call(RevokeEnvironmentKey, { id: keys.find(({ name }) => name === 'given at start')!.id });
    await suite.call(EnsureEnvironmentKey, given);
    await stopsWorking(value);
  });

  it('are not found where there are none', async () => {
    await expect(suite.call(RevokeEnvironmentKey, { id: 'environment_key_01HZZZZZZZZZZZZZZZZZZZZZZZ' })).rejects.toMatchObject({ code: 'entity_not_found' });
    await expect(suite.call(CreateEnvironmentKey, { environment_name: 'nowhere', name: 'x' })).rejects.toMatchObject({ code: 'entity_not_found' });
  });
});
