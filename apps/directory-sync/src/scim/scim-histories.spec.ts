import fc from 'fast-check';
import { seedOf } from '#libs/testing/src/seed';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

/** Each history is a directory of its own; they run side by side. */
const HISTORIES = 12;
const STEPS = 25;
const NAMES = ['ada', 'bob', 'cyd', 'dan', 'eve'];
const GROUPS = ['red', 'blue'];
const seed = seedOf('scim-histories');

type Step =
  | { readonly do: 'create' | 'replace' | 'deactivate' | 'activate' | 'delete'; readonly person: number }
  | { readonly do: 'rename'; readonly person: number; readonly to: number }
  | { readonly do: 'create_group' | 'delete_group' | 'empty'; readonly group: number }
  | { readonly do: 'join' | 'leave'; readonly group: number; readonly people: readonly number[] }
  | { readonly do: 'set'; readonly group: number; readonly people: readonly number[] }
  /** At once: which of them comes first is not said. */
  | { readonly do: 'race'; readonly group: number; readonly person: number };

const person = fc.nat(NAMES.length - 1);
const group = fc.nat(GROUPS.length - 1);
const people = fc.uniqueArray(person, { minLength: 1, maxLength: 4 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('create' as const), person }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('replace' as const, 'deactivate' as const, 'activate' as const, 'delete' as const), person }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rename' as const), person, to: person }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('create_group' as const, 'create_group' as const, 'delete_group' as const, 'empty' as const), group }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('join' as const, 'leave' as const), group, people }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('set' as const), group, people }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('race' as const), group, person }) },
);

/** What is known of a directory, in a few lines: by the number of a person the id, by the number of a group id and members. */
interface Model {
  readonly people: Map<number, { id: string; name: number; active: boolean }>;
  readonly groups: Map<number, { id: string; members: Set<string> }>;
}

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

it(`agrees with a model after histories of SCIM, and so does whoever follows the events (seed ${seed})`, async () => {
  const histories = fc.sample(fc.array(step, { minLength: STEPS, maxLength: STEPS }), { numRuns: HISTORIES, seed });
  await Promise.all(histories.map((history) => carryOut(history)));
});

