import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const ID = /^org_[0-9A-HJKMNP-TV-Z]{26}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('organizations', () => {
  let suite: GivenSuite;
  beforeAll(async () => void (suite = await givenSuite()));

  const create = (fields: object = {}) => suite.post('/organizations', { name: 'Acme', ...fields }).expect(201);
  const idsOf = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id);
  const eventsOf = async (id: string) =>
    (await suite.records()).filter(({ meta }) => meta.organization === id).flatMap((record) => record.public.map(({ name }) => name));

  describe('are created', () => {
    it('with a name alone', async () => {
      const organization = await create();
      expect(organization).toEqual({
        object: 'organization',
        id: expect.stringMatching(ID),
        name: 'Acme',
        domains: [],
        metadata: {},
        external_id: null,
        allow_profiles_outside_organization: false,
        created_at: expect.stringMatching(TIME),
        updated_at: organization.created_at,
      });
      await suite.get(`/organizations/${organization.id}`).expect(200, organization);
      expect(await eventsOf(organization.id)).toEqual(['organization.created']);
    });

    it('with all that they may have', async () => {
      const organization = await create({
        external_id: 'all/of it',
        metadata: { tier: 'gold', absent: null },
        allow_profiles_outside_organization: true,
        domain_data: [
          { domain: 'All.Test.', state: 'pending' },
          { domain: 'bücher.example', state: 'verified' },
        ],
      });
      expect(organization).toMatchObject({
        external_id: 'all/of it',
        metadata: { tier: 'gold' },
        allow_profiles_outside_organization: true,
        domains: [
          { domain: 'all.test', state: 'pending', verification_strategy: 'dns', organization_id: organization.id },
          { domain: 'xn--bcher-kva.example', state: 'verified', verification_strategy: 'manual' },
        ],
      });
      expect(organization.domains[1]).not.toHaveProperty('verification_token');
      await suite.get(`/organizations/${organization.id}`).expect(200, organization);
      expect(await eventsOf(organization.id)).toEqual([
        'organization.created',
        'organization_domain.created',
        'organization_domain.created',
        'organization_domain.verified',
      ]);
    });

    it('with domains named the old way', async () => {
      const { domains } = await create({ domains: ['old.test', 'OLD.test'] });
      expect(domains).toMatchObject([{ domain: 'old.test', state: 'pending' }]);
    });

    it('as often as the same name is sent', async () => expect((await create()).id).not.toBe((await create()).id));

    it.each([
      ['no name', {}, 422, 'invalid_request_parameters'],
      ['an empty name', { name: '' }, 422, 'invalid_request_parameters'],
      ['a name of 256 characters', { name: 'n'.repeat(256) }, 422, 'invalid_request_parameters'],
      ['an external id beyond ASCII', { name: 'Acme', external_id: 'ü' }, 422, 'invalid_request_parameters'],
      ['metadata that is no text', { name: 'Acme', metadata: { seats: 5 } }, 400, 'invalid_metadata'],
      ['metadata that is no object', { name: 'Acme', metadata: ['a'] }, 422, 'invalid_request_parameters'],
      ['metadata with a key of 41 characters', { name: 'Acme', metadata: { ['k'.repeat(41)]: '' } }, 400, 'invalid_metadata'],
      ['a consumer domain', { name: 'Acme', domain_data: [{ domain: 'gmail.com', state: 'pending' }] }, 422, 'domain_not_allowed'],
      ['a malformed domain', { name: 'Acme', domain_data: [{ domain: 'acme', state: 'verified' }] }, 422, 'domain_not_allowed'],
      ['a domain in a state of its own', { name: 'Acme', domain_data: [{ domain: 'acme.test', state: 'failed' }] }, 422, 'invalid_request_parameters'],
      ['too many domains', { name: 'Acme', domains: Array.from({ length: 101 }, (_, index) => `d${index}.test`) }, 422, 'organization_domain_limit_reached'],
    ])('not with %s', async (_, body, status, code) => {
      await suite.post('/organizations', body).expect(status, { code });
    });

    it('with metadata keys that JavaScript knows, as data', async () => {
      const body = '{"name":"Acme","metadata":{"__proto__":"a","constructor":"b","prototype":"c"}}';
      await suite.post('/organizations', body).expect(400, { code: 'bad_request' });
      const metadata = { constructor: 'b', prototype: 'c' };
      expect((await suite.post('/organizations', { name: 'Acme', metadata }).expect(201)).metadata).toEqual(metadata);
      expect(({} as { a?: unknown }).a).toBeUndefined();
    });
  });

  describe('have an external id', () => {
    it('by which they are found, whatever it holds', async () => {
      for (const external_id of ['a/b', 'a b', 'a%2Fb', 'a.b', '?#&', 'api_keys', 'groups', 'x'.repeat(128)]) {
        const { id } = await create({ external_id });
        await suite.get(`/organizations/external_id/${encodeURIComponent(external_id)}`).expect(200, { id, external_id });
      }
    });

    it('by which they are found although its slashes were sent as they are', async () => {
      const { id } = await create({ external_id: 'eu/acme//1' });
      await suite.get('/organizations/external_id/eu/acme//1').expect(200, { id });
    });

    it('that is used once', async () => {
      await create({ external_id: 'once' });
      await suite.post('/organizations', { name: 'Other', external_id: 'once' }).expect(400, { code: 'external_id_already_used' });
    });

    it('that one of two gets who ask at once', async () => {
      const answers = await Promise.all([1, 2, 3, 4].map(() => suite.post('/organizations', { name: 'Racer', external_id: 'race' })));
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400, 400]);
    });

    it('that is free again when it is given up or its owner is deleted', async () => {
      const { id } = await create({ external_id: 'given-up' });
      await suite.put(`/organizations/${id}`, { external_id: null }).expect(200, { external_id: null });
      const next = await create({ external_id: 'given-up' });
      await suite.put(`/organizations/${id}`, { external_id: 'given-up' }).expect(400, { code: 'external_id_already_used' });
      await suite.delete(`/organizations/${next.id}`).expect(202);
      await suite.put(`/organizations/${id}`, { external_id: 'given-up' }).expect(200, { external_id: 'given-up' });
    });

    it('that means nothing where it is unknown', () => suite.get('/organizations/external_id/unknown').expect(404, { code: 'entity_not_found' }));
  });

  describe('are updated', () => {
    it('in what is given, and keep the rest', async () => {
      const before = await create({ external_id: 'kept', metadata: { tier: 'gold', region: 'eu' } });
      const after = await suite
        .put(`/organizations/${before.id}`, { name: 'Acme & Co', metadata: { tier: null, seats: '5' }, payment_customer_id: 'cus_1' })
        .expect(200, { name: 'Acme & Co', external_id: 'kept', payment_customer_id: 'cus_1', created_at: before.created_at });
      expect(after.metadata).toEqual({ region: 'eu', seats: '5' });
      expect(after.updated_at >= before.updated_at).toBe(true);
      await suite.get(`/organizations/${before.id}`).expect(200, after);
    });

    it('without an event where nothing changes', async () => {
      const { id, updated_at } = await create({ metadata: { tier: 'gold' } });
      await suite.put(`/organizations/${id}`, { name: 'Acme', metadata: { tier: 'gold' } }).expect(200, { updated_at });
      await suite.put(`/organizations/${id}`, {}).expect(200, { updated_at });
      expect(await eventsOf(id)).toEqual(['organization.created']);
    });

    it('with a payment customer that nobody else has', async () => {
      const { id } = await create();
      const other = await create();
      await suite.put(`/organizations/${id}`, { payment_customer_id: 'cus_unique' }).expect(200);
      await suite.put(`/organizations/${other.id}`, { payment_customer_id: 'cus_unique' }).expect(400, { code: 'payment_customer_id_already_used' });
      expect(await suite.put(`/organizations/${id}`, { payment_customer_id: null }).expect(200)).not.toHaveProperty('payment_customer_id');
      await suite.put(`/organizations/${other.id}`, { payment_customer_id: 'cus_unique' }).expect(200);
    });

    it('with a payment customer under the name that SDKs give it, and show it under both', async () => {
      const { id } = await create();
      const both = { payment_customer_id: 'cus_alias', stripe_customer_id: 'cus_alias' };
      await suite.put(`/organizations/${id}`, { stripe_customer_id: 'cus_alias' }).expect(200, both);
      await suite.put(`/organizations/${id}`, { ...both, name: 'Paid' }).expect(200, both);
      await suite.put(`/organizations/${id}`, { payment_customer_id: 'cus_alias', stripe_customer_id: 'cus_other' }).expect(422, {
        errors: [{ code: 'given_twice', field: 'stripe_customer_id' }],
      });
      await suite.put(`/organizations/${id}`, { payment_customer_id: null, stripe_customer_id: 'cus_alias' }).expect(422);
      await suite.get(`/organizations/${id}`).expect(200, both);
      await suite.put(`/organizations/${(await create()).id}`, { stripe_customer_id: 'cus_alias' }).expect(400, { code: 'payment_customer_id_already_used' });
      await suite.eventually(`/events?events=organization.updated&organization_id=${id}`, { data: [{ data: both }, { data: { ...both, name: 'Paid' } }] });
      const cleared = await suite.put(`/organizations/${id}`, { stripe_customer_id: null }).expect(200);
      expect(cleared).not.toHaveProperty('payment_customer_id');
      expect(cleared).not.toHaveProperty('stripe_customer_id');
    });

    it('with another set of domains', async () => {
      const { id, domains } = await create({
        domain_data: [
          { domain: 'one.test', state: 'verified' },
          { domain: 'two.test', state: 'pending' },
        ],
      });
      const after = await suite
        .put(`/organizations/${id}`, {
          domain_data: [
            { domain: 'one.test', state: 'pending' },
            { domain: 'three.test', state: 'pending' },
          ],
        })
        .expect(200, {
          domains: [
            { id: domains[0].id, state: 'verified' },
            { domain: 'three.test', state: 'pending' },
          ],
        });
      expect(after.domains).toHaveLength(2);
      await suite.get(`/organization_domains/${domains[1].id}`).expect(404);
      expect((await eventsOf(id)).slice(4)).toEqual(['organization_domain.deleted', 'organization_domain.created', 'organization.updated']);
    });

    it('not where they never were', () => suite.put(`/organizations/org_01HZZZZZZZZZZZZZZZZZZZZZZZ`, { name: 'x' }).expect(404, { code: 'entity_not_found' }));
  });

  describe('are deleted', () => {
    it('with all that they have, at once', async () => {
      const { id, domains } = await create({ external_id: 'gone', domains: ['gone.test', 'away.test'] });
      const answer = await suite.delete(`/organizations/${id}`);
      expect(answer).toMatchObject({ status: 202, text: '' });
      await suite.get(`/organizations/${id}`).expect(404, { code: 'entity_not_found', entity_id: id });
      await suite.get('/organizations/external_id/gone').expect(404);
      await suite.get(`/organization_domains/${domains[0].id}`).expect(404);
      await suite.post('/organization_domains', { organization_id: id, domain: 'new.test' }).expect(404);
      expect(idsOf(await suite.get('/organizations?domains=gone.test').expect(200))).toEqual([]);
      await suite.put(`/organizations/${id}`, { name: 'x' }).expect(404);
      await suite.delete(`/organizations/${id}`).expect(404);
    });

    it('and each of their domains is told of afterwards', async () => {
      const { id } = await create({ domains: ['told.test', 'also-told.test'] });
      await suite.delete(`/organizations/${id}`).expect(202);
      const told = ['organization.deleted', 'organization_domain.deleted', 'organization_domain.deleted'];
      await eventually(async () => expect((await eventsOf(id)).slice(3)).toEqual(told));
    });
  });

  it('of another environment are as if they never were', async () => {
    const other = await suite.otherEnvironment();
    const { id } = await create({ external_id: 'mine', domains: ['mine.test'] });
    const unknown = 'org_01HZZZZZZZZZZZZZZZZZZZZZZZ';
    for (const ask of [
      (asked: string) => other.get(`/organizations/${asked}`),
      (asked: string) => other.put(`/organizations/${asked}`, { name: 'x' }),
      (asked: string) => other.delete(`/organizations/${asked}`),
    ]) {
      const answer = await ask(id);
      expect({ status: answer.status, text: answer.text.replaceAll(id, unknown) }).toEqual({ status: 404, text: (await ask(unknown)).text });
    }
    await other.get('/organizations/external_id/mine').expect(404);
    expect(idsOf(await other.get('/organizations?domains=mine.test').expect(200))).toEqual([]);
    await other.get(`/organizations?after=${id}`).expect(422, { errors: [{ code: 'invalid_cursor', field: 'after' }] });
    await other.post('/organizations', { name: 'Theirs', external_id: 'mine' }).expect(201);
  });
});

