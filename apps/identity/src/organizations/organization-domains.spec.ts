import { environmentVariables } from '#libs/platform/src/config/environment';
import type { DnsServer } from '#libs/testing/src/dns-server';
import { givenDnsServer } from '#libs/testing/src/given-dns-server';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { until } from '#libs/testing/src/until';

const ID = /^org_domain_[0-9A-HJKMNP-TV-Z]{26}$/;

/** The cluster that specs share is in production mode, where nobody decides by hand: `domains-in-production.spec.ts`. */
const isInDevelopment = environmentVariables()['SUITE'] !== 'processes';

describe('the domains of organizations', () => {
  let dns: DnsServer;
  let suite: GivenSuite;
  beforeAll(async () => {
    dns = await givenDnsServer();
    suite = await givenSuite({ variables: { DNS_SERVERS: dns.address } });
  });
  afterAll(() => dns.close());

  const organization = async (fields: object = {}) => suite.post('/organizations', { name: 'Acme', ...fields }).expect(201);
  const add = async (domain: string, organization_id?: string) =>
    suite.post('/organization_domains', { domain, organization_id: organization_id ?? (await organization()).id }).expect(201);
  const verifiedByHand = (domain: string) => ({ domain_data: [{ domain, state: 'verified' }] });
  const publish = ({ domain, verification_token }: { domain: string; verification_token: string }) =>
    dns.answers(domain, `verification_token=${verification_token}`);
  /** After the look-up that every domain begins with: for the next seconds it is looked for only when somebody asks. */
  const publishLater = async (domain: { domain: string; verification_token: string }) => {
    await until(() => dns.asked.includes(domain.domain));
    publish(domain);
  };
  const namesFor = async (id: string) =>
    (await suite.records()).filter(({ data }) => (data as { id?: string }).id === id).flatMap((record) => record.public.map(({ name }) => name));

  describe('are added', () => {
    it('as pending, with what a TXT record has to carry', async () => {
      const { id } = await organization();
      const domain = await suite.post('/organization_domains', { domain: 'Added.Test', organization_id: id }).expect(201);
      expect(domain).toEqual({
        object: 'organization_domain',
        id: expect.stringMatching(ID),
        organization_id: id,
        domain: 'added.test',
        state: 'pending',
        verification_prefix: expect.stringMatching(/^gatehouse-domain-verification-[a-z2-7]{6}$/),
        verification_token: expect.stringMatching(/^[a-z2-7]{25}$/),
        verification_strategy: 'dns',
        created_at: expect.any(String),
        updated_at: domain.created_at,
      });
      await suite.get(`/organization_domains/${domain.id}`).expect(200, domain);
      expect((await suite.get(`/organizations/${id}`).expect(200)).domains).toEqual([domain]);
      expect(await namesFor(domain.id)).toEqual(['organization_domain.created']);
    });

    it('once to one organization, in whatever spelling', async () => {
      const { id } = await organization();
      await add('twice.test', id);
      await suite.post('/organization_domains', { domain: 'TWICE.test.', organization_id: id }).expect(409, { code: 'domain_already_exists' });
    });

    it('pending to as many organizations as like, even where one has it verified', async () => {
      await organization(verifiedByHand('shared.test'));
      await add('shared.test');
      await add('shared.test');
    });

    it.each([
      ['a consumer domain', 'gmail.com', 'consumer_domain'],
      ['no domain name', 'acme', 'malformed_domain'],
      ['an address', '127.0.0.1', 'malformed_domain'],
    ])('not where it is %s', async (_, domain, code) => {
      const { id } = await organization();
      await suite
        .post('/organization_domains', { domain, organization_id: id })
        .expect(422, { code: 'domain_not_allowed', errors: [{ code, field: 'domain' }] });
    });

    it('not to an organization that is not there', () =>
      suite
        .post('/organization_domains', { domain: 'acme.test', organization_id: 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ' })
        .expect(404, { code: 'entity_not_found' }));

    it('once to one of two that ask at once to have it verified', async () => {
      const answers = await Promise.all([1, 2, 3, 4].map(() => suite.post('/organizations', { name: 'Racer', ...verifiedByHand('race.test') })));
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
    });
  });

  it('are deleted for good', async () => {
    const { id } = await add('deleted.test');
    const answer = await suite.delete(`/organization_domains/${id}`);
    expect(answer).toMatchObject({ status: 204, text: '' });
    for (const asked of [
      suite.get(`/organization_domains/${id}`),
      suite.delete(`/organization_domains/${id}`),
      suite.post(`/organization_domains/${id}/verify`),
    ])
      await asked.expect(404, { code: 'entity_not_found', entity_id: id });
    expect(await namesFor(id)).toEqual(['organization_domain.created', 'organization_domain.deleted']);
  });

  it('that are verified are free for others when they or their organization are deleted', async () => {
    const first = await organization(verifiedByHand('freed.test'));
    await suite.post('/organizations', { name: 'Other', ...verifiedByHand('freed.test') }).expect(409, { code: 'domain_already_exists' });
    await suite.delete(`/organization_domains/${first.domains[0].id}`).expect(204);
    const second = await organization(verifiedByHand('freed.test'));
    await suite.delete(`/organizations/${second.id}`).expect(202);
    await organization(verifiedByHand('freed.test'));
  });

  describe('are verified by DNS', () => {
    it('when they are asked to be', async () => {
      const domain = await add('asked.test');
      await publishLater(domain);
      await suite.post(`/organization_domains/${domain.id}/verify`).expect(201, { id: domain.id, state: 'pending' });
      await suite.eventually(`/organization_domains/${domain.id}`, { state: 'verified', verification_strategy: 'dns' }, 2_000);
      expect(await namesFor(domain.id)).toEqual(['organization_domain.created', 'organization_domain.verified']);
      await suite.post(`/organization_domains/${domain.id}/verify`).expect(400, { code: 'domain_already_verified' });
    });

    it('by themselves, when the record appears after a while', async () => {
      const domain = await add('later.test');
      publish(domain);
      await suite.eventually(`/organization_domains/${domain.id}`, { state: 'verified' }, 8_000);
    });

    it('at once, when an administrator looks', async () => {
      const domain = await add('looked-at.test');
      await suite.post(`/admin/organization_domains/${domain.id}/check`).expect(200, { state: 'pending' });
      publish(domain);
      await suite.post(`/admin/organization_domains/${domain.id}/check`).expect(200, { state: 'verified' });
      await suite.post(`/admin/organization_domains/${domain.id}/check`).expect(200, { state: 'verified' });
    });

    it('but not for a second organization', async () => {
      await organization(verifiedByHand('held.test'));
      const domain = await add('held.test');
      publish(domain);
      await suite.post(`/admin/organization_domains/${domain.id}/check`).expect(200, { state: 'failed' });
      const [failure] = await suite.records('organization_domain.verification_failed');
      expect(failure?.subject).toMatchObject({ reason: 'domain_verified_by_other_organization', organization_domain: { id: domain.id, state: 'failed' } });
    });

    if (isInDevelopment)
      it('again after they failed', async () => {
        const domain = await add('failed.test');
        await suite.post(`/admin/organization_domains/${domain.id}/verification`, { state: 'failed' }).expect(200, { state: 'failed' });
        publish(domain);
        await suite.post(`/organization_domains/${domain.id}/verify`).expect(201, { state: 'pending' });
        await suite.eventually(`/organization_domains/${domain.id}`, { state: 'verified' }, 2_000);
        expect((await namesFor(domain.id)).slice(1)).toEqual([
          'organization_domain.verification_failed',
          'organization_domain.updated',
          'organization_domain.verified',
        ]);
      });

    it('while a silent server keeps others waiting', async () => {
      dns.isSilentAbout('silent.test');
      const { id } = await organization();
      for (let index = 0; index < 50; index++) await add(`d${index}.silent.test`, id);
      const domain = await add('prompt.test', id);
      await publishLater(domain);
      await suite.post(`/organization_domains/${domain.id}/verify`).expect(201);
      await suite.eventually(`/organization_domains/${domain.id}`, { state: 'verified' }, 2_000);
    });

    it('after a restart too', async () => {
      const domain = await add('restarted.test');
      await suite.restart();
      publish(domain);
      await suite.eventually(`/organization_domains/${domain.id}`, { state: 'verified' }, 15_000);
    });
  });

  if (isInDevelopment)
    describe('are decided by hand', () => {
      it('in development mode', async () => {
        const domain = await add('by-hand.test');
        await suite.post(`/admin/organization_domains/${domain.id}/verification`, { state: 'failed' }).expect(200, { state: 'failed' });
        await suite.post(`/admin/organization_domains/${domain.id}/verification`, { state: 'verified' }).expect(200, { state: 'verified' });
        await suite.post(`/admin/organization_domains/${domain.id}/verification`, { state: 'verified' }).expect(200, { state: 'verified' });
        await suite.post(`/admin/organization_domains/${domain.id}/verification`, { state: 'failed' }).expect(400, { code: 'domain_already_verified' });
        await suite.post(`/admin/organization_domains/${domain.id}/verification`, { state: 'pending' }).expect(422);
      });

      it('but not against another organization', async () => {
        await organization(verifiedByHand('settled.test'));
        const domain = await add('settled.test');
        await suite.post(`/admin/organization_domains/${domain.id}/verification`, { state: 'verified' }).expect(200, { state: 'failed' });
      });
    });

  it('of another environment are as if they never were', async () => {
    const other = await suite.otherEnvironment();
    const { id } = await add('foreign.test');
    const unknown = 'org_domain_01HZZZZZZZZZZZZZZZZZZZZZZZ';
    for (const ask of [
      (asked: string) => other.get(`/organization_domains/${asked}`),
      (asked: string) => other.post(`/organization_domains/${asked}/verify`),
      (asked: string) => other.delete(`/organization_domains/${asked}`),
      (asked: string) => other.post(`/admin/organization_domains/${asked}/check`),
    ]) {
      const answer = await ask(id);
      expect({ status: answer.status, text: answer.text.replaceAll(id, unknown) }).toEqual({ status: 404, text: (await ask(unknown)).text });
    }
  });
});
