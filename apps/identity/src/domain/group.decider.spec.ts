import { specOf } from '#libs/testing/src/decider-spec';
import {
  addMember,
  changeMembers,
  createGroup,
  deleteGroup,
  groupDecider,
  requireGroup,
  recordDeletion,
  removeMember,
  updateGroup,
  type GroupEvent,
  type GroupState,
} from './group.decider.ts';

const { given, id, now } = specOf(groupDecider);

const group = id('group');
const organization_id = 'org_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const ada = 'om_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const bob = 'om_01HZZZZZZZZZZZZZZZZZZZZZZ2';
const eve = 'om_01HZZZZZZZZZZZZZZZZZZZZZZ3';
const LIMIT = 2;

const created: GroupEvent = { type: 'group.created', data: { id: group, organization_id, name: 'Engineering', description: null } };
const updated = (change: object): GroupEvent => ({ type: 'group.updated', data: { id: group, ...change } });
const added = (membership: string): GroupEvent => ({ type: 'group.member_added', data: { group_id: group, organization_membership_id: membership } });
const removed = (membership: string): GroupEvent => ({ type: 'group.member_removed', data: { group_id: group, organization_membership_id: membership } });
const deleted: GroupEvent = { type: 'group.deleted', data: { id: group } };

const create = createGroup({ organization_id, name: 'Engineering' });
const add = (membership: string) => addMember(group, membership, LIMIT);

describe('a group', () => {
  it('is created', () => given().when(create).then(created));
  it('stays deleted when its creation is repeated', () => given(created, deleted).when(create).thenRefused('entity_not_found'));

  it('changes what is given, and only that', () => {
    given(created)
      .when(updateGroup(group, { name: 'Design' }))
      .then(updated({ name: 'Design' }));
    given(created)
      .when(updateGroup(group, { name: 'Engineering', description: 'All' }))
      .then(updated({ description: 'All' }));
    given(created, updated({ description: 'All' }))
      .when(updateGroup(group, { description: null }))
      .then(updated({ description: null }));
  });
  it('ignores what it is called already', () =>
    given(created)
      .when(updateGroup(group, { name: 'Engineering', description: null }))
      .thenNothing());

  it('takes a member', () => given(created).when(add(ada)).then(added(ada)));
  it('ignores a member that it has, also when it is full', () => given(created, added(ada), added(bob)).when(add(ada)).thenNothing());
  it('has as many members as it may have, and no more', () =>
    given(created, added(ada), added(bob)).when(add(eve)).thenRefused('group_membership_limit_exceeded'));
  it('has room again when a member has left', () => given(created, added(ada), added(bob), removed(ada)).when(add(eve)).then(added(eve)));
  it('changes members together, removals first', () => {
    const change = (add: readonly string[], remove: readonly string[]) => changeMembers(group, { add, remove }, LIMIT);
    given(created, added(ada), added(bob))
      .when(change([bob, eve], [ada]))
      .then(removed(ada), added(eve));
    given(created, added(ada), added(bob))
      .when(change([eve], []))
      .thenRefused('group_membership_limit_exceeded');
    given(created, added(ada), added(bob))
      .when(changeMembers(group, { add: [ada], remove: [bob] }, 1))
      .then(removed(bob));
    given(created, added(ada))
      .when(change([ada], [eve]))
      .thenNothing();
    given(created, deleted)
      .when(change([], [ada]))
      .thenRefused('entity_not_found');
  });
  it('lets a member leave, and ignores one that it does not have', () => {
    given(created, added(ada), added(bob)).when(removeMember(group, ada)).then(removed(ada));
    given(created, added(ada)).when(removeMember(group, bob)).thenNothing();
    // What begins like an id is no id.
    given(created, added(ada))
      .when(removeMember(group, ada.slice(0, -1)))
      .thenNothing();
  });

  it('is deleted, and its members are not told of one by one', () => given(created, added(ada)).when(deleteGroup(group)).then(deleted));
  it('ends with its organization, unless it has already', () => {
    given(created, added(ada)).when(recordDeletion()).then(deleted);
    given(created, deleted).when(recordDeletion()).thenNothing();
    given().when(recordDeletion()).thenNothing();
  });
  it('does nothing before it exists, or after it was deleted', () => {
    for (const events of [[], [created, deleted]]) {
      given(...events)
        .when(updateGroup(group, { name: 'Design' }))
        .thenRefused('entity_not_found');
      given(...events)
        .when(add(ada))
        .thenRefused('entity_not_found');
      given(...events)
        .when(removeMember(group, ada))
        .thenNothing();
    }
    given().when(deleteGroup(group)).thenRefused('entity_not_found');
  });

  it('is announced without its members, whatever becomes of them', () => {
    const full = [created, added(ada), added(bob)].reduce<GroupState>((state, event) => groupDecider.evolve(state, { ...event, at: now, version: 1 }), null);
    const shown = { object: 'group', id: group, organization_id, name: 'Engineering', description: null, created_at: now, updated_at: now };
    expect(groupDecider.toPublicEvent(updated({}), full, full)).toEqual({ names: ['group.updated'], payload: shown });
    expect(groupDecider.toPublicEvent(deleted, full, null)).toEqual({ names: ['group.deleted'], payload: shown });
    expect(groupDecider.toPublicEvent(added(eve), full, full)).toEqual({
      names: ['group.member_added'],
      payload: { group_id: group, organization_membership_id: eve },
    });
  });

  it('counts thousands of members exactly', () => {
    const ids = Array.from({ length: 5_000 }, (_, index) => `om_01KF0000000000000000${String(index).padStart(6, '0')}`);
    const full = ids.reduce<GroupState>(
      (state, member) => groupDecider.evolve(state, { ...added(member), at: now, version: 1 }),
      groupDecider.evolve(null, { ...created, at: now, version: 1 }),
    );
    expect(requireGroup(full, group).members.split(' ')).toHaveLength(5_001);
    const context = { environment: '', now, id };
    expect(addMember(group, eve, 5_001)(full, context)).toEqual([added(eve)]);
    expect(() => addMember(group, eve, 5_000)(full, context)).toThrow('A group has at most 5000 members.');
  });
});