describe('the list of organizations', () => {
  let suite: GivenSuite;
  let ids: readonly string[];
  beforeAll(async () => {
    suite = await givenSuite();
    const created: string[] = [];
    for (let index = 0; index < 5; index++) created.push((await suite.post('/organizations', { name: `Number ${index}` }).expect(201)).id);
    ids = created;
  });

  const page = async (query: string) => {
    const { data, list_metadata } = await suite.get(`/organizations?${query}`).expect(200, { object: 'list' });
    return { ids: data.map(({ id }: { id: string }) => ids.indexOf(id)), ...list_metadata };
  };
  const at = (index: number) => ids[index]!;

  it('begins with the newest', async () => expect(await page('')).toEqual({ ids: [4, 3, 2, 1, 0], before: null, after: null }));
  it('begins with the oldest where that is asked', async () => expect(await page('order=asc')).toEqual({ ids: [0, 1, 2, 3, 4], before: null, after: null }));

  it('goes forwards and back by pages', async () => {
    expect(await page('limit=2')).toEqual({ ids: [4, 3], before: null, after: at(3) });
    expect(await page(`limit=2&after=${at(3)}`)).toEqual({ ids: [2, 1], before: at(2), after: at(1) });
    expect(await page(`limit=2&after=${at(1)}`)).toEqual({ ids: [0], before: at(0), after: null });
    expect(await page(`limit=2&before=${at(2)}`)).toEqual({ ids: [4, 3], before: null, after: at(3) });
    expect(await page(`limit=2&before=${at(1)}`)).toEqual({ ids: [3, 2], before: at(3), after: at(2) });
    expect(await page(`limit=2&order=asc&after=${at(1)}`)).toEqual({ ids: [2, 3], before: at(2), after: at(3) });
  });

  it('has mirrored cursors in its normal order', async () => {
    expect(await page('order=normal&limit=2')).toEqual({ ids: [4, 3], before: at(3), after: null });
    expect(await page(`order=normal&limit=2&before=${at(3)}`)).toEqual({ ids: [2, 1], before: at(1), after: at(2) });
    expect(await page(`order=normal&limit=2&after=${at(1)}`)).toEqual({ ids: [3, 2], before: at(2), after: at(3) });
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=ten', 'limit'],
    ['order=sideways', 'order'],
    ['after=org_1', 'after'],
    ['before=org_1', 'before'],
    ['after=org_01HZZZZZZZZZZZZZZZZZZZZZZZ', 'after'],
    ['order=normal&before=org_01HZZZZZZZZZZZZZZZZZZZZZZZ', 'before'],
    ['after=org_domain_01HZZZZZZZZZZZZZZZZZZZZZZZ', 'after'],
  ])('refuses %s', async (query, field) => {
    await suite.get(`/organizations?${query}`).expect(422, { code: 'invalid_request_parameters', errors: [{ field }] });
  });

  it('refuses two cursors', () => suite.get(`/organizations?after=${at(1)}&before=${at(3)}`).expect(422));

  it('goes on after one that was deleted meanwhile', async () => {
    const { id } = await suite.post('/organizations', { name: 'Short-lived' }).expect(201);
    await suite.delete(`/organizations/${id}`).expect(202);
    expect((await page(`after=${id}`)).ids).toEqual([4, 3, 2, 1, 0]);
  });
});

