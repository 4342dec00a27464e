import { randomUUID } from 'node:crypto';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const USERS = '/user_management/users';

describe('users who are erased', () => {
  let suite: GivenSuite;
  beforeAll(async () => {
    suite = await givenSuite();
  });

  async function create(fields: object = {}) {
    return suite.post(USERS, { email: `ada-${randomUUID()}@acme.test`, first_name: 'Ada', metadata: { tier: 'gold' }, ...fields }).expect(201);
  }

  const erasureOf = (id: string): string => `/admin/users/${id}/erasure`;

  async function recordsOf(id: string) {
    return (await suite.records()).filter(({ stream }) => stream.endsWith(id));
  }

  it('are gone at once, with an empty answer, and leave their email and external id to others', async () => {
    const given = { email: `grace-${randomUUID()}@acme.test`, external_id: randomUUID() };
    const user = await create(given);
    const { status, text } = await suite.post(erasureOf(user.id));
    expect([status, text]).toEqual([202, '']);
    await suite.get(`${USERS}/${user.id}`).expect(404);
    await suite.get(`${USERS}/external_id/${given.external_id}`).expect(404);
    await suite.put(`${USERS}/${user.id}`, { name: 'Nobody' }).expect(404);
    await create(given);
  });

  it('are erased once, whoever asks again', async () => {
    const { id } = await create();
    await Promise.all(Array.from({ length: 4 }, () => suite.post(erasureOf(id)).expect(202)));
    await suite.post(erasureOf(id)).expect(202);
    expect((await recordsOf(id)).map(({ type }) => type)).toEqual(['user.created', 'user.erased', 'user.deleted']);
  });

  it('may be deleted already', async () => {
    const { id } = await create();
    await suite.delete(`${USERS}/${id}`).expect(200);
    await suite.post(erasureOf(id)).expect(202);
    expect((await recordsOf(id)).map(({ type }) => type)).toEqual(['user.created', 'user.deleted', 'user.erased']);
  });

  it('have to have been here', async () => {
    const other = await suite.otherEnvironment();
    const { id } = await create();
    await other.post(erasureOf(id)).expect(404, { code: 'entity_not_found' });
    await suite.post(erasureOf('user_01HZZZZZZZZZZZZZZZZZZZZZZ1')).expect(404);
    await suite.get(`${USERS}/${id}`).expect(200);
  });

  it('are unknown to the log, while it goes on to say what happened', async () => {
    const user = await create();
    await suite.put(`${USERS}/${user.id}`, { last_name: 'King', locale: 'en' }).expect(200);
    await suite.post(erasureOf(user.id)).expect(202);
    await eventually(async () => {
      const [created, updated, erased, deleted] = await recordsOf(user.id);
      expect(created!.data).toMatchObject({ id: user.id, email: null, first_name: null, metadata: null, email_verified: false });
      expect(created!.subject).toMatchObject({ id: user.id, email: null, first_name: null, metadata: null });
      expect(updated!.data).toEqual({ last_name: null, locale: 'en' });
      expect(erased!.data).toEqual({ holders: [`user.${user.id}`] });
      expect([deleted!.data, deleted!.sealed]).toEqual([{ id: user.id }, []]);
      expect(deleted!.subject).toMatchObject({ id: user.id, email: null, locale: null });
    });
  });

  it('end for everybody who is told of their end, without what was personal', async () => {
    const user = await create();
    await suite.post(erasureOf(user.id)).expect(202);
    const { data } = await eventually(async () => {
      const { data: events } = await suite.get('/events?events=user.deleted&order=desc').expect(200);
      return events.find((event: { data: { id: string } }) => event.data.id === user.id) ?? Promise.reject(new Error('not there yet'));
    });
    expect(data).toEqual({
      ...{ object: 'user', id: user.id, email: '', email_verified: false, first_name: null, last_name: null, name: null, profile_picture_url: null },
      ...{ external_id: null, metadata: {}, last_sign_in_at: null, locale: null, created_at: user.created_at, updated_at: user.updated_at },
    });
  });

  it('are in no event of before any more, which is otherwise what it was', async () => {
    const user = await create();
    const after = (await suite.put(`${USERS}/${user.id}`, { last_name: 'King', locale: 'en' }).expect(200)).updated_at;
    const eventsOf = async () => {
      const { data: events } = await suite.get('/events?events=user.created&events=user.updated&order=desc').expect(200);
      return events.filter((event: { data: { id: string } }) => event.data.id === user.id);
    };
    const before = await eventually(async () => {
      const events = await eventsOf();
      expect(events.map(({ data }: { data: { email: string } }) => data.email)).toEqual([user.email, user.email]);
      return events;
    });
    await suite.post(erasureOf(user.id)).expect(202);
    const nothing = { email: '', first_name: null, last_name: null, metadata: {} };
    await eventually(async () =>
      expect(await eventsOf()).toEqual([
        { ...before[0], data: { ...before[0].data, ...nothing, locale: 'en', updated_at: after } },
        { ...before[1], data: { ...before[1].data, ...nothing } },
      ]),
    );
  });
});
