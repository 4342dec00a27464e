import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { failedSeeds, seedOf } from '#libs/testing/src/seed';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const { SCIM_HISTORIES, SCIM_HISTORIES_SEED } = environmentVariables();
/** `SCIM_HISTORIES=500 npm test scim-histories`; with `SCIM_HISTORIES_SEED`, those from that one on. */
const FIRST_SEED = Number(SCIM_HISTORIES_SEED ?? seedOf('scim-histories'));
const SEEDS = [...Array.from({ length: Number(SCIM_HISTORIES ?? 10) }, (_, index) => FIRST_SEED + index), ...failedSeeds('scim-histories')];
/** How many live at a time, each in a directory of its own. */
const AT_A_TIME = 10;
/** For each of them, on a machine that does much else. */
const LONGEST_MS = 20_000;
const STEPS = 25;
/** An answer that took no longer has waited for what follows from it. */
const WAITED_MS = 900;
const NAMES = ['ada', 'bob', 'cyd', 'dan', 'eve'];
const GROUPS = ['red', 'blue'];

type Step =
  | { readonly do: 'create' | 'replace' | 'deactivate' | 'activate' | 'delete'; readonly person: number }
  | { readonly do: 'rename'; readonly person: number; readonly to: number }
  /** An administrator does something to the membership of the person. */
  | { readonly do: 'remove_member' | 'suspend_member' | 'restore_member'; readonly person: number }
  /** The policy is switched off, or on. */
  | { readonly do: 'switch' }
  | { readonly do: 'create_group' | 'delete_group' | 'empty'; readonly group: number }
  | { readonly do: 'join' | 'leave'; readonly group: number; readonly people: readonly number[] }
  | { readonly do: 'set'; readonly group: number; readonly people: readonly number[] }
  /** At once: which of them comes first is not said. */
  | { readonly do: 'race'; readonly group: number; readonly person: number }
  /** Everything at once, by a full listing. */
  | { readonly do: 'list'; readonly listed: Listed }
  /** The same, while the product writes: which of them comes first is not said, so it is sent once more. */
  | {
      readonly do: 'list_race';
      readonly listed: Listed;
      readonly write: 'delete' | 'deactivate' | 'create' | 'join';
      readonly group: number;
      readonly person: number;
    };

interface Listed {
  readonly people: readonly number[];
  /** Of each person, by number. */
  readonly active: readonly boolean[];
  /** Of each group, by number, who of the people are in it; null: there is no such group. */
  readonly groups: readonly (readonly number[] | null)[];
}

const person = fc.nat(NAMES.length - 1);
const group = fc.nat(GROUPS.length - 1);
const people = fc.uniqueArray(person, { minLength: 1, maxLength: 4 });
const listed: fc.Arbitrary<Listed> = fc.record({
  people: fc.uniqueArray(person, { maxLength: NAMES.length }),
  active: fc.array(
    fc.integer({ max: 3, min: 0 }).map((number) => number > 0),
    { minLength: NAMES.length, maxLength: NAMES.length },
  ),
  groups: fc.array(fc.option(people), { minLength: GROUPS.length, maxLength: GROUPS.length }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ do: fc.constant('list' as const), listed }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('list_race' as const),
      listed,
      write: fc.constantFrom('delete' as const, 'deactivate' as const, 'create' as const, 'join' as const),
      group,
      person,
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('create' as const), person }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('replace' as const, 'deactivate' as const, 'activate' as const, 'delete' as const), person }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rename' as const), person, to: person }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('remove_member' as const, 'suspend_member' as const, 'restore_member' as const), person }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('switch' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('create_group' as const, 'create_group' as const, 'delete_group' as const, 'empty' as const), group }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('join' as const, 'leave' as const), group, people }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('set' as const), group, people }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('race' as const), group, person }) },
);

interface Person {
  id: string;
  name: number;
  active: boolean;
  /** As SCIM shows it: another one says that something changed. */
  version: string;
  /** By hand: until the product has said something of the person, and that is followed. */
  isUnlinked: boolean;
  hasChanged: boolean;
}

/** The membership of whoever has the address of a person. */
interface Member {
  isManaged: boolean;
  isActive: boolean;
  isByHand: boolean;
}

