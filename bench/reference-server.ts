import Fastify from 'fastify';

/** What a Fastify POST with a schema does on this machine and does no work: the yardstick for the gateway. */
const text = { type: 'string', maxLength: 255 } as const;
const server = Fastify();
server.post<{ Body: { name: string } }>(
  '/organizations',
  {
    schema: {
      body: { type: 'object', properties: { name: text }, required: ['name'] },
      response: { 201: { type: 'object', properties: { id: text, name: text } } },
    },
  },
  async ({ body }, reply) => reply.code(201).send({ id: 'org_01J0000000000000000000000', name: body.name }),
);
// As long as a key set is.
const keySet = JSON.stringify({ keys: 'k'.repeat(1_700) });
server.get('/sso/jwks', async (_, reply) => reply.type('application/json').send(keySet));
server.get('/health/ready', async () => ({}));
await server.listen({ host: '127.0.0.1', port: Number(process.argv[2]) });
