import { specOf } from '#libs/testing/src/decider-spec';
import {
  createMembership,
  deactivate,
  deleteMembership,
  endManagedMembership,
  handOver,
  manageMembership,
  suspendMembership,
  dropRole,
  membershipDecider,
  reactivate,
  recordDeletion,
  setMappedRoles,
  setRoles,
  takeRolesBack,
  type HeldRole,
  type MembershipEvent,
  type MembershipState,
} from './membership.decider.ts';

const { given, id, now } = specOf(membershipDecider);

const om = id('om');
const earlier = 'om_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const organization_id = 'org_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const user_id = 'user_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const member = { id: 'role_01HZZZZZZZZZZZZZZZZZZZZZZ1', slug: 'member' };
const admin = { id: 'role_01HZZZZZZZZZZZZZZZZZZZZZZ2', slug: 'admin' };
/** Of the same slug as another, which was deleted. */
const newAdmin = { id: 'role_01HZZZZZZZZZZZZZZZZZZZZZZ3', slug: 'admin' };

const created = (membershipId: string, fields: object = {}): MembershipEvent => ({
  type: 'organization_membership.created',
  data: { id: membershipId, organization_id, user_id, status: 'active', roles: [member], directory_managed: false, custom_attributes: {}, ...fields },
});
const updated = (change: object): MembershipEvent => ({ type: 'organization_membership.updated', data: { id: earlier, ...change } });
const joined = created(earlier);
const pending = created(earlier, { status: 'pending' });
const deactivated = updated({ status: 'inactive' });
const deleted: MembershipEvent = { type: 'organization_membership.deleted', data: { id: earlier } };

const create = (roles = [member]) => createMembership({ organization_id, user_id, roles });