/** What is known of a directory, in a few lines: by the number of a person the id and the membership, by the number of a group id and members. */
interface Model {
  readonly people: Map<number, Person>;
  readonly groups: Map<number, { id: string; members: Set<string> }>;
  readonly members: Map<number, Member>;
  /** Whoever was active once. */
  readonly users: Set<number>;
  /** Whose address somebody had who went at once. */
  readonly mayBeUsers: Set<number>;
  isFollowed: boolean;
}

/** What becomes of a person whom the directory has, and is followed. */
function follow({ people, members, users, isFollowed }: Model, number: number): void {
  const known = people.get(number);
  if (known === undefined || !isFollowed) return;
  if (known.hasChanged) known.isUnlinked = false;
  if (known.isUnlinked) return;
  const member = members.get(number);
  if (member === undefined && known.active) members.set(number, { isManaged: true, isActive: true, isByHand: false });
  if (known.active) users.add(number);
  if (member === undefined) return;
  member.isManaged = true;
  if (known.active && !member.isActive && !member.isByHand) member.isActive = true;
  if (!known.active && member.isActive) Object.assign(member, { isActive: false, isByHand: false });
}

function linkOf({ members, isFollowed }: Model, number: number, { active, isUnlinked }: Person): string | null {
  if (isUnlinked) return 'unlinked_by_hand';
  const member = members.get(number);
  if (member === undefined || !isFollowed) return null;
  return active && !member.isActive ? 'deactivated_by_hand' : 'linked';
}

let suite: GivenSuite;
beforeAll(async () => {
  suite = await givenSuite();
  await suite.post('/authorization/permissions', { slug: 'read', name: 'Read' }).expect(201);
  await suite.put('/authorization/roles/member/permissions', { permissions: ['read'] }).expect(200);
});

it(
  `agrees with a model after ${SEEDS.length} histories of SCIM and full listings, and so does whoever follows the events (from seed ${FIRST_SEED})`,
  async () => {
    const seeds = [...SEEDS];
    const failures: unknown[] = [];
    const liveOn = async (): Promise<void> => {
      for (let seed = seeds.shift(); seed !== undefined && failures.length === 0; seed = seeds.shift()) {
        const [history] = fc.sample(fc.array(step, { minLength: STEPS, maxLength: STEPS }), { numRuns: 1, seed });
        await carryOut(history!).catch((error: unknown) => failures.push(new Error(`SCIM history ${seed}: ${String(error)}`, { cause: error })));
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, liveOn));
    if (failures.length > 0) throw failures[0];
  },
  LONGEST_MS * (4 + SEEDS.length),
);

interface Shown {
  readonly id: string;
  readonly user: { readonly email: string };
  readonly status: string;
  readonly directory_managed: boolean;
}

/** The directory has the person no more. */
function leave({ people, members }: Model, number: number): void {
  people.delete(number);
  if (members.get(number)?.isManaged === true) members.delete(number);
}

