import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';

const ID = /^user_[0-9A-HJKMNP-TV-Z]{26}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const USERS = '/user_management/users';

describe('users', () => {
  let suite: GivenSuite;
  let count = 0;
  beforeAll(async () => void (suite = await givenSuite()));

  const anEmail = (): string => `ada.${++count}@acme.test`;
  const create = (fields: object = {}) => suite.post(USERS, { email: anEmail(), ...fields }).expect(201);
  const idsOf = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id);
  const eventsOf = async (id: string) =>
    (await suite.records()).filter(({ stream }) => stream.endsWith(`-${id}`)).flatMap((record) => record.public.map(({ name }) => name));

  describe('are created', () => {
    it('with an email alone', async () => {
      const user = await create({ email: ' Ada.Alone@Acme.test\n' });
      expect(user).toEqual({
        object: 'user',
        id: expect.stringMatching(ID),
        email: 'ada.alone@acme.test',
        email_verified: false,
        first_name: null,
        last_name: null,
        name: null,
        profile_picture_url: null,
        external_id: null,
        metadata: {},
        last_sign_in_at: null,
        locale: null,
        created_at: expect.stringMatching(TIME),
        updated_at: user.created_at,
      });
      await suite.get(`${USERS}/${user.id}`).expect(200, user);
      expect(await eventsOf(user.id)).toEqual(['user.created']);
    });

    it('with all that they may have', async () => {
      const given = {
        first_name: 'Ada',
        last_name: 'Lovelace',
        name: 'Ada, Countess of Lovelace',
        email_verified: true,
        external_id: 'all/of it',
        metadata: { tier: 'gold', absent: null },
      };
      const user = await create({ ...given, ip_address: '203.0.113.7', user_agent: 'Mozilla/5.0', signals_id: 'sig_1', locale: 'en' });
      expect(user).toMatchObject({ ...given, metadata: { tier: 'gold' }, locale: null });
      await suite.get(`${USERS}/${user.id}`).expect(200, user);
      await suite.get(`${USERS}/external_id/${encodeURIComponent('all/of it')}`).expect(200, user);
      expect(JSON.stringify(await suite.records())).not.toContain('203.0.113.7');
    });

    it('once with a repeated key', async () => {
      const body = { email: anEmail() };
      const headers = { 'Idempotency-Key': `users-${count}` };
      const first = await suite.post(USERS, body, headers).expect(201);
      const second = await suite.post(USERS, body, headers).expect(201);
      expect(second).toEqual(first);
    });

    it.each([
      ['email', 'required', { email: undefined }],
      ['email', 'invalid', { email: 'ada' }],
      ['email', 'hidden zero width', { email: 'a\u200bda@acme.test' }],
      ['email', 'hidden direction', { email: 'ada\u202e@acme.test' }],
      ['email', 'hidden control', { email: 'a\u0007da@acme.test' }],
      ['email', 'hidden byte order mark', { email: '\ufeffada@acme.test' }],
      ['email', 'hidden filler', { email: 'ada\u3164@acme.test' }],
      ['last_name', 'invalid', { last_name: 'x'.repeat(256) }],
      ['name', 'invalid', { name: 1 }],
      ['external_id', 'invalid', { external_id: 'ü' }],
      ['external_id', 'invalid', { external_id: 'x'.repeat(129) }],
    ])('never with a wrong %s (%s)', async (field, _, given) => {
      const { code, errors } = await suite.post(USERS, { email: anEmail(), ...given }).expect(422);
      expect(code).toBe('invalid_request_parameters');
      expect(new Set(errors.map((error: { field: string }) => error.field))).toEqual(new Set([field]));
    });

    it('never with metadata beyond its limits', async () => {
      for (const metadata of [
        { ['k'.repeat(41)]: 'v' },
        { k: 'v'.repeat(601) },
        { k: 'ü' },
        Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, 'v'])),
      ])
        await suite.post(USERS, { email: anEmail(), metadata }).expect(400, { code: 'invalid_metadata' });
    });

    it('with names that clients leave empty', async () => {
      const empty = { first_name: '', last_name: '', name: '' };
      const user = await create(empty);
      expect(user).toMatchObject(empty);
      await suite.get(`${USERS}/${user.id}`).expect(200, user);
      await suite.put(`${USERS}/${user.id}`, { first_name: 'Ada', name: null }).expect(200, { first_name: 'Ada', last_name: '', name: null });
      await suite.put(`${USERS}/${user.id}`, { first_name: '' }).expect(200, { first_name: '' });
    });

    it('once for an email, whatever its letters look like', async () => {
      for (const [email, ...same] of [
        ['Straße@fold.test', 'STRASSE@fold.test', 'strasse@FOLD.test', ' straße@fold.test '],
        ['ofﬁce@fold.test', 'OFFICE@fold.test'],
        ['ｆｕｌｌ@fold.test', 'full@fold.test'],
        ['σίσυφος@fold.test', 'ΣΊΣΥΦΟΣ@fold.test', 'σίσυφοσ@fold.test'],
        ['e\u0301cole@fold.test', 'École@fold.test'],
      ] as const) {
        const user = await create({ email });
        expect(user.email).toBe(email.toLowerCase());
        const errors = [{ code: 'email_not_available', field: 'email' }];
        for (const other of same) {
          await suite.post(USERS, { email: other }).expect(400, { code: 'user_creation_error', errors });
          expect(idsOf(await suite.get(`${USERS}?email=${encodeURIComponent(other)}`).expect(200))).toEqual([user.id]);
        }
      }
      await create({ email: 'ı@fold.test' });
      await create({ email: 'i@fold.test' });
    });

    it('once for an email, in upper or lower case, and once for an external id', async () => {
      const { email } = await create({ email: 'Taken@Acme.test', external_id: 'taken' });
      for (const same of [email, 'taken@acme.TEST'])
        await suite.post(USERS, { email: same }).expect(400, { code: 'user_creation_error', errors: [{ code: 'email_not_available', field: 'email' }] });
      const errors = [{ code: 'external_id_already_used', field: 'external_id' }];
      await suite.post(USERS, { email: anEmail(), external_id: 'taken' }).expect(400, { code: 'user_creation_error', errors });
    });

    it('once by any number who ask at the same time', async () => {
      const email = anEmail();
      const answers = await Promise.all(Array.from({ length: 8 }, () => suite.post(USERS, { email })));
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400, 400, 400, 400, 400, 400]);
    });
  });

  describe('are deleted', () => {
    it('at once, with an empty answer', async () => {
      const user = await create({ external_id: 'gone' });
      const { status, text, headers } = await suite.delete(`${USERS}/${user.id}`);
      expect([status, text, headers['content-type']]).toEqual([200, '', undefined]);
      await suite.get(`${USERS}/${user.id}`).expect(404, { code: 'entity_not_found', entity_id: user.id });
      await suite.get(`${USERS}/external_id/gone`).expect(404, { entity_id: 'gone' });
      await suite.put(`${USERS}/${user.id}`, { name: 'Nobody' }).expect(404);
      await suite.delete(`${USERS}/${user.id}`).expect(404);
      expect(idsOf(await suite.get(`${USERS}?email=${user.email}`).expect(200))).toEqual([]);
      expect(await eventsOf(user.id)).toEqual(['user.created', 'user.deleted']);
    });

    it('and leave their email and external id to a new user', async () => {
      const given = { email: anEmail(), external_id: 'again' };
      const old = await create(given);
      await suite.delete(`${USERS}/${old.id}`).expect(200);
      const user = await create(given);
      expect(user.id).not.toBe(old.id);
      await suite.get(`${USERS}/external_id/again`).expect(200, { id: user.id });
    });
  });

  describe('are updated', () => {
    it('where something is given; the rest stays', async () => {
      const user = await create({ first_name: 'Ada', name: 'Ada Lovelace', external_id: 'before', metadata: { one: '1', two: '2' } });
      const changed = await suite
        .put(`${USERS}/${user.id}`, { first_name: null, last_name: 'King', locale: 'en-GB', metadata: { two: null, three: '3' } })
        .expect(200);
      expect(changed).toEqual({
        ...user,
        first_name: null,
        last_name: 'King',
        locale: 'en-GB',
        metadata: { one: '1', three: '3' },
        updated_at: expect.stringMatching(TIME),
      });
      expect(changed.updated_at > user.updated_at).toBe(true);
      await suite.get(`${USERS}/${user.id}`).expect(200, changed);
      await suite.put(`${USERS}/${user.id}`, { metadata: {}, external_id: null, locale: null }).expect(200, { metadata: {}, external_id: null, locale: null });
      await suite.get(`${USERS}/external_id/before`).expect(404);
      expect(await eventsOf(user.id)).toEqual(['user.created', 'user.updated', 'user.updated']);
    });

    it('never where nothing changes', async () => {
      const user = await create({ name: 'Ada', metadata: { one: '1' } });
      await suite.put(`${USERS}/${user.id}`, { name: 'Ada', metadata: { one: '1' }, email: user.email, email_verified: false }).expect(200, user);
      await suite.put(`${USERS}/${user.id}`, {}).expect(200, user);
      expect(await eventsOf(user.id)).toEqual(['user.created']);
    });

    it('with an email that is to be verified anew', async () => {
      const user = await create({ email_verified: true });
      await suite.put(`${USERS}/${user.id}`, { email: ` ${user.email.toUpperCase()}` }).expect(200, user);
      const [other, third] = [anEmail(), anEmail()];
      await suite.put(`${USERS}/${user.id}`, { email: other }).expect(200, { email: other, email_verified: false });
      await suite.put(`${USERS}/${user.id}`, { email: third, email_verified: true }).expect(200, { email: third, email_verified: true });
      expect(idsOf(await suite.get(`${USERS}?email=${third.toUpperCase()}`).expect(200))).toEqual([user.id]);
      // The old address is free.
      await create({ email: other });
    });

    it('never with what another has, or what is no email and no language', async () => {
      const rival = await create({ external_id: 'rival' });
      const { id } = await create();
      await suite.put(`${USERS}/${id}`, { email: rival.email.toUpperCase() }).expect(400, { code: 'email_not_available' });
      await suite.put(`${USERS}/${id}`, { external_id: 'rival' }).expect(400, { code: 'external_id_already_used' });
      await suite.put(`${USERS}/${id}`, { email: 'ada' }).expect(400, { code: 'invalid_email' });
      for (const locale of ['', 'not a language', 'x'.repeat(65), 'en_GB'])
        await suite.put(`${USERS}/${id}`, { locale }).expect(400, { code: 'invalid_locale' });
      await suite.put(`${USERS}/${id}`, { metadata: { k: 'ü' } }).expect(400, { code: 'invalid_metadata' });
      for (const unseen of ['\u200d', '\u2800'])
        await suite.put(`${USERS}/${id}`, { email: `a${unseen}da@acme.test` }).expect(422, { errors: [{ code: 'invalid_characters', field: 'email' }] });
      const { email } = await suite.get(`${USERS}/${id}`).expect(200);
      await suite.put(`${USERS}/${id}`, { email: null, email_verified: null, password: null }).expect(200, { email, email_verified: false });
      await suite.put(`${USERS}/user_01J0000000000000000000000A`, { name: 'Nobody' }).expect(404);
    });
  });

  describe('are listed', () => {
    let other: Caller;
    beforeAll(async () => void (other = await suite.otherEnvironment('listed-users')));

    it('newest first, by pages', async () => {
      const ids: string[] = [];
      for (let index = 0; index < 5; index++) ids.unshift((await other.post(USERS, { email: anEmail() }).expect(201)).id);
      const first = await other.get(`${USERS}?limit=2`).expect(200);
      expect(first).toMatchObject({ object: 'list', list_metadata: { before: null, after: ids[1] } });
      const second = await other.get(`${USERS}?limit=3&after=${ids[1]}`).expect(200, { list_metadata: { before: ids[2], after: null } });
      expect([...idsOf(first), ...idsOf(second)]).toEqual(ids);
      expect(idsOf(await other.get(`${USERS}?limit=2&before=${ids[3]}`).expect(200))).toEqual([ids[1], ids[2]]);
      await other.get(`${USERS}?after=org_01J0000000000000000000000A`).expect(422, { errors: [{ code: 'invalid_cursor', field: 'after' }] });
    });

    it('by their email, each in its own environment', async () => {
      const email = 'Both@Acme.test';
      const here = await create({ email });
      const there = await other.post(USERS, { email, external_id: 'there' }).expect(201);
      expect(idsOf(await suite.get(`${USERS}?email=both@acme.test`).expect(200))).toEqual([here.id]);
      expect(idsOf(await other.get(`${USERS}?email=BOTH@acme.test`).expect(200))).toEqual([there.id]);
      await suite.get(`${USERS}/${there.id}`).expect(404);
      await suite.get(`${USERS}/external_id/there`).expect(404);
      await suite.delete(`${USERS}/${there.id}`).expect(404);
    });

    it('by the organization that they are active members of', async () => {
      const { id: organization_id } = await other.post('/organizations', { name: 'Acme' }).expect(201);
      const { id: elsewhere } = await other.post('/organizations', { name: 'Elsewhere' }).expect(201);
      const ids: string[] = [];
      const memberships: string[] = [];
      for (let index = 0; index < 5; index++) {
        const user = await other.post(USERS, { email: anEmail() }).expect(201);
        ids.unshift(user.id);
        const membership = await other.post('/user_management/organization_memberships', { user_id: user.id, organization_id }).expect(201);
        memberships.unshift(membership.id);
      }
      const { email } = await other.get(`${USERS}/${ids[0]}`).expect(200);
      const listed = async (query: string) => idsOf(await other.get(`${USERS}?${query}`).expect(200));
      expect(await listed(`organization_id=${organization_id}`)).toEqual(ids);
      expect(await listed(`organization=${organization_id}&order=asc`)).toEqual([...ids].reverse());
      expect(await listed(`organization_id=${elsewhere}`)).toEqual([]);
      expect(await listed(`organization_id=${organization_id}&email=${email}`)).toEqual([ids[0]]);
      expect(await listed(`organization_id=${elsewhere}&email=${email}`)).toEqual([]);
      const first = await other.get(`${USERS}?organization_id=${organization_id}&limit=2`).expect(200, { list_metadata: { before: null, after: ids[1] } });
      expect(idsOf(first)).toEqual(ids.slice(0, 2));
      expect(await listed(`organization_id=${organization_id}&limit=2&after=${ids[1]}`)).toEqual(ids.slice(2, 4));
      expect(await listed(`organization_id=${organization_id}&limit=2&before=${ids[4]}`)).toEqual(ids.slice(2, 4));

      await other.put(`/user_management/organization_memberships/${memberships[1]}/deactivate`).expect(200);
      await other.delete(`${USERS}/${ids[2]}`).expect(200);
      await other.delete(`/user_management/organization_memberships/${memberships[3]}`).expect(200);
      expect(await listed(`organization_id=${organization_id}`)).toEqual([ids[0], ids[4]]);
      // What left the list is still a place to go on from.
      expect(await listed(`organization_id=${organization_id}&after=${ids[2]}`)).toEqual([ids[4]]);
      await other.put(`/user_management/organization_memberships/${memberships[1]}/reactivate`).expect(200);
      expect(await listed(`organization_id=${organization_id}`)).toEqual([ids[0], ids[1], ids[4]]);

      expect(idsOf(await suite.get(`${USERS}?organization_id=${organization_id}`).expect(200))).toEqual([]);
      await other.delete(`/organizations/${organization_id}`).expect(202);
      expect(await listed(`organization_id=${organization_id}`)).toEqual([]);
      expect(await listed(`organization_id=${organization_id}&email=${email}`)).toEqual([]);
    });
  });
});