describe('a membership', () => {
  it('begins active, with its roles', () => given().when(create()).then(created(om)));
  it('has what it had before where a role is taken back, unless it was given others since', () => {
    const before = { roles: [member], status: 'active' } as const;
    given(joined, updated({ roles: [admin] }))
      .when(takeRolesBack(earlier, [admin], before))
      .then(updated({ roles: [member] }));
    given(joined, updated({ roles: [admin] }), updated({ roles: [newAdmin] }))
      .when(takeRolesBack(earlier, [admin], before))
      .thenNothing();
    given(joined, deactivated, updated({ status: 'active', roles: [admin], created_again: om }))
      .when(takeRolesBack(earlier, [admin], { roles: [member], status: 'inactive' }))
      .then(updated({ status: 'inactive', roles: [member] }));
    given(joined, deleted)
      .when(takeRolesBack(earlier, [member], before))
      .thenNothing();
  });

  it('begins once', () => given(joined).when(create()).thenRefused('user_already_organization_member'));
  it('begins again after it was deleted, as another one', () =>
    given(joined, deleted)
      .when(create([admin]))
      .then(created(om, { roles: [admin] })));
  it('stays deleted when its creation is repeated', () =>
    given(created(om), { type: 'organization_membership.deleted', data: { id: om } })
      .when(create())
      .thenRefused('entity_not_found'));

  it('comes back from being inactive with the given roles, under the id that it had', () =>
    given(joined, deactivated)
      .when(create([admin]))
      .then(updated({ status: 'active', roles: [admin], created_again: om })));
  it('is not brought back a second time by another creation', () =>
    given(joined, deactivated, updated({ status: 'active', roles: [member], created_again: 'om_01HZZZZZZZZZZZZZZZZZZZZZZ9' }))
      .when(create())
      .thenRefused('user_already_organization_member'));
  it('cannot be brought back from being pending', () => {
    given(pending).when(create()).thenRefused('cannot_reactivate_pending_organization_membership');
    given(pending).when(reactivate(earlier)).thenRefused('cannot_reactivate_pending_organization_membership');
    given(pending).when(deactivate(earlier)).thenRefused('cannot_deactivate_pending_organization_membership');
  });

  it('gets other roles', () =>
    given(joined)
      .when(setRoles(earlier, [admin, member]))
      .then(updated({ roles: [admin, member] })));
  it('ignores the roles that it has', () =>
    given(joined)
      .when(setRoles(earlier, [member]))
      .thenNothing());
  it('tells roles by their ids, not by their slugs', () =>
    given(joined, updated({ roles: [admin] }))
      .when(setRoles(earlier, [newAdmin]))
      .then(updated({ roles: [newAdmin] })));

  it('loses a role that was deleted, and keeps the others', () =>
    given(joined, updated({ roles: [admin, newAdmin] }))
      .when(dropRole(earlier, admin.id, member))
      .then(updated({ roles: [newAdmin] })));
  it('falls back to the default role when the last of its roles was deleted', () =>
    given(joined, updated({ roles: [admin] }))
      .when(dropRole(earlier, admin.id, member))
      .then(updated({ roles: [member] })));
  it('keeps its roles when one that it does not have was deleted', () =>
    given(joined)
      .when(dropRole(earlier, admin.id, member))
      .thenNothing());

  it('is suspended, and comes back as it was', () => {
    given(joined).when(deactivate(earlier)).then(deactivated);
    given(joined, deactivated)
      .when(reactivate(earlier))
      .then(updated({ status: 'active' }));
  });
  it('ignores what it is already', () => {
    given(joined, deactivated).when(deactivate(earlier)).thenNothing();
    given(joined).when(reactivate(earlier)).thenNothing();
  });

  it('is deleted', () => given(joined).when(deleteMembership(earlier)).then(deleted));
  it('ends when what it hangs on has ended, unless it has already', () => {
    given(joined).when(recordDeletion(earlier)).then(deleted);
    given(joined, deleted).when(recordDeletion(earlier)).thenNothing();
    given().when(recordDeletion(earlier)).thenNothing();
  });

  it.each([
    ['its roles are set', setRoles],
    ['it is suspended', deactivate],
    ['it comes back', reactivate],
    ['it is deleted', deleteMembership],
  ] as const)('is not there when %s before it began, or after the user has joined again', (_, decision) => {
    const decided = decision(earlier, [member]);
    given().when(decided).thenRefused('entity_not_found');
    given(joined, deleted, created(om)).when(decided).thenRefused('entity_not_found');
  });
  it('of before stays out of what happens to the one of now', () => {
    const news = { ...created(om), at: now };
    const state = [joined, deleted, news, deactivated, deleted].reduce<MembershipState>(
      (before, event) => membershipDecider.evolve(before, { at: now, version: 1, ...event }),
      null,
    );
    expect(state).toMatchObject({ id: om, status: 'active' });
  });

  it('is announced with its roles by their slugs, without what is private', () => {
    const before = membershipDecider.evolve(null, { ...joined, at: now, version: 1 });
    const event = updated({ status: 'active', roles: [admin, member], created_again: om });
    const after = membershipDecider.evolve(before, { ...event, at: now, version: 1 });
    const base = {
      object: 'organization_membership',
      id: earlier,
      organization_id,
      user_id,
      status: 'active',
      directory_managed: false,
      custom_attributes: {},
    };
    expect(membershipDecider.toPublicEvent(event, before, after)).toEqual({
      names: ['organization_membership.updated'],
      payload: { ...base, role: { slug: 'admin' }, roles: [{ slug: 'admin' }, { slug: 'member' }], created_at: now, updated_at: now },
    });
    expect(membershipDecider.toPublicEvent(deleted, before, membershipDecider.evolve(before, { ...deleted, at: now, version: 1 }))).toEqual({
      names: ['organization_membership.deleted'],
      payload: { ...base, role: { slug: 'member' }, roles: [{ slug: 'member' }], created_at: now, updated_at: now },
    });
  });
});

