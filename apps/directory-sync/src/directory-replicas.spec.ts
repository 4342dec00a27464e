import { randomUUID } from 'node:crypto';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { GivenDirectory, group, user } from '#libs/testing/src/given-directory';

type Answer = Awaited<ReturnType<GivenSuite['scim']>>;

const ROUNDS = 8;

/** Two gateways and two services of directories, which share the log and the rows and know nothing else of each other. */
describe('a directory that two replicas serve', () => {
  let suite: GivenSuite;
  let directory: GivenDirectory;
  beforeAll(async () => void (suite = await givenSuite({ replicas: true })));
  beforeEach(async () => void (directory = await GivenDirectory.open(suite)));

  /** Each of another replica. */
  const atOnce = (...requests: readonly (readonly [Parameters<GivenDirectory['scim']>[0], string, object?])[]): Promise<readonly Answer[]> =>
    Promise.all(requests.map(([method, path, body], replica) => directory.scim(method, path, body, replica)));
  const made = async (path: string, body: object): Promise<string> => {
    const answer = await directory.scim('POST', path, body);
    expect(answer.status).toBe(201);
    return answer.body.id;
  };
  const patch = (...Operations: readonly object[]) => ({ Operations });
  const members = (...ids: readonly string[]) => ids.map((value) => ({ value }));
  /** As each of them shows it. */
  const shown = async (path: string) => {
    const answers = await Promise.all(suite.scimUrls.map((_, replica) => directory.scim('GET', path, undefined, replica)));
    for (const { status, body } of answers) expect([status, body]).toEqual([200, answers[0]!.body]);
    return answers[0]!.body;
  };
  const announced = async (name: string, id: string) =>
    (await suite.records()).flatMap(({ data, public: names }) => (names.some((each) => each.name === name) && JSON.stringify(data).includes(id) ? [data] : []));

  it('carries out two changes at once of a person in one order, whole, and tells of them in that order', async () => {
    const id = await made('/Users', { userName: randomUUID() });
    const both = (word: string) => patch({ op: 'replace', path: 'title', value: word }, { op: 'replace', path: 'nickName', value: word });
    for (let round = 0; round < ROUNDS; round++) {
      const own = (value: string) => patch({ op: 'replace', path: `name.${value}`, value: `${value} ${round}` });
      const answers = await atOnce(
        ['PATCH', `/Users/${id}`, both(`A${round}`)],
        ['PATCH', `/Users/${id}`, both(`B${round}`)],
        ['PATCH', `/Users/${id}`, own('givenName')],
        ['PATCH', `/Users/${id}`, own('familyName')],
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      // Nobody is answered a version that somebody else was answered.
      expect(new Set(answers.map(({ body }) => body.meta.version)).size).toBe(4);
      const after = await shown(`/Users/${id}`);
      expect([`A${round}`, `B${round}`]).toContain(after.title);
      expect(after).toMatchObject({ nickName: after.title, name: { givenName: `givenName ${round}`, familyName: `familyName ${round}` } });
      const last = answers.find(({ body }) => body.meta.version === after.meta.version)!;
      expect(last.body).toEqual(after);
    }
    expect(await announced('dsync.user.updated', id)).toHaveLength(4 * ROUNDS);
  });

  it('carries out two changes at once of a group in one order, and tells of its members as that is', async () => {
    const [a, b, c] = [await made('/Users', { userName: 'a' }), await made('/Users', { userName: 'b' }), await made('/Users', { userName: 'c' })] as const;
    const id = await made('/Groups', { displayName: 'G' });
    const path = `/Groups/${id}`;
    for (let round = 0; round < ROUNDS; round++) {
      await directory.scim('PATCH', path, patch({ op: 'replace', path: 'members', value: members(c) }), round);
      const answers = await atOnce(
        ['PATCH', path, patch({ op: 'add', path: 'members', value: members(a, b) }, { op: 'remove', path: 'members', value: members(c) })],
        ['PATCH', path, patch({ op: 'add', path: 'members', value: members(c) }, { op: 'remove', path: 'members', value: members(a) })],
      );
      expect(answers.map(({ status }) => status)).toEqual([204, 204]);
      const found = (await shown(path)).members.map(({ value }: { value: string }) => value).sort();
      expect([[b, c].sort(), [a, b].sort()]).toContainEqual(found);
    }
    const end = (await shown(path)).members.map(({ value }: { value: string }) => value).sort();
    await eventually(async () => {
      const told = new Set<string>();
      for (const { stream, data, public: names } of await suite.records()) {
        // Of a person, it is told in the stream of that person.
        const person = [a, b, c].find((each) => stream.endsWith(each));
        if (person === undefined || !JSON.stringify(data).includes(id)) continue;
        if (names.some(({ name }) => name === 'dsync.group.user_added')) told.add(person);
        if (names.some(({ name }) => name === 'dsync.group.user_removed')) told.delete(person);
      }
      expect([...told].sort()).toEqual(end);
    });
  });

  it('gives a name to one of two who ask for it at once, and makes one person where both have the same key', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const name = `Name-${round}`;
      const answers = await atOnce(['POST', '/Users', { userName: name }], ['POST', '/Users', { userName: name.toUpperCase() }]);
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
      const groups = await atOnce(['POST', '/Groups', { displayName: name }], ['POST', '/Groups', { displayName: name.toLowerCase() }]);
      expect(groups.map(({ status }) => status).sort()).toEqual([201, 409]);
    }
    const body = { userName: 'keyed' };
    const keyed = async (replica: number) =>
      suite.scim('POST', directory.id, '/Users', directory.token, { body, replica, headers: { 'Idempotency-Key': `key-${directory.id}` } });
    const answers = await Promise.all([keyed(0), keyed(1)]);
    const done = answers.filter(({ status }) => status === 201).map(({ body: { id } }) => id);
    // One that is not over yet is told of; asked again, it is the same person.
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
    for (const replica of [0, 1]) expect(await keyed(replica)).toMatchObject({ status: 201, body: { id: done[0] } });
    expect((await shown('/Users?filter=userName%20eq%20%22keyed%22')).totalResults).toBe(1);
  });

  it('lets one of two through who both say which version they have seen', async () => {
    const id = await made('/Users', { userName: 'seen' });
    for (let round = 0; round < ROUNDS; round++) {
      const { version } = (await shown(`/Users/${id}`)).meta;
      const answers = await Promise.all(
        [0, 1].map((replica) => {
          const body = patch({ op: 'replace', path: 'title', value: `${round} ${replica}` });
          return suite.scim('PATCH', directory.id, `/Users/${id}`, directory.token, { body, replica, headers: { 'If-Match': version } });
        }),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 412]);
    }
  });

  it('has nobody in a group who is gone, however that meets at two replicas', async () => {
    const id = await made('/Groups', { displayName: 'G' });
    for (let round = 0; round < ROUNDS; round++) {
      const person = await made('/Users', { userName: `p${round}` });
      const requests = [
        ['DELETE', `/Users/${person}`],
        ['PATCH', `/Groups/${id}`, patch({ op: 'add', path: 'members', value: members(person) })],
      ] as const;
      const [one, other] = await atOnce(...(round % 2 === 0 ? requests : requests.toReversed()));
      const [gone, joined] = round % 2 === 0 ? [one, other] : [other, one];
      expect(gone!.status).toBe(204);
      expect([204, 400]).toContain(joined!.status);
      expect((await shown(`/Groups/${id}`)).members ?? []).toEqual([]);
    }
  });

  it('shows at one what the other has taken, at once: pages, requests, tokens that were revoked', async () => {
    for (let index = 0; index < 6; index++) expect((await directory.scim('POST', '/Users', { userName: `u${index}` }, index)).status).toBe(201);
    const names: string[] = [];
    for (let page = 0; page < 3; page++) {
      const { body } = await directory.scim('GET', `/Users?startIndex=${1 + 2 * page}&count=2`, undefined, page);
      names.push(...body.Resources.map(({ userName }: { userName: string }) => userName));
    }
    expect(names).toEqual(['u0', 'u1', 'u2', 'u3', 'u4', 'u5']);
    const callers = suite.urls.map((url) => new Caller(() => url, suite.key));
    for (const caller of callers) await caller.eventually(`/admin/directories/${directory.id}/requests?limit=1`, { data: [{ method: 'GET' }] });
    const { id: tokenId, token } = await callers[0]!.post(`/admin/directories/${directory.id}/tokens`).expect(201);
    const ask = (replica: number) => suite.scim('GET', directory.id, '/Users?count=0', token, { replica });
    expect([(await ask(0)).status, (await ask(1)).status]).toEqual([200, 200]);
    await callers[1]!.delete(`/admin/directories/${directory.id}/tokens/${tokenId}`).expect(204);
    expect([(await ask(0)).status, (await ask(1)).status]).toEqual([401, 401]);
    await callers[1]!.patch(`/admin/directories/${directory.id}`, { state: 'unlinked' }).expect(200);
    for (const replica of [0, 1]) expect((await directory.scim('GET', '/Users', undefined, replica)).status).toBe(403);
  });

  it('carries out one listing at a time, whoever was sent it', async () => {
    const lines = [...Array.from({ length: 200 }, (_, index) => user(`u${index}`)), group('g', ['u0', 'u199'])];
    const callers = suite.urls.map((url) => new Caller(() => url, suite.key));
    const path = `/admin/directories/${directory.id}/snapshot`;
    const sent = await Promise.all(callers.map((caller) => caller.put(path, `${lines.join('\n')}\n`, { 'Content-Type': 'application/x-ndjson' })));
    expect(sent.map(({ status }) => status).sort()).toEqual([202, 409]);
    const { id } = sent.find(({ status }) => status === 202)!.body;
    for (const caller of callers)
      await caller.eventually(`/admin/directories/${directory.id}/runs/${id}`, { phase: 'completed', users: { created: 200 } }, 30_000);
    expect(await directory.groups()).toEqual({ g: ['u0', 'u199'] });
  });
});