async function carryOut(history: readonly Step[]): Promise<void> {
  const domain = `${randomUUID()}.test`;
  const organization = await suite.post('/organizations', { name: 'Acme', domain_data: [{ domain, state: 'verified' }] }).expect(201);
  const given = { organization_id: organization.id, type: 'generic scim v2.0', name: 'D', policy: { follows: 'memberships' } };
  const { id: directory } = await suite.post('/admin/directories', given).expect(201);
  const { token } = await suite.post(`/admin/directories/${directory}/tokens`).expect(201);
  /** Whether what follows was given up waiting for, since something was answered: it is waited for before the next step. */
  let isLate = false;
  const ask = async (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object) => {
    const began = performance.now();
    const answer = await suite.scim(method, directory, path, token, { body });
    if (performance.now() - began > WAITED_MS) isLate = true;
    return answer;
  };
  const model: Model = { people: new Map(), groups: new Map(), members: new Map(), users: new Set(), mayBeUsers: new Set(), isFollowed: true };
  const emailOf = (number: number): string => `${NAMES[number]}@${domain}`;
  const bodyOf = (number: number, name: number, active: boolean) => ({
    userName: NAMES[name],
    externalId: `e-${number}`,
    active,
    emails: [{ value: emailOf(number), primary: true }],
  });
  const patch = async (path: string, status: number, ...Operations: readonly object[]) => {
    const answer = await ask('PATCH', path, { Operations });
    expect(answer.status).toBe(status);
    return answer.body;
  };
  /** What the product has said of a person: it counts where it changed something. */
  const said = (number: number, { meta }: { readonly meta: { readonly version: string } }): void => {
    const known = model.people.get(number)!;
    if (known.version !== meta.version) known.hasChanged = true;
    known.version = meta.version;
    follow(model, number);
  };
  const membership = async (number: number): Promise<string | undefined> => {
    const { data } = await suite.get(`/user_management/users?email=${emailOf(number)}`).expect(200);
    if (data[0] === undefined) return undefined;
    const query = `organization_id=${organization.id}&user_id=${data[0].id}&statuses=active,inactive,pending`;
    return (await suite.get(`/user_management/organization_memberships?${query}`).expect(200)).data[0]?.id;
  };
  /** What users and memberships are, by the addresses of people, and what access they give. */
  const present = async () => {
    const path = `/user_management/organization_memberships?organization_id=${organization.id}&statuses=active,inactive,pending&limit=100`;
    const shown = (await suite.get(path).expect(200)).data as readonly Shown[];
    const resource_id = `authz_resource_${organization.id.slice(-26)}`;
    return Promise.all(
      shown.map(async ({ id, user, status, directory_managed }) => {
        const check = { permission_slug: 'read', resource_id };
        const { authorized } = await suite.post(`/authorization/organization_memberships/${id}/check`, check).expect(200);
        return [user.email, status, directory_managed, authorized];
      }),
    );
  };
  const expectedMembers = () =>
    [...model.members].map(([number, { isActive, isManaged }]) => [emailOf(number), isActive ? 'active' : 'inactive', isManaged, isActive]).sort();
  /** What an administrator does is followed a moment later. */
  const quiet = () => eventually(async () => expect((await present()).sort()).toEqual(expectedMembers()));
  const named = (name: number) => [...model.people.values()].find((each) => each.name === name);
  const sendListing = async ({ people, active, groups }: Listed) => {
    const lines = [
      ...people.map((number) => ({
        type: 'user',
        id: `e-${number}`,
        username: NAMES[number],
        email: emailOf(number),
        state: active[number]! ? 'active' : 'suspended',
      })),
      ...groups.flatMap((members, number) =>
        members === null
          ? []
          : [{ type: 'group', id: `g-${number}`, name: GROUPS[number], members: members.filter((each) => people.includes(each)).map((each) => `e-${each}`) }],
      ),
    ];
    const content = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    // Two at once are taken of an environment, which all histories share.
    const { id } = await eventually(
      () => suite.put(`/admin/directories/${directory}/snapshot?force=true`, content, { 'Content-Type': 'application/x-ndjson' }).expect(202),
      30_000,
    );
    return suite.eventually(`/admin/directories/${directory}/runs/${id}`, { phase: 'completed' }, 30_000);
  };
  /** What the listing says is so, but for names that people hold in a circle: those stay as they are. */
  const carryOutListing = async (listed: Listed): Promise<void> => {
    const { error_count } = await sendListing(listed);
    for (const [number, { id }] of [...model.people])
      if (!listed.people.includes(number)) {
        leave(model, number);
        for (const { members } of model.groups.values()) members.delete(id);
      }
    const waiting = new Set(listed.people);
    for (let before = -1; before !== waiting.size;) {
      before = waiting.size;
      for (const number of waiting) {
        const holder = named(number);
        const known = model.people.get(number);
        if (holder !== undefined && holder !== known) continue;
        if (known !== undefined) known.name = number;
        else model.people.set(number, { id: '', name: number, active: true, version: '', isUnlinked: false, hasChanged: false });
        waiting.delete(number);
      }
    }
    expect(error_count).toBe(waiting.size);
    for (const number of listed.people) {
      const filter = encodeURIComponent(`externalId eq "e-${number}"`);
      const { Resources } = (await ask('GET', `/Users?filter=${filter}`)).body;
      expect([number, Resources.length]).toEqual([number, 1]);
      const known = model.people.get(number)!;
      known.id = Resources[0].id;
      if (!waiting.has(number)) known.active = listed.active[number]!;
      said(number, Resources[0]);
    }
    for (const [number, members] of listed.groups.entries()) {
      if (members === null) model.groups.delete(number);
      else {
        const { Resources } = (await ask('GET', `/Groups?filter=${encodeURIComponent(`externalId eq "g-${number}"`)}`)).body;
        expect([number, Resources.length]).toEqual([number, 1]);
        const there = members.filter((each) => listed.people.includes(each)).map((each) => model.people.get(each)!.id);
        model.groups.set(number, { id: Resources[0].id, members: new Set(there) });
      }
    }
  };

  for (const one of history) {
    if (isLate) await quiet();
    isLate = false;
    const known = 'person' in one ? model.people.get(one.person) : undefined;
    const into = 'group' in one ? model.groups.get(one.group) : undefined;
    const ids = 'people' in one ? one.people.flatMap((each) => model.people.get(each)?.id ?? []) : [];
    switch (one.do) {
      case 'create': {
        const answer = await ask('POST', '/Users', bodyOf(one.person, one.person, true));
        expect(answer.status).toBe(named(one.person) === undefined ? 201 : 409);
        // Somebody who was renamed has another name, and keeps the place in the model.
        if (answer.status !== 201) break;
        if (known === undefined) {
          model.people.set(one.person, { id: answer.body.id, name: one.person, active: true, version: '', isUnlinked: false, hasChanged: false });
          said(one.person, answer.body);
        } else {
          // A second person of the address waits for the first, unless that has no membership.
          if (model.isFollowed) model.mayBeUsers.add(one.person);
          expect((await ask('DELETE', `/Users/${answer.body.id}`)).status).toBe(204);
        }
        break;
      }
      case 'rename': {
        if (known === undefined) break;
        const holder = named(one.to);
        const isFree = holder === undefined || holder === known;
        const body = await patch(`/Users/${known.id}`, isFree ? 200 : 409, { op: 'replace', value: { userName: NAMES[one.to]!.toUpperCase() } });
        if (holder === undefined) known.name = one.to;
        if (isFree) said(one.person, body);
        break;
      }
      case 'replace':
      case 'deactivate':
      case 'activate': {
        if (known === undefined) break;
        const active = one.do !== 'deactivate';
        const body =
          one.do === 'replace'
            ? (await ask('PUT', `/Users/${known.id}`, bodyOf(one.person, known.name, active))).body
            : await patch(`/Users/${known.id}`, 200, { op: 'replace', path: 'active', value: active ? 'True' : 'False' });
        known.active = active;
        said(one.person, body);
        break;
      }
      case 'delete':
        if (known === undefined) break;
        expect((await ask('DELETE', `/Users/${known.id}`)).status).toBe(204);
        leave(model, one.person);
        for (const { members } of model.groups.values()) members.delete(known.id);
        break;
      case 'remove_member':
      case 'suspend_member':
      case 'restore_member': {
        const member = model.members.get(one.person);
        const id = await membership(one.person);
        expect(id === undefined).toBe(member === undefined);
        if (id === undefined || member === undefined) break;
        const path = `/user_management/organization_memberships/${id}`;
        if (one.do === 'remove_member') {
          await suite.delete(path).expect(200);
          model.members.delete(one.person);
          if (known !== undefined && member.isManaged) Object.assign(known, { isUnlinked: true, hasChanged: false });
        } else if (one.do === 'suspend_member') {
          await suite.put(`${path}/deactivate`).expect(200);
          if (member.isActive) Object.assign(member, { isActive: false, isByHand: true });
        } else {
          await suite.put(`${path}/reactivate`).expect(200);
          if (!member.isActive) Object.assign(member, { isActive: true, isByHand: false });
          follow(model, one.person);
        }
        await quiet();
        break;
      }
      case 'switch':
        model.isFollowed = !model.isFollowed;
        await suite.patch(`/admin/directories/${directory}`, { policy: { follows: model.isFollowed ? 'memberships' : 'off' } }).expect(200);
        if (!model.isFollowed) for (const member of model.members.values()) member.isManaged = false;
        else for (const number of model.people.keys()) follow(model, number);
        await quiet();
        break;
      case 'create_group': {
        const answer = await ask('POST', '/Groups', { displayName: GROUPS[one.group], externalId: `g-${one.group}` });
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
        leave(model, one.person);
        for (const { members } of model.groups.values()) members.delete(known.id);
        break;
      }
      case 'list':
        await carryOutListing(one.listed);
        await quiet();
        break;
      case 'list_race': {
        const { listed, write } = one;
        const [, answer] = await Promise.all([
          sendListing(listed),
          write === 'create'
            ? listed.people.includes(one.person) && known === undefined
              ? ask('POST', '/Users', bodyOf(one.person, one.person, listed.active[one.person]!))
              : null
            : write === 'join'
              ? into !== undefined && known !== undefined
                ? ask('PATCH', `/Groups/${into.id}`, { Operations: [{ op: 'add', path: 'members', value: [{ value: known.id }] }] })
                : null
              : known !== undefined
                ? write === 'delete'
                  ? ask('DELETE', `/Users/${known.id}`)
                  : ask('PATCH', `/Users/${known.id}`, { Operations: [{ op: 'replace', value: { active: false } }] })
                : null,
        ]);
        expect([200, 201, 204, 400, 404, 409, undefined]).toContain(answer?.status);
        if (write === 'delete' && answer?.status === 204) leave(model, one.person);
        await carryOutListing(listed);
        await quiet();
        break;
      }
    }
  }

  const expected = {
    people: [...model.people.values()].map(({ id, active }) => [id, active ? 'active' : 'inactive']).sort(),
    groups: [...model.groups.values()].map(({ id, members }) => [id, [...members].sort()]).sort(),
    members: expectedMembers().map((member) => member.slice(0, 3)),
  };
  await quiet();
  const groups = (await ask('GET', '/Groups')).body.Resources as readonly { readonly id: string; readonly members?: readonly { readonly value: string }[] }[];
  expect(groups.map(({ id, members = [] }) => [id, members.map(({ value }) => value).sort()]).sort()).toEqual(expected.groups);
  const users = (await suite.get(`/directory_users?directory=${directory}&limit=100`).expect(200)).data as readonly {
    readonly id: string;
    readonly state: string;
    readonly link_state: string | null;
  }[];
  expect(users.map(({ id, state }) => [id, state]).sort()).toEqual(expected.people);
  const links = [...model.people].map(([number, each]) => [each.id, linkOf(model, number, each)]).sort();
  await eventually(async () => {
    const { data } = await suite.get(`/directory_users?directory=${directory}&limit=100`).expect(200);
    expect((data as typeof users).map(({ id, link_state }) => [id, link_state]).sort()).toEqual(links);
  });
  const made = await Promise.all(NAMES.map(async (_, number) => (await suite.get(`/user_management/users?email=${emailOf(number)}`).expect(200)).data.length));
  expect(made).toEqual(NAMES.map((_, number) => (model.users.has(number) ? 1 : model.mayBeUsers.has(number) ? made[number] : 0)));
  const counts = { users: { active: expected.people.filter(([, state]) => state === 'active').length }, groups: expected.groups.length };
  await suite.get(`/directories/${directory}`).expect(200, { metadata: counts });
  await eventually(async () => expect(await followed(organization.id)).toEqual(expected));
}

