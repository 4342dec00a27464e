import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { createSecretKey } from 'node:crypto';
import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { LogPositions } from '#libs/event-sourcing/src/views/log.positions';
import { tableOf, type PrimaryView, type View } from '#libs/event-sourcing/src/views/view';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { systemContext } from '#libs/platform/src/system-context';
import { givenEngineSets, type EngineSet } from '#libs/testing/src/engine-sets';
import { recordAndFold } from '#libs/testing/src/recorded-facts';
import { createKey, environmentDecider, ensureKey, rotateKey, type EnvironmentEvent } from './domain/environment.decider.ts';
import { environmentsView } from './views/environments.view.ts';
import { changeMembers, deleteGroup, groupDecider, updateGroup, type GroupEvent } from './domain/group.decider.ts';
import { groupsView } from './views/groups.view.ts';
import { membershipDecider, setRoles, type MembershipEvent } from './domain/membership.decider.ts';
import { membershipsView } from './views/memberships.view.ts';
import { roleDirectoryView } from './views/role-directory.view.ts';
import {
  addDomain,
  deleteOrganization,
  organizationDecider,
  updateOrganization,
  type OrganizationEvent,
  type RequestedDomain,
} from './domain/organization.decider.ts';
import { organizationsView } from './views/organizations.view.ts';
import { updateUser, userDecider } from './domain/user.decider.ts';
import { usersView } from './views/users.view.ts';

const clock = new SystemClock();
const log = new PinoLog({ level: 'silent', readable: false });
const naming = new Naming(createSecretKey(Buffer.alloc(32, 1)));

const MOST_BYTES = 4 * 1024 * 1024;
/** A character that is longest in JSON. */
const LONG = '\u0001';
const times = <T>(count: number, make: (number: number) => T): readonly T[] => Array.from({ length: count }, (_, number) => make(number));
const idOf = (prefix: string): string => `${prefix}_${newUlid(clock.now())}`;
const keyOf = (number: number, length: number): string => String(number).padEnd(length, LONG);
const metadata = Object.fromEntries(times(50, (number) => [keyOf(number, 40), LONG.repeat(600)]));

const DOMAINS = 1_000;
const MEMBERS = 5_000;

it('grow with settings only so far', () => {
  for (const [setting, most] of [
    ['DOMAINS_PER_ORGANIZATION', DOMAINS],
    ['MEMBERS_PER_GROUP', MEMBERS],
  ] as const) {
    expect(readSettings(IdentitySettings, { [setting]: String(most) })[setting]).toBe(most);
    expect(() => readSettings(IdentitySettings, { [setting]: String(most + 1) })).toThrow(setting);
  }
});