describe('a search for organizations', () => {
  let suite: GivenSuite;
  const named = new Map<string, string>();
  beforeAll(async () => {
    suite = await givenSuite();
    for (const [name, domains] of [
      ['Acme Corporation', ['acme.test', 'acme.example']],
      ['ÉCOLE of Acting', ['ecole.test']],
      ['One Two Three Four Five Six Seven Eight Nine', ['acme.test']],
      ['ＡＢＣ Widgets', []],
    ] as const)
      named.set((await suite.post('/organizations', { name, domains }).expect(201)).id, name);
  });

  const found = async (query: string) => {
    const { data } = await suite.get(`/organizations?${query}`).expect(200);
    return data.map(({ id }: { id: string }) => named.get(id)).sort();
  };

  it.each([
    ['search=acme', ['Acme Corporation']],
    ['search=AC', ['Acme Corporation', 'ÉCOLE of Acting']],
    ['search=corp', ['Acme Corporation']],
    ['search=orporation', []],
    [`search=${encodeURIComponent('éco')}`, ['ÉCOLE of Acting']],
    ['search=abc', ['ＡＢＣ Widgets']],
    ['search=eight', ['One Two Three Four Five Six Seven Eight Nine']],
    ['search=nine', []],
    ['search=acme%20corp', ['Acme Corporation']],
    ['search=CORP+acme', ['Acme Corporation']],
    ['search=a%20a', ['Acme Corporation', 'ÉCOLE of Acting', 'ＡＢＣ Widgets']],
    ['search=acme%20acting', []],
    ['search=of%20act%20%C3%A9c', ['ÉCOLE of Acting']],
    ['search=one%20nine', []],
    ['search=widget%20abcd', []],
    ['search=acme&domains=acme.test', ['Acme Corporation']],
    ['search=co%20a&domains=acme.test,ecole.test', ['Acme Corporation']],
    ['search=of&domains=acme.test', []],
    ['domains%5B0%5D=ecole.test&domains%5B1%5D=unknown.test', ['ÉCOLE of Acting']],
    ['domains=acme.test', ['Acme Corporation', 'One Two Three Four Five Six Seven Eight Nine']],
    ['domains=ACME.test.', ['Acme Corporation', 'One Two Three Four Five Six Seven Eight Nine']],
    ['domains=acme.test,acme.example,ecole.test', ['Acme Corporation', 'One Two Three Four Five Six Seven Eight Nine', 'ÉCOLE of Acting']],
    ['domains=acme.test&domains=ecole.test', ['Acme Corporation', 'One Two Three Four Five Six Seven Eight Nine', 'ÉCOLE of Acting']],
    ['domains[]=ecole.test', ['ÉCOLE of Acting']],
    ['domains=unknown.test', []],
    ['domains=no%20domain', []],
  ])('finds for %s', async (query, names) => expect(await found(query)).toEqual(names));

  it('for nothing but white space finds all', async () => expect(await found('search=%20')).toHaveLength(named.size));

  it('goes by pages, also where others have one of its words', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 9; index++) {
      ids.unshift((await suite.post('/organizations', { name: `Common Rare ${index}` }).expect(201)).id);
      await suite.post('/organizations', { name: `Common ${index}` }).expect(201);
    }
    const walked: string[] = [];
    for (let after = ''; ;) {
      const { data, list_metadata } = await suite.get(`/organizations?search=ra%20common&limit=2${after}`).expect(200);
      walked.push(...data.map(({ id }: { id: string }) => id));
      if (list_metadata.after === null) break;
      after = `&after=${list_metadata.after}`;
    }
    expect(walked).toEqual(ids);
  });

  it('goes by pages', async () => {
    const first = await suite.get('/organizations?domains=acme.test,acme.example&limit=1').expect(200);
    const second = await suite.get(`/organizations?domains=acme.test,acme.example&limit=1&after=${first.list_metadata.after}`).expect(200);
    expect([first, second].map(({ data }) => named.get(data[0].id))).toEqual(['One Two Three Four Five Six Seven Eight Nine', 'Acme Corporation']);
    expect(second.list_metadata.after).toBeNull();
  });

  it('forgets a name that was changed', async () => {
    const { id } = await suite.post('/organizations', { name: 'Before' }).expect(201);
    await suite.put(`/organizations/${id}`, { name: 'Later' }).expect(200);
    expect((await suite.get('/organizations?search=before').expect(200)).data).toEqual([]);
    expect((await suite.get('/organizations?search=later').expect(200)).data).toMatchObject([{ id }]);
  });
});
