import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';

describe('audit events', () => {
  let suite: GivenSuite;
  let names = 0;
  beforeAll(async () => void (suite = await givenSuite()));

  const EVENTS = '/audit_logs/events';
  const organization = async (caller: Caller = suite): Promise<string> => (await caller.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const ago = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();
  const event = (fields: object = {}) => ({
    action: 'document.shared',
    occurred_at: ago(1),
    actor: { id: 'user_42', type: 'user', name: 'Ada Lovelace', metadata: { role: 'owner' } },
    targets: [{ id: `document_${names++}`, type: 'document' }],
    context: { location: '192.0.2.1' },
    ...fields,
  });
  const record = (organization_id: string, given: object = event(), headers = {}) => suite.post(EVENTS, { organization_id, event: given }, headers);
  const listOf = async (organization_id: string, query = '') => suite.get(`${EVENTS}?organization_id=${organization_id}${query}`).expect(200);
  const actionsOf = async (organization_id: string, query = '') => (await listOf(organization_id, query)).data.map(({ action }: { action: string }) => action);

  it('are recorded, and read back whole', async () => {
    const acme = await organization();
    await suite.post('/audit_logs/actions/plan.changed/schemas', { targets: [{ type: 'team' }] }).expect(201);
    const given = {
      action: 'plan.changed',
      occurred_at: '2026-01-01T10:00:00.1234567+02:00',
      actor: { id: 'a', type: 'user', name: 'Zoë 𝒳\n=1+1', metadata: { n: 1.5, t: true, s: '' } },
      targets: [{ id: 't', type: 'team', name: null, metadata: null }],
      context: { location: '', user_agent: '' },
      metadata: { gone: null, kept: 'x'.repeat(500) },
      version: 1,
      unknown: 'ignored',
    };
    given.occurred_at = new Date(Date.now() - 86_400_000).toISOString().replace('Z', '456+00:00');
    expect(await record(acme, given).expect(200)).toEqual({ success: true });
    const { data } = await listOf(acme);
    expect(data).toEqual([
      {
        object: 'audit_log_event',
        id: expect.stringMatching(/^audit_event_[0-9A-HJKMNP-TV-Z]{26}$/),
        organization_id: acme,
        received_at: expect.any(String),
        leaf_index: 0,
        action: 'plan.changed',
        occurred_at: `${given.occurred_at.slice(0, 23)}Z`,
        actor: given.actor,
        targets: [{ id: 't', type: 'team', name: null, metadata: {} }],
        context: { location: '', user_agent: null },
        metadata: { kept: 'x'.repeat(500) },
        version: 1,
      },
    ]);
    await suite.get(`${EVENTS}/${data[0].id}`).expect(200, data[0]);
    await suite.get(`${EVENTS}/audit_event_01J0000000000000000000000A`).expect(404, { entity_id: 'audit_event_01J0000000000000000000000A' });
  });

  describe('one wrong thing at a time', () => {
    let acme: string;
    beforeAll(async () => void (acme = await organization()));
    const data = (count: number, value: unknown = 'x') => Object.fromEntries(Array.from({ length: count }, (_, index) => [`name-${index}`, value]));
    const target = { id: 't', type: 'team' };

    it.each<[string, object, string, string]>([
      ['no action', { action: undefined }, 'event.action', 'required'],
      ['a blank action', { action: '' }, 'event.action', 'too_short'],
      ['an action of 256', { action: 'a'.repeat(256) }, 'event.action', 'too_long'],
      ['half a character', { action: '\ud800' }, 'event.action', 'invalid_characters'],
      ['no time', { occurred_at: undefined }, 'event.occurred_at', 'required'],
      ['a day', { occurred_at: '2026-01-01' }, 'event.occurred_at', 'invalid_format'],
      ['a time 367 days ago', { occurred_at: ago(367 * 1_440) }, 'event.occurred_at', 'out_of_range'],
      ['a time 6 minutes ahead', { occurred_at: ago(-6) }, 'event.occurred_at', 'out_of_range'],
      ['no actor', { actor: undefined }, 'event.actor', 'required'],
      ['an actor without id', { actor: { type: 'user' } }, 'event.actor.id', 'required'],
      ['an actor without type', { actor: { id: 'a' } }, 'event.actor.type', 'required'],
      ['no targets', { targets: undefined }, 'event.targets', 'required'],
      ['101 targets', { targets: Array.from({ length: 101 }, () => target) }, 'event.targets', 'too_many'],
      ['a target without id', { targets: [target, { type: 'team' }] }, 'event.targets.1.id', 'required'],
      ['no context', { context: undefined }, 'event.context', 'required'],
      ['no location', { context: { user_agent: 'x' } }, 'event.context.location', 'required'],
      ['51 names', { metadata: data(51) }, 'event.metadata', 'too_many'],
      ['a name of 41', { metadata: { ['n'.repeat(41)]: 1 } }, 'event.metadata', 'invalid_name'],
      ['a name with a dot', { actor: { id: 'a', type: 'user', metadata: { 'a.b': 1 } } }, 'event.actor.metadata', 'invalid_name'],
      ['a text of 501', { metadata: { a: 'x'.repeat(501) } }, 'event.metadata.a', 'too_long'],
      ['a list for a value', { targets: [{ ...target, metadata: { a: [] } }] }, 'event.targets.0.metadata.a', 'invalid_type'],
      ['half a character in a value', { metadata: { a: 'x\udc00' } }, 'event.metadata.a', 'invalid_characters'],
      ['a version that is no integer', { version: '1' }, 'event.version', 'invalid_type'],
    ])('%s', async (_, wrong, field, code) => {
      const body = await record(acme, event(wrong)).expect(422, { code: 'invalid_request_parameters' });
      expect(body.errors).toEqual([{ code, field, message: expect.any(String) }]);
    });

    it('nothing of which is recorded, while what is exactly as large as it may be is', async () => {
      const most = { 'a-Z_9': 'x'.repeat(500), ['n'.repeat(40)]: -1e-7, '': false };
      await record(acme, event({ metadata: { ...data(47, 1), ...most }, targets: [] })).expect(200);
      await record(acme, event({ targets: Array.from({ length: 100 }, () => target), occurred_at: ago(366 * 1_440 - 1) })).expect(200);
      await record(acme, event({ occurred_at: ago(-4.9) })).expect(200);
      expect((await listOf(acme)).data).toHaveLength(3);
    });

    it('a body of more than 32 KiB, a key that is none, and an organization that there is not', async () => {
      const filler = (length: number) => event({ targets: [], metadata: data(40, 'x'.repeat(500)), context: { location: 'x' }, ignored: 'y'.repeat(length) });
      const room = 32 * 1024 - JSON.stringify({ organization_id: acme, event: filler(0) }).length;
      await record(acme, filler(room)).expect(200, { success: true });
      await record(acme, filler(room + 1)).expect(413, { code: 'payload_too_large' });
      await record(acme, event(), { 'Idempotency-Key': 'a b' }).expect(422, { errors: [{ field: 'Idempotency-Key' }] });
      const other = await suite.otherEnvironment();
      for (const id of ['org_01J0000000000000000000000A', 'x y/../z', await organization(other)])
        await record(id).expect(404, { entity_id: id, code: 'entity_not_found' });
    });
  });

  describe('that are sent again', () => {
    it('count once by their key, which decides alone', async () => {
      const acme = await organization();
      const other = await organization();
      const digest = `retry-${'a'.repeat(64)}`;
      for (const key of ['one', digest]) {
        const first = event({ action: `${key.length}` });
        for (let time = 0; time < 2; time++) await record(acme, first, { 'Idempotency-Key': key }).expect(200, { success: true });
        await record(acme, event({ action: 'other' }), { 'Idempotency-Key': key }).expect(200, { success: true });
        await record(other, first, { 'Idempotency-Key': key }).expect(200);
      }
      expect(await actionsOf(acme, '&order=asc')).toEqual(['3', '70']);
      expect(await actionsOf(other)).toHaveLength(2);
    });

    it('count once by what they say, where the first came without a key', async () => {
      const acme = await organization();
      const given = event();
      await record(acme, given).expect(200);
      await record(acme, { ...given, occurred_at: given.occurred_at.replace('Z', '+00:00'), metadata: {} }).expect(200);
      await record(acme, given, { 'Idempotency-Key': 'second-attempt' }).expect(200);
      expect((await listOf(acme)).data).toHaveLength(1);
      await record(acme, { ...given, occurred_at: ago(2) }).expect(200);
      // Of one that came with a key, the key says what it is.
      const keyed = event();
      await record(acme, keyed, { 'Idempotency-Key': 'a' }).expect(200);
      await record(acme, keyed, { 'Idempotency-Key': 'b' }).expect(200);
      expect((await listOf(acme)).data).toHaveLength(4);
    });

    it('count once when they come at the same time', async () => {
      const acme = await organization();
      const given = event();
      await Promise.all(Array.from({ length: 20 }, (_, index) => record(acme, given, index % 2 === 0 ? {} : { 'Idempotency-Key': 'twin' }).expect(200)));
      // A keyless one counts beside one that came with a key before it.
      expect((await listOf(acme)).data.length).toBeLessThanOrEqual(2);
      await Promise.all(Array.from({ length: 20 }, (_, index) => record(acme, event({ action: 'many' }), { 'Idempotency-Key': `${index % 10}` }).expect(200)));
      expect((await listOf(acme, '&actions=many&limit=100')).data).toHaveLength(10);
    });
  });

  describe('lists of them', () => {
    let acme: string;
    beforeAll(async () => {
      acme = await organization();
      // Late and out of order: two of one time come in the order of their arrival.
      const at = [50, 10, 30, 30, 20].map((minutes) => ago(minutes));
      at[3] = at[2]!;
      for (const [index, occurred_at] of at.entries())
        await record(
          acme,
          event({
            occurred_at,
            action: `a${index}`,
            actor: { id: `user_${index % 2}`, type: 'user', ...(index > 0 && { name: index === 1 ? 'Lovelace, Ada' : 'Grace' }) },
            targets: [
              { id: `t${index}`, type: 'team' },
              { id: 'shared', type: index === 4 ? 'file' : 'team' },
            ],
          }),
        ).expect(200);
    });

    it('follow the time at which things happened, in both directions, page by page', async () => {
      expect(await actionsOf(acme)).toEqual(['a1', 'a4', 'a3', 'a2', 'a0']);
      expect(await actionsOf(acme, '&order=asc')).toEqual(['a0', 'a2', 'a3', 'a4', 'a1']);
      for (const order of ['asc', 'desc', 'normal']) {
        const all = (await listOf(acme, `&order=${order}`)).data;
        const pages = [];
        for (let cursor = ''; ;) {
          const page = await listOf(acme, `&order=${order}&limit=2${cursor}`);
          pages.push(...page.data);
          const { after, before } = page.list_metadata;
          const next = order === 'normal' ? before : after;
          if (next === null) break;
          cursor = `&${order === 'normal' ? 'before' : 'after'}=${next}`;
        }
        expect(pages).toEqual(all);
      }
      const { data } = await listOf(acme);
      expect((await listOf(acme, `&before=${data[3].id}&limit=2`)).data).toEqual(data.slice(1, 3));
    });

    it.each([
      ['&actions=a0,a3', ['a3', 'a0']],
      ['&actions[]=a0&actions[]=a3', ['a3', 'a0']],
      ['&actor_ids=user_1', ['a1', 'a3']],
      ['&actor_names=Grace', ['a4', 'a3', 'a2']],
      ['&actor_names[]=Lovelace, Ada', ['a1']],
      ['&actor_names=grace', []],
      ['&target_types=file', ['a4']],
      ['&target_types=team,file', ['a1', 'a4', 'a3', 'a2', 'a0']],
      ['&target_ids=t2,t3', ['a3', 'a2']],
      ['&target_ids=shared', ['a1', 'a4', 'a3', 'a2', 'a0']],
    ])('take one kind of filter: %s', async (query, expected) => {
      expect(await actionsOf(acme, query)).toEqual(expected);
      expect((await actionsOf(acme, `${query}&order=asc&limit=100`)).toReversed()).toEqual(expected);
    });

    it('take a range beside it, both ends included', async () => {
      const { data } = await listOf(acme, '&order=asc');
      const [, second, , fourth] = data;
      const range = `&range_start=${second.occurred_at}&range_end=${fourth.occurred_at}`;
      expect(await actionsOf(acme, `${range}&order=asc`)).toEqual(['a2', 'a3', 'a4']);
      expect(await actionsOf(acme, `${range}&target_types=team`)).toEqual(['a4', 'a3', 'a2']);
      expect(await actionsOf(acme, `&range_start=1900-01-01&range_end=2999-01-01`)).toHaveLength(5);
      expect(await actionsOf(acme, '&range_start=2998-01-01')).toEqual([]);
    });

    it.each([
      ['', 'organization_id', 'required'],
      ['organization_id=ACME&scope=environment', 'scope', 'not_allowed'],
      ['scope=organization', 'scope', 'not_allowed'],
      ['organization_id=ACME&actions=a&actor_ids=b', 'actor_ids', 'not_allowed'],
      ['organization_id=ACME&actions=' + Array.from({ length: 21 }, (_, index) => index).join(), 'actions', 'too_many'],
      ['organization_id=ACME&range_start=2026-01-02&range_end=2026-01-01', 'range_end', 'out_of_range'],
      ['organization_id=ACME&range_start=yesterday', 'range_start', 'invalid_format'],
      ['organization_id=ACME&limit=101', 'limit', 'out_of_range'],
      ['organization_id=ACME&after=audit_event_01J0000000000000000000000A', 'after', 'invalid_cursor'],
      ['organization_id=ACME&after=org_01J0000000000000000000000A', 'after', 'invalid_cursor'],
    ])('refuse %s', async (query, field, code) => {
      const { errors } = await suite.get(`${EVENTS}?${query.replace('ACME', acme)}`).expect(422);
      expect(errors).toEqual([{ field, code, message: expect.any(String) }]);
    });

    it('are of one organization, or of the environment itself, of which nobody but the log tells', async () => {
      expect(await actionsOf(await organization())).toEqual([]);
      for (const { organization_id } of (await suite.get(`${EVENTS}?scope=environment`).expect(200)).data) expect(organization_id).toMatch(/^environment_/);
      const other = await suite.otherEnvironment();
      await other.get(`${EVENTS}?organization_id=${acme}`).expect(404);
      const [{ id }] = (await listOf(acme)).data;
      await other.get(`${EVENTS}/${id}`).expect(404);
    });
  });

  it('lie in the log sealed, with a commitment that nobody can guess, and are announced to nobody', async () => {
    const acme = await organization();
    const secret = 'canary-of-the-trail';
    await record(acme, event({ action: secret, actor: { id: secret, type: secret, name: secret }, metadata: { [secret]: secret } })).expect(200);
    await record(acme, event({ action: secret })).expect(200);
    const records = (await suite.records()).filter(({ stream }) => stream.endsWith(`-${acme}`) && stream.startsWith('audit_trail-'));
    expect(records.map(({ version, type, public: announced }) => [version, type, announced])).toEqual([
      [1, 'audit_event.recorded', []],
      [2, 'audit_event.recorded', []],
    ]);
    const text = JSON.stringify(records);
    expect(text).not.toContain(secret);
    // Equal contents of events that came without a key would be told from others by their digests alone.
    const [first] = records as unknown as readonly [{ data: { commitment: string } }];
    const { data } = await listOf(acme, '&order=asc');
    const { action, actor, context, metadata, occurred_at, targets, version } = data[0];
    const content = canonicalize({ action, actor, context, metadata, occurred_at, targets, version })!;
    expect(first.data.commitment).not.toBe(createHash('sha256').update(content).digest('base64url'));
    expect(Buffer.from(first.data.commitment, 'base64url')).toHaveLength(32);
  });

  it('are gone with their organization', async () => {
    const acme = await organization();
    await record(acme).expect(200);
    const { data } = await listOf(acme);
    await suite.delete(`/organizations/${acme}`).expect(202);
    await record(acme).expect(404, { entity_id: acme });
    await suite.get(`${EVENTS}?organization_id=${acme}`).expect(404, { entity_id: acme });
    await suite.get(`${EVENTS}/${data[0].id}`).expect(404, { entity_id: data[0].id });
  });
});
