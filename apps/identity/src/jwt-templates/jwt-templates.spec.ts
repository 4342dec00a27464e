import { givenSuite } from '#libs/testing/src/suite';

const PATH = '/user_management/jwt_template';

it('a template of tokens is set as a whole, once it was read', async () => {
  const suite = await givenSuite();
  await suite.get(PATH).expect(404, { code: 'entity_not_found' });
  const content = '{"plan": "{{ organization.metadata.plan || \'free\' }}"}';
  const { created_at } = await suite.put(PATH, { content }).expect(200, { object: 'jwt_template', content });
  await suite.put(PATH, { content: '{"sub": "somebody"}' }).expect(422, { errors: [{ code: 'reserved_claim', field: 'content' }] });
  await suite.put(PATH, { content: `{"a": "${'x'.repeat(10_000)}"}` }).expect(422);
  await suite.get(PATH).expect(200, { content });
  await suite.put(PATH, { content: '{}' }).expect(200, { content: '{}', created_at });
  await (await suite.otherEnvironment()).get(PATH).expect(404);
});