describe.each(await givenEngineSets())('on %s, at their largest,', (_, open) => {
  const test = open === null ? it.skip : it;
  let engines: EngineSet;
  let environment: string;
  let repository: LogRepository;

  beforeEach(async () => {
    if (open === null) return;
    engines = await open();
    environment = idOf('environment');
    repository = new LogRepository(engines.events, engines.readModels, naming, clock, log);
    for (const view of [organizationsView, groupsView, usersView, membershipsView, environmentsView]) repository.registerPrimaryView(view as never);
  });
  afterEach(() => engines?.close());

  /** Records facts and brings the row along; what can be asked of it then. */
  async function given<State, Event extends Fact>(decider: Decider<State, Event>, view: PrimaryView<State, Event, never>, facts: readonly Event[]) {
    const key = idOf('key');
    const stream = streamName(decider.category, environment, key);
    const table = engines.readModels.table(tableOf(view as unknown as View<unknown>));
    await recordAndFold(engines, view as unknown as View<unknown>, { environment, stream, facts });
    return {
      key,
      /** As a caller whose name is long. */
      decide: (decision: Decision<State, Event>) =>
        repository.transact(
          decider,
          { ...systemContext(environment, clock.now()), actor: { id: idOf('environment_key'), source: 'api', name: LONG.repeat(255) } },
          key,
          decision,
        ),
      /** Of the row that is there, or of any that is found under an id. */
      bytes: async (id: string = key): Promise<number> => Buffer.byteLength((await table.get(environment, id))!.text),
      records: () => engines.events.read(stream),
    };
  }

  const domainNamed = (number: number): string => `${String(number).padStart(60, 'a')}.${times(3, () => 'b'.repeat(63)).join('.')}`.slice(0, 253);
  const requested = (number: number): RequestedDomain => ({
    domain: domainNamed(number),
    state: 'verified',
    verification_prefix: 'gatehouse-domain-verification-abcdef',
    verification_token: 'a'.repeat(25),
  });

  test('organizations change, and end, in what the log takes at once', async () => {
    const id = 'org_01KF0000000000000000000000';
    const name = LONG.repeat(255);
    const domains = times(DOMAINS, (number) => ({
      ...requested(number),
      id: idOf('org_domain'),
      state: 'pending' as const,
      verification_strategy: 'dns' as const,
    }));
    const { bytes, decide, records, key } = await given(organizationDecider, organizationsView as never, [
      { type: 'organization.created', data: { id, name, external_id: 'e'.repeat(128), metadata, allow_profiles_outside_organization: false, domains: [] } },
      ...domains.slice(1).map((data): OrganizationEvent => ({ type: 'organization_domain.created', data })),
      { type: 'organization.updated', data: { payment_customer_id: LONG.repeat(255) } },
    ]);
    await decide(addDomain(id, requested(DOMAINS), DOMAINS));
    await expect(decide(addDomain(id, requested(DOMAINS + 1), DOMAINS))).rejects.toMatchObject({ code: 'organization_domain_limit_reached' });
    expect(await bytes()).toBeLessThanOrEqual(MOST_BYTES);
    // More than can be recorded at once is refused as a whole; what is asked for by and by is not.
    const others = times(DOMAINS, (number) => requested(DOMAINS + 1 + number));
    const before = (await records()).length;
    await expect(decide(updateOrganization(id, { domains: others }, DOMAINS))).rejects.toMatchObject({ code: 'payload_too_large' });
    expect(await records()).toHaveLength(before);
    await decide(
      updateOrganization(id, { name: `${LONG.repeat(254)}x`, external_id: 'f'.repeat(128), metadata: { ...metadata, [keyOf(0, 40)]: 'x' } }, DOMAINS),
    );
    await decide(deleteOrganization(id));
    const reaction = new Cascade(repository, new LogPositions(new LogFollowing(engines.events, clock, log), { all: [] }), engines.readModels, clock).reactionOf(
      [organizationDecider as never],
      new Map(),
    );
    const deleted = { type: 'organization.deleted', data: { id: key }, meta: { environment } } as never;
    for (let time = 0; time < 2; time++) await reaction.react(deleted);
    const ended = (await records()).filter(({ type }) => type === 'organization_domain.deleted').map(({ data }) => (data as { readonly id: string }).id);
    expect([ended.length, new Set(ended).size]).toEqual([DOMAINS, DOMAINS]);
  }, 120_000);

  test('groups have their members', async () => {
    const id = 'group_01KF0000000000000000000000';
    const members = times(MEMBERS, () => idOf('om'));
    const { bytes, decide } = await given(groupDecider, groupsView as never, [
      { type: 'group.created', data: { id, organization_id: idOf('org'), name: 'Group', description: null } },
      ...members.map((organization_membership_id): GroupEvent => ({ type: 'group.member_added', data: { group_id: id, organization_membership_id } })),
    ]);
    expect(await bytes()).toBeLessThanOrEqual(MOST_BYTES);
    const added = times(100, () => idOf('om'));
    await expect(decide(changeMembers(id, { add: added, remove: [] }, MEMBERS))).rejects.toMatchObject({ code: 'group_membership_limit_exceeded' });
    await decide(updateGroup(id, { name: LONG.repeat(255), description: LONG.repeat(150) }));
    await decide(changeMembers(id, { add: added, remove: members.slice(0, 100) }, MEMBERS));
    await decide(deleteGroup(id));
  }, 120_000);

  test('environments have keys, and remember those that were', async () => {
    const id = 'environment_01KF0000000000000000000000';
    const hashOf = (number: number): string => String(number).padStart(64, '0');
    const named = { name: LONG.repeat(255), obfuscated_value: 'sk_…abcd' };
    const ended = times(500 + 15_000 + 100, (number) => ({ id: idOf('environment_key'), hash: hashOf(number) }));
    const living = times(997, (number) => ({ id: idOf('environment_key'), hash: hashOf(20_000 + number) }));
    // A hundred are forgotten.
    const [first, last] = [ended[100]!, ended.at(-1)!];
    const created = (made: { readonly id: string; readonly hash: string; readonly name?: string }): EnvironmentEvent => ({
      type: 'environment_key.created',
      data: { ...named, ...made },
    });
    const { bytes, decide, key } = await given(environmentDecider, environmentsView as never, [
      { type: 'environment.created', data: { id, name: 'e'.repeat(63), client_id: `client_${'c'.repeat(100)}` } },
      ...ended.flatMap((made, number): readonly EnvironmentEvent[] => [
        created(number < 15_100 ? { ...made, name: 'forgotten' } : made),
        { type: 'environment_key.revoked', data: made },
      ]),
      ...living.map(created),
    ]);
    const another = { ...named, hash: hashOf(30_000) };
    await expect(decide(createKey(id, another))).rejects.toMatchObject({ code: 'environment_key_limit_reached' });
    const rotate = (number: number) => decide(rotateKey(living[number]!.id, { ...another, hash: hashOf(40_000 + number) }, 60));
    for (let number = 0; number < 3; number++) await rotate(number);
    await expect(rotate(3)).rejects.toMatchObject({ code: 'environment_key_limit_reached' });
    // Whether or not more than its hash is left: what was revoked never works again.
    for (const { hash } of [first, last]) expect((await decide(ensureKey(id, { ...named, hash }))).facts).toEqual([]);
    const { keys, former_hashes } = (await repository.load(environmentDecider, environment, key))!;
    expect([keys.length, former_hashes!.length]).toEqual([1_000 + 500, 15_000]);
    expect(await bytes()).toBeLessThanOrEqual(MOST_BYTES);
  }, 120_000);

  test('users and memberships have what one request after another gave them', async () => {
    const id = 'user_01KF0000000000000000000000';
    const names = { first_name: LONG.repeat(255), last_name: LONG.repeat(255), name: LONG.repeat(255) };
    const user = await given(userDecider, usersView as never, [
      { type: 'user.created', data: { id, email: `${'a'.repeat(60)}@acme.test`, email_verified: true, ...names, external_id: 'e'.repeat(128), metadata } },
    ]);
    await user.decide(updateUser(id, { metadata: { ...metadata, [keyOf(0, 40)]: 'x'.repeat(600) }, name: 'x' }, null));
    expect(await user.bytes()).toBeLessThanOrEqual(MOST_BYTES);
    const membershipId = 'om_01KF0000000000000000000000';
    const roles = times(2_000, (number) => ({ id: idOf('role'), slug: String(number).padEnd(48, 'x') }));
    const membership = await given(membershipDecider, membershipsView as never, [
      {
        type: 'organization_membership.created',
        data: { id: membershipId, organization_id: idOf('org'), user_id: id, status: 'active', roles: [], directory_managed: false, custom_attributes: {} },
      } satisfies MembershipEvent,
    ]);
    await membership.decide(setRoles(membershipId, roles));
    expect(await membership.bytes(membershipId)).toBeLessThanOrEqual(MOST_BYTES);
  }, 120_000);

  test('the directory knows the roles of an environment, and those that were', async () => {
    const roles = times(1_000, (number) => ({ id: idOf('role'), slug: String(number).padEnd(48, 'x'), resource_type_slug: 'x'.repeat(48) }));
    const ended = times(20_001, () => idOf('role'));
    const stream = streamName('organization_roles', environment, 'org');
    const table = engines.readModels.table(tableOf(roleDirectoryView));
    const facts = [
      ...ended.map((id): OrganizationRolesEvent => ({ type: 'organization_role.deleted', data: { id } })),
      ...roles.map((role) => ({ type: 'organization_role.created', data: role })),
      ...roles.map(({ id }) => ({ type: 'organization_role.closing', data: { id, intent: `${newUlid(clock.now())}.0` } })),
    ];
    await recordAndFold(engines, roleDirectoryView, { environment, stream, facts });
    const { text } = (await table.get(environment, 'org'))!;
    expect((JSON.parse(text) as { readonly deleted: readonly string[] }).deleted).toEqual(ended.slice(1));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MOST_BYTES);
  }, 120_000);
});
