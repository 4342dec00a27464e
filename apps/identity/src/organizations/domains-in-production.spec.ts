import { startDnsServer } from '#libs/testing/src/dns-server';
import { givenSuite } from '#libs/testing/src/suite';

it('in production mode no domain is decided by hand', async () => {
  const dns = await startDnsServer();
  const variables = {
    GATEHOUSE_MODE: 'production',
    MASTER_KEYS: Buffer.alloc(32, 1).toString('base64'),
    GATEHOUSE_API_KEY: `sk_${'production'.repeat(4)}`,
    PUBLIC_URL: 'https://id.acme.test',
    HOST: '127.0.0.1',
    OPERATIONS_PORT: '0',
    DNS_SERVERS: dns.address,
  };
  const production = await givenSuite({ variables });
  const { domains } = await production.post('/organizations', { name: 'Acme', domains: ['strict.test'] }).expect(201);
  await production.post(`/admin/organization_domains/${domains[0].id}/verification`, { state: 'verified' }).expect(403, { code: 'forbidden' });
  await production.get(`/organization_domains/${domains[0].id}`).expect(200, { state: 'pending' });
  await dns.close();
});