/** What whoever folds the events of an organization knows in the end. */
async function followed(organization: string) {
  const members = new Map<string, readonly [string, string, boolean]>();
  const people = new Map<string, string>();
  const groups = new Map<string, Set<string>>();
  for (let after = ''; ;) {
    const page = await suite.get(`/events?organization_id=${organization}&limit=100${after === '' ? '' : `&after=${after}`}`).expect(200);
    for (const { event, data } of page.data as readonly { readonly event: string; readonly data: object }[]) {
      const { id, state, user, group: of } = data as { id: string; state: string; user: { id: string }; group: { id: string } };
      if (event === 'organization_membership.created' || event === 'organization_membership.updated') {
        const { user_id, status, directory_managed } = data as Omit<Shown, 'user'> & { readonly user_id: string };
        members.set(id, [user_id, status, directory_managed]);
      }
      if (event === 'organization_membership.deleted') members.delete(id);
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
  const emails = await Promise.all([...members.values()].map(async ([id]) => (await suite.get(`/user_management/users/${id}`).expect(200)).email as string));
  const shown = [...members.values()].map(([, status, isManaged], index) => [emails[index], status, isManaged]).sort();
  return { members: shown, people: [...people].sort(), groups: [...groups].map(([id, members]) => [id, [...members].sort()]).sort() };
}