async function carryOut(history: readonly Step[]): Promise<void> {
  const organization = await suite.post('/organizations', { name: 'Acme' }).expect(201);
  const { id: directory } = await suite.post('/admin/directories', { organization_id: organization.id, type: 'generic scim v2.0', name: 'D' }).expect(201);
  const { token } = await suite.post(`/admin/directories/${directory}/tokens`).expect(201);
  const ask = (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object) => suite.scim(method, directory, path, token, { body });
  const model: Model = { people: new Map(), groups: new Map() };
  const patch = async (path: string, status: number, ...Operations: readonly object[]) =>
    expect((await ask('PATCH', path, { Operations })).status).toBe(status);
  const named = (name: number) => [...model.people.values()].find((each) => each.name === name);

  for (const one of history) {
    const known = 'person' in one ? model.people.get(one.person) : undefined;
    const into = 'group' in one ? model.groups.get(one.group) : undefined;
    const ids = 'people' in one ? one.people.flatMap((each) => model.people.get(each)?.id ?? []) : [];
    switch (one.do) {
      case 'create': {
        const answer = await ask('POST', '/Users', { userName: NAMES[one.person], externalId: `e-${one.person}`, active: true });
        expect(answer.status).toBe(named(one.person) === undefined ? 201 : 409);
        // Somebody who was renamed has another name, and keeps the place in the model.
        if (answer.status === 201 && known === undefined) model.people.set(one.person, { id: answer.body.id, name: one.person, active: true });
        else if (answer.status === 201) expect((await ask('DELETE', `/Users/${answer.body.id}`)).status).toBe(204);
        break;
      }
      case 'rename': {
        if (known === undefined) break;
        const holder = named(one.to);
        await patch(`/Users/${known.id}`, holder === undefined || holder === known ? 200 : 409, {
          op: 'replace',
          value: { userName: NAMES[one.to]!.toUpperCase() },
        });
        if (holder === undefined) known.name = one.to;
        break;
      }
      case 'replace':
      case 'deactivate':
      case 'activate': {
        if (known === undefined) break;
        const active = one.do !== 'deactivate';
        if (one.do === 'replace') expect((await ask('PUT', `/Users/${known.id}`, { userName: NAMES[known.name], active })).status).toBe(200);
        else await patch(`/Users/${known.id}`, 200, { op: 'replace', path: 'active', value: active ? 'True' : 'False' });
        known.active = active;
        break;
      }
      case 'delete':
        if (known === undefined) break;
        expect((await ask('DELETE', `/Users/${known.id}`)).status).toBe(204);
        model.people.delete(one.person);
        for (const { members } of model.groups.values()) members.delete(known.id);
        break;
      case 'create_group': {
        const answer = await ask('POST', '/Groups', { displayName: GROUPS[one.group] });
        expect(answer.status).toBe(into === undefined ? 201 : 409);
        if (answer.status === 201) model.groups.set(one.group, { id: answer.body.id, members: new Set() });
        break;
      }
      case 'delete_group':
        if (into !== undefined) expect((await ask('DELETE', `/Groups/${into.id}`)).status).toBe(204);
        model.groups.delete(one.group);
        break;
      case 'empty':
        if (into === undefined) break;
        await patch(`/Groups/${into.id}`, 204, { op: 'remove', path: 'members' });
        into.members.clear();
        break;
      case 'join':
      case 'leave':
        if (into === undefined || ids.length === 0) break;
        await patch(`/Groups/${into.id}`, 204, { op: one.do === 'join' ? 'add' : 'remove', path: 'members', value: ids.map((value) => ({ value })) });
        for (const id of ids)
          if (one.do === 'join') into.members.add(id);
          else into.members.delete(id);
        break;
      case 'set':
        if (into === undefined) break;
        await patch(`/Groups/${into.id}`, 204, { op: 'replace', path: 'members', value: ids.map((value) => ({ value })) });
        into.members = new Set(ids);
        break;
      case 'race': {
        if (into === undefined || known === undefined) break;
        const [, joined] = await Promise.all([
          ask('DELETE', `/Users/${known.id}`),
          ask('PATCH', `/Groups/${into.id}`, { Operations: [{ op: 'add', path: 'members', value: [{ value: known.id }] }] }),
        ]);
        expect([204, 400]).toContain(joined.status);
        model.people.delete(one.person);
        for (const { members } of model.groups.values()) members.delete(known.id);
        break;
      }
    }
  }

  const expected = {
    people: [...model.people.values()].map(({ id, active }) => [id, active ? 'active' : 'inactive']).sort(),
    groups: [...model.groups.values()].map(({ id, members }) => [id, [...members].sort()]).sort(),
  };
  const groups = (await ask('GET', '/Groups')).body.Resources as readonly { readonly id: string; readonly members?: readonly { readonly value: string }[] }[];
  expect(groups.map(({ id, members = [] }) => [id, members.map(({ value }) => value).sort()]).sort()).toEqual(expected.groups);
  const users = (await suite.get(`/directory_users?directory=${directory}&limit=100`).expect(200)).data as readonly {
    readonly id: string;
    readonly state: string;
  }[];
  expect(users.map(({ id, state }) => [id, state]).sort()).toEqual(expected.people);
  const counts = { users: { active: expected.people.filter(([, state]) => state === 'active').length }, groups: expected.groups.length };
  await suite.get(`/directories/${directory}`).expect(200, { metadata: counts });
  await eventually(async () => expect(await followed(organization.id)).toEqual(expected));
}

/** What whoever folds the events of an organization knows in the end. */
async function followed(organization: string) {
  const people = new Map<string, string>();
  const groups = new Map<string, Set<string>>();
  for (let after = ''; ;) {
    const page = await suite.get(`/events?organization_id=${organization}&limit=100${after === '' ? '' : `&after=${after}`}`).expect(200);
    for (const { event, data } of page.data as readonly { readonly event: string; readonly data: object }[]) {
      const { id, state, user, group: of } = data as { id: string; state: string; user: { id: string }; group: { id: string } };
      if (event === 'dsync.user.created' || event === 'dsync.user.updated') people.set(id, state);
      if (event === 'dsync.user.deleted') {
        people.delete(id);
        for (const members of groups.values()) members.delete(id);
      }
      if (event === 'dsync.group.created') groups.set(id, new Set());
      if (event === 'dsync.group.deleted') groups.delete(id);
      // Nothing is told of anybody who is gone, nor before they are there.
      if (event.startsWith('dsync.group.user_')) expect(people.has(user.id)).toBe(true);
      if (event === 'dsync.group.user_added') groups.get(of.id)?.add(user.id);
      if (event === 'dsync.group.user_removed') groups.get(of.id)?.delete(user.id);
    }
    if (page.data.length < 100) break;
    after = page.data.at(-1).id;
  }
  return { people: [...people].sort(), groups: [...groups].map(([id, members]) => [id, [...members].sort()]).sort() };
}
