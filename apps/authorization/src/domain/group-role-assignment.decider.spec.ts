import { specOf } from '#libs/testing/src/decider-spec';
import { groupRoleAssignmentDecider, groupRoleAssignments, type GroupRoleAssignmentEvent } from './group-role-assignment.decider.ts';

const given = {
  organization_id: 'org_01KF0000000000000000000001',
  group_id: 'group_01KF0000000000000000000002',
  role: { id: 'role_01KF0000000000000000000003', slug: 'editor' },
  resource: { id: 'authz_resource_01KF0000000000000000000004', external_id: 'project-7', resource_type_slug: 'project' },
};
const EARLIER = 'gra_01KE0000000000000000000000';

describe('a role that a group has on a resource', () => {
  const { given: after, id } = specOf(groupRoleAssignmentDecider);
  const assigned = (assignment: string): GroupRoleAssignmentEvent => ({ type: 'group_role_assignment.created', data: { id: assignment, ...given } });
  const removed = (assignment: string): GroupRoleAssignmentEvent => ({ type: 'group_role_assignment.deleted', data: { id: assignment } });
  const own = id('gra');

  it('is given', () => after().when(groupRoleAssignments.assign(given)).then(assigned(own)));
  it('is refused to a group that has it', () =>
    after(assigned(EARLIER)).when(groupRoleAssignments.assign(given)).thenRefused('duplicate_group_role_assignment'));
  it('is given again after it was taken away, as another assignment', () =>
    after(assigned(EARLIER), removed(EARLIER)).when(groupRoleAssignments.assign(given)).then(assigned(own)));
  it('stays away when the command that gave it is repeated', () =>
    after(assigned(own), removed(own)).when(groupRoleAssignments.assign(given)).thenRefused('entity_not_found'));

  it('stays when it is among those that the group is to have', () => after(assigned(EARLIER)).when(groupRoleAssignments.keep(given, 7)).thenNothing());
  it('is given when it is among those that the group is to have', () =>
    after()
      .when(groupRoleAssignments.keep(given, 7))
      .then(assigned(id('gra', 7))));
  it('is not given a second time by the same command', () =>
    after(assigned(id('gra', 7)), removed(id('gra', 7)))
      .when(groupRoleAssignments.keep(given, 7))
      .thenNothing());

  it('is taken away', () => after(assigned(EARLIER)).when(groupRoleAssignments.remove(EARLIER)).then(removed(EARLIER)));
  it('is taken away without its assignment being named', () => after(assigned(EARLIER)).when(groupRoleAssignments.removeAny()).then(removed(EARLIER)));
  it('cannot be taken away before it was given', () => after().when(groupRoleAssignments.remove(EARLIER)).thenNothing());
  it('stays when an assignment is taken away that the group had before', () =>
    after(assigned(EARLIER), removed(EARLIER), assigned(own)).when(groupRoleAssignments.remove(EARLIER)).thenNothing());

  it('lives until it is taken away', () => {
    const fold = (...events: readonly GroupRoleAssignmentEvent[]) =>
      events.reduce(
        (state, event) => groupRoleAssignmentDecider.evolve(state, { ...event, at: '2026-01-15T12:00:00.000Z', version: 1 }),
        groupRoleAssignmentDecider.initial,
      );
    expect(groupRoleAssignments.require(fold(assigned(own)), own)).toMatchObject({ id: own, ...given });
    for (const state of [fold(), fold(assigned(own), removed(own))])
      expect(() => groupRoleAssignments.require(state, own)).toThrow(expect.objectContaining({ code: 'entity_not_found' }));
  });
});
