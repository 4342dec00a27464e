import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

const ACTIONS = '/audit_logs/actions';
const schemasOf = (action: string): string => `${ACTIONS}/${encodeURIComponent(action)}/schemas`;
const ROLE = { type: 'object', properties: { role: { type: 'string', enum: ['owner', 'member'] } }, required: ['role'] };
const TARGETS = [{ type: 'document' }];

describe('schemas of audit events', () => {
  let suite: GivenSuite;
  beforeAll(async () => void (suite = await givenSuite({ replicas: true })));

  it('count by action, and show `{}` where anything goes', async () => {
    const first = await suite.post(schemasOf('document.shared'), { targets: TARGETS }).expect(201);
    expect(first).toEqual({
      object: 'audit_log_schema',
      version: 1,
      actor: { metadata: {} },
      targets: [{ type: 'document', metadata: {} }],
      metadata: {},
      created_at: expect.any(String) as string,
    });
    const second = await suite
      .post(schemasOf('document.shared'), { targets: TARGETS, actor: { metadata: ROLE } })
      .expect(201, { version: 2, actor: { metadata: ROLE } });
    await suite.post(schemasOf('an action / of another kind?'), { targets: TARGETS }).expect(201, { version: 1 });

    const { data } = await suite.get(schemasOf('document.shared')).expect(200);
    expect(data).toEqual([second, first]);
    const actions = await suite.get(`${ACTIONS}?order=asc`).expect(200);
    expect(actions.data).toEqual([
      { object: 'audit_log_action', name: 'document.shared', schema: second, created_at: first.created_at, updated_at: second.created_at },
      expect.objectContaining({ name: 'an action / of another kind?' }),
    ]);
  });

  it('are of actions that events can have', async () => {
    await suite.post(schemasOf('a\0b'), { targets: TARGETS }).expect(422, { errors: [{ code: 'invalid_characters', field: 'action_name' }] });
    await suite.get(schemasOf('a\0b')).expect(404);
  });

  it('are of actions as long as those of events', async () => {
    const { id: organization_id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    for (const action of ['x'.repeat(255), '/'.repeat(255), 'ü'.repeat(255), '😀'.repeat(255)]) {
      await suite.post(schemasOf(action), { targets: TARGETS }).expect(201, { version: 1 });
      await suite.get(schemasOf(action)).expect(200, { data: [{ version: 1 }] });
      const event = {
        action,
        occurred_at: new Date().toISOString(),
        actor: { id: 'a', type: 'user' },
        targets: [{ id: 'a', type: 'folder' }],
        context: { location: '' },
      };
      await suite.post('/audit_logs/events', { organization_id, event }).expect(400, { errors: [{ instancePath: '/targets/0' }] });
    }
    await suite.get(schemasOf('x'.repeat(256))).expect(422, { errors: [{ code: 'too_long', field: 'action_name' }] });
  });

  it('come by pages, whose cursors are of no resource', async () => {
    for (let version = 1; version <= 5; version++) await suite.post(schemasOf('paged'), { targets: TARGETS }).expect(201, { version });
    const versions = (page: { readonly data: readonly { readonly version: number }[] }): readonly number[] => page.data.map(({ version }) => version);
    const first = await suite.get(`${schemasOf('paged')}?limit=2`).expect(200);
    const second = await suite.get(`${schemasOf('paged')}?limit=2&after=${first.list_metadata.after}`).expect(200);
    const last = await suite.get(`${schemasOf('paged')}?limit=2&after=${second.list_metadata.after}`).expect(200, { list_metadata: { after: null } });
    expect([first, second, last].map(versions)).toEqual([[5, 4], [3, 2], [1]]);
    await suite
      .get(`${schemasOf('paged')}?after=${first.list_metadata.after.replace(/.$/, 'Z')}`)
      .expect(422, { errors: [{ code: 'invalid_cursor', field: 'after' }] });

    const actions = await suite.get(`${ACTIONS}?limit=1`).expect(200, { data: [{ name: 'paged' }] });
    await suite.get(`${ACTIONS}?limit=1&after=${actions.list_metadata.after}`).expect(200, { list_metadata: { before: expect.any(String) as string } });
  });

  it('are made once however often a command is repeated, and in turn by all who make one at once', async () => {
    const once = { 'Idempotency-Key': 'schema-1' };
    const body = { targets: TARGETS };
    const made = await suite.post(schemasOf('repeated'), body, once).expect(201, { version: 1 });
    await suite.post(schemasOf('repeated'), body).expect(201, { version: 2 });
    expect(await suite.post(schemasOf('repeated'), body, once).expect(201)).toEqual(made);
    const many = await Promise.all(Array.from({ length: 6 }, () => suite.post(schemasOf('at once'), body).expect(201)));
    expect(many.map((made: { readonly version: number }) => made.version).sort()).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('that contradict themselves are refused with the place of each fault', async () => {
    const metadata = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } }, required: ['b'], additionalProperties: false };
    await suite.post(schemasOf('refused'), { targets: [{ type: 'document', metadata }] }).expect(422, {
      code: 'invalid_audit_log_schema',
      errors: [
        { code: 'unknown_keyword', field: 'targets.0.metadata.properties.a' },
        { code: 'contradiction', field: 'targets.0.metadata.required' },
      ],
    });
    await suite.post(schemasOf('refused'), { targets: [] }).expect(422, { code: 'invalid_request_parameters' });
    await suite.post(schemasOf('x'.repeat(256)), { targets: TARGETS }).expect(422, { errors: [{ code: 'too_long', field: 'action_name' }] });
    await suite.get(schemasOf('refused')).expect(404, { code: 'entity_not_found' });
  });

  it('that are too large are refused, however large, and count for nothing', async () => {
    const withText = (bytes: number) => ({
      targets: TARGETS,
      metadata: { type: 'object', properties: { role: { type: 'string', enum: ['x'.repeat(bytes)] } } },
    });
    await suite.post(schemasOf('large'), withText(33 * 1024)).expect(422, { code: 'invalid_audit_log_schema' });
    await suite.post(schemasOf('large'), withText(1024 * 1024)).expect(413, { code: 'payload_too_large' });
    await suite.post(schemasOf('large'), { targets: TARGETS }).expect(201, { version: 1 });
  });

  it('belong to their environment', async () => {
    const other = await suite.otherEnvironment();
    await other.get(schemasOf('document.shared')).expect(404);
    await other.get(ACTIONS).expect(200, { data: [] });
  });

  describe('hold for events', () => {
    const event = (action: string, given: object = {}): object => ({
      action,
      occurred_at: new Date().toISOString(),
      actor: { id: 'user_1', type: 'user', metadata: { role: 'owner' } },
      targets: [{ id: 'document_1', type: 'document' }],
      context: { location: '192.0.2.1' },
      ...given,
    });
    let organization_id: string;
    const send = (...given: Parameters<typeof event>) => suite.post('/audit_logs/events', { organization_id, event: event(...given) });
    beforeAll(async () => {
      organization_id = (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id as string;
    });

    it('on every replica, from the next one on', async () => {
      await send('held').expect(200);
      for (const field of ['one', 'two', 'three', 'four']) {
        const actor = { metadata: { type: 'object', properties: {}, required: [field] } };
        await suite.post(schemasOf('held'), { targets: TARGETS, actor }).expect(201);
        for (let replica = 0; replica < 2; replica++)
          await send('held').expect(400, { code: 'invalid_audit_log_event', errors: [{ code: 'required', instancePath: '/actor/metadata' }] });
        await send('held', { actor: { id: 'user_1', type: 'user', metadata: { [field]: 'there' } } }).expect(200);
      }
    });

    it('by the version that they name, else by the newest', async () => {
      await suite.post(schemasOf('versioned'), { targets: TARGETS }).expect(201);
      await suite.post(schemasOf('versioned'), { targets: [{ type: 'folder' }] }).expect(201);
      await send('versioned').expect(400, { errors: [{ instancePath: '/targets/0' }] });
      await send('versioned', { version: 2 }).expect(400, { errors: [{ instancePath: '/targets/0' }] });
      await send('versioned', { version: 1 }).expect(200);
      for (const version of [0, 3, -1])
        await send('versioned', { version }).expect(400, { code: 'invalid_audit_log_event', errors: [{ instancePath: '/version' }] });
      await send('without a schema', { version: 1 }).expect(400, { errors: [{ instancePath: '/version' }] });
    });
  });
});
