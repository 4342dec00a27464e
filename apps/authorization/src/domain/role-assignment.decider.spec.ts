import { specOf } from '#libs/testing/src/decider-spec';
import { roleAssignmentDecider, roleAssignments, type RoleAssignmentEvent } from './role-assignment.decider.ts';

const given = {
  organization_id: 'org_01KF0000000000000000000001',
  organization_membership_id: 'om_01KF0000000000000000000002',
  role: { id: 'role_01KF0000000000000000000003', slug: 'editor' },
  resource: { id: 'authz_resource_01KF0000000000000000000004', external_id: 'project-7', resource_type_slug: 'project' },
};
const EARLIER = 'role_assignment_01KE0000000000000000000000';

describe('a role that a membership has on a resource', () => {
  const { given: after, id } = specOf(roleAssignmentDecider);
  const assigned = (assignment: string): RoleAssignmentEvent => ({ type: 'role_assignment.created', data: { id: assignment, ...given } });
  const removed = (assignment: string): RoleAssignmentEvent => ({ type: 'role_assignment.deleted', data: { id: assignment } });
  const own = id('role_assignment');

  it('is given', () => after().when(roleAssignments.assign(given)).then(assigned(own)));
  it('is given once: who has it keeps the assignment there is', () => after(assigned(EARLIER)).when(roleAssignments.assign(given)).thenNothing());
  it('is given again after it was taken away, as another assignment', () =>
    after(assigned(EARLIER), removed(EARLIER)).when(roleAssignments.assign(given)).then(assigned(own)));
  it('stays away when the command that gave it is repeated', () =>
    after(assigned(own), removed(own)).when(roleAssignments.assign(given)).thenRefused('entity_not_found'));

  it('is taken away', () => after(assigned(EARLIER)).when(roleAssignments.remove(EARLIER)).then(removed(EARLIER)));
  it('is taken away without its assignment being named', () => after(assigned(EARLIER)).when(roleAssignments.removeAny()).then(removed(EARLIER)));
  it('cannot be taken away before it was given', () => after().when(roleAssignments.remove(EARLIER)).thenNothing());
  it('stays when an assignment is taken away that it had before', () =>
    after(assigned(EARLIER), removed(EARLIER), assigned(own)).when(roleAssignments.remove(EARLIER)).thenNothing());

  const fold = (...events: readonly RoleAssignmentEvent[]) =>
    events.reduce(
      (state, event) => roleAssignmentDecider.evolve(state, { ...event, at: '2026-01-15T12:00:00.000Z', version: 1 }),
      roleAssignmentDecider.initial,
    );

  it('lives until it is taken away', () => {
    expect(roleAssignments.require(fold(assigned(own)), own)).toMatchObject({ id: own, ...given });
    for (const state of [fold(), fold(assigned(own), removed(own))])
      expect(() => roleAssignments.require(state, own)).toThrow(expect.objectContaining({ code: 'entity_not_found' }));
  });

  it('belongs to its organization, also when it is gone', () => {
    expect(roleAssignmentDecider.organization?.(fold(assigned(own)))).toBe(given.organization_id);
    expect(roleAssignmentDecider.organization?.(fold(assigned(own), removed(own)))).toBe(given.organization_id);
  });
});
