import { randomUUID } from 'node:crypto';
import { LEAST_HASH_COST } from '#libs/testing/src/least-hash-cost';
import { givenSuite } from '#libs/testing/src/suite';

it('asks of new passwords what the settings of the environment say, wherever one is set', async () => {
  const suite = await givenSuite({ variables: { PASSWORD_HASH_COST: LEAST_HASH_COST.development } });
  const create = (fields: object) => suite.post('/user_management/users', { email: `${randomUUID()}@acme.test`, ...fields });
  const refused = (code: string, field: string) => ({ errors: [{ code, field }] });
  const tooShort = refused('password_too_short', 'password');
  await suite.patch('/admin/environment_settings', { password_policy: 'nist' }).expect(200);
  await create({ password: 'ride-a-giraffe' }).expect(400, { code: 'password_strength_error', ...tooShort });
  const { id, email } = await create({ password: 'ride-a-giraffe-7' }).expect(201);
  await suite.put(`/user_management/users/${id}`, { password: 'ride-a-giraffe' }).expect(400, tooShort);
  await suite.put(`/user_management/users/${id}`, { password: `I am ${email}` }).expect(400, refused('password_contains_email', 'password'));
  const { password_reset_token: token } = await suite.post('/user_management/password_reset', { email }).expect(201);
  const reset = (new_password: string) => suite.post('/user_management/password_reset/confirm', { token, new_password });
  await reset('ride-a-giraffe').expect(400, { code: 'password_reset_error', ...refused('password_too_short', 'new_password') });
  await reset(`I am ${email}`).expect(400, refused('password_contains_email', 'new_password'));
  await suite.patch('/admin/environment_settings', { mfa: 'required' }).expect(200);
  await create({ password: 'ride-a-' }).expect(400, tooShort);
  await create({ password: 'ride-a-g' }).expect(201);
  await reset('ride-a-g').expect(200);
});
