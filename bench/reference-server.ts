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
server.get('/health/ready', async () => ({}));
await server.listen({ host: '127.0.0.1', port: Number(process.argv[2]) });