describe('a membership that a directory manages', () => {
  const managed_by = { directory_id: 'directory_1', directory_user_id: 'directory_user_1' };
  const another = { directory_id: 'directory_2', directory_user_id: 'directory_user_2' };
  const manage = (by = managed_by) => manageMembership({ organization_id, user_id, roles: [member], managed_by: by });
  const adopted = updated({ managed_by });
  const suspended = updated({ status: 'inactive', status_by: 'directory' });

  it('begins active', () =>
    given()
      .when(manage())
      .then(created(om, { directory_managed: true, managed_by })));
  it('begins again after it was deleted, as another one, unless the same command did that', () => {
    given(joined, deleted)
      .when(manage())
      .then(created(om, { directory_managed: true, managed_by }));
    given(created(om), { ...deleted, data: { id: om } })
      .when(manage())
      .thenNothing();
  });
  it('is adopted with its id and its roles', () => given(joined).when(manage()).then(adopted));
  it('takes a pending one in', () =>
    given(pending)
      .when(manage())
      .then(updated({ managed_by, status: 'active', status_by: 'directory' })));
  it('leaves one inactive that somebody deactivated', () => given(joined, deactivated).when(manage()).then(adopted));
  it('is reactivated where the directory suspended it', () =>
    given(joined, adopted, suspended)
      .when(manage())
      .then(updated({ status: 'active', status_by: 'directory' })));
  it('stays inactive where somebody deactivated it while it was managed, also once its person is inactive', () => {
    given(joined, adopted, deactivated).when(manage()).thenNothing();
    given(joined, adopted, deactivated).when(suspendMembership(managed_by)).thenNothing();
  });
  it('is suspended once, and adopted with that', () => {
    given(joined)
      .when(suspendMembership(managed_by))
      .then(updated({ managed_by, status: 'inactive', status_by: 'directory' }));
    given(joined, adopted, suspended).when(suspendMembership(managed_by)).thenNothing();
    given().when(suspendMembership(managed_by)).thenNothing();
  });
  it('is left to the person who manages it', () => {
    given(joined, adopted).when(manage(another)).thenNothing();
    given(joined, adopted).when(suspendMembership(another)).thenNothing();
    given(joined, adopted).when(endManagedMembership(another)).thenNothing();
    given(joined, adopted).when(handOver(another, null)).thenNothing();
  });
  it('is handed over to another person, or to nobody', () => {
    given(joined, adopted)
      .when(handOver(managed_by, another))
      .then(updated({ managed_by: another }));
    given(joined, adopted)
      .when(handOver(managed_by, null))
      .then(updated({ managed_by: null }));
    given(joined).when(handOver(managed_by, null)).thenNothing();
  });
  it('ends with its person, and only while it is theirs', () => {
    given(joined, adopted).when(endManagedMembership(managed_by)).then(deleted);
    given(joined, adopted, updated({ managed_by: null }))
      .when(endManagedMembership(managed_by))
      .thenNothing();
  });
  it('has what groups give in place of what was given by hand, which comes back', () => {
    const mapped = (...roles: readonly HeldRole[]) => updated({ mapped_roles: roles });
    given(joined, adopted)
      .when(setMappedRoles(earlier, [admin]))
      .then(mapped(admin));
    given(joined, adopted, mapped(admin))
      .when(setMappedRoles(earlier, [admin]))
      .thenNothing();
    given(joined, adopted, mapped(admin)).when(setMappedRoles(earlier, [])).then(mapped());
    for (const history of [[joined], [joined, adopted, deleted], [joined, adopted, updated({ managed_by: null })], []])
      given(...history)
        .when(setMappedRoles(earlier, [admin]))
        .thenNothing();
    // What was given by hand meanwhile is kept.
    given(joined, adopted, mapped(admin))
      .when(setRoles(earlier, [member, admin]))
      .then(updated({ roles: [member, admin] }));
  });
  it('is announced with the roles that it has, where they are others than before', () => {
    const given = updated({ mapped_roles: [admin] });
    const states = [joined, adopted, given, updated({ mapped_roles: [member] }), updated({ mapped_roles: [] }), given, updated({ managed_by: null })].reduce<
      MembershipState[]
    >((all, event, index) => [...all, membershipDecider.evolve(all.at(-1) ?? null, { ...event, at: now, version: index + 1 })], []);
    const told = (place: number, event: MembershipEvent) =>
      (membershipDecider.toPublicEvent(event, states[place - 1]!, states[place]!)?.payload as { readonly roles: unknown } | undefined)?.roles;
    expect(told(2, given)).toEqual([{ slug: 'admin' }]);
    expect(told(3, updated({ mapped_roles: [member] }))).toEqual([{ slug: 'member' }]);
    // As it was given by hand.
    expect(told(4, updated({ mapped_roles: [] }))).toBeUndefined();
    expect(told(4, updated({ mapped_roles: [], status: 'active' }))).toEqual([{ slug: 'member' }]);
    expect(told(6, updated({ managed_by: null }))).toEqual([{ slug: 'member' }]);
  });
  it('is shown as managed, without who manages it', () => {
    const states = [joined, adopted, updated({ managed_by: null })].reduce<MembershipState[]>(
      (all, event, index) => [...all, membershipDecider.evolve(all.at(-1) ?? null, { ...event, at: now, version: index + 1 })],
      [],
    );
    const shown = states.map((state) => membershipDecider.toPublicEvent(adopted, null, state)!.payload as Readonly<Record<string, unknown>>);
    expect(shown.map(({ directory_managed }) => directory_managed)).toEqual([false, true, false]);
    expect(Object.keys(shown[1]!)).not.toContain('managed_by');
  });
});
