import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { MembershipEvent } from '../domain/membership.decider.ts';
import type { UserEvent } from '../domain/user.decider.ts';
import { usersView } from './users.view.ts';
import { usersOfOrganizationsView } from './users-of-organizations.view.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const [user, organization] = ['user_01KF0000000000000000000000', 'org_01KF0000000000000000000000'];

function recorded<Event extends UserEvent | MembershipEvent>(type: Event['type'], stream: string, data: object): Recorded<Event> {
  const meta = { environment: ENVIRONMENT, actor: { id: 'spec', source: 'system', name: null }, requestId: '', commandId: '', at: 0 } as const;
  return { id: '', type, stream, version: 1, position: '1', shape: 1, data, subject: null, public: [], meta } as unknown as Recorded<Event>;
}

describe('the view of users', () => {
  const keysOf = (row: NonNullable<ReturnType<typeof usersView.evolve>>) => usersView.indexes.map(({ keys }) => keys(row));

  it('goes on over a person who was erased, of whom the log says nothing any more', () => {
    const erased = { id: user, email: null, email_verified: true, first_name: null, last_name: null, name: null, external_id: null, metadata: null };
    const row = usersView.evolve(null, recorded<UserEvent>('user.created', `user-${ENVIRONMENT}-${user}`, erased), user)!;
    expect(keysOf(row)).toEqual([[], []]);
    expect(usersView.evolve(row, recorded<UserEvent>('user.deleted', `user-${ENVIRONMENT}-${user}`, { id: user }), user)).toBeNull();
  });
});

describe('the view of the users of organizations', () => {
  const id = `${user}.${organization}`;
  const fact = (type: MembershipEvent['type'], data: object): Recorded<MembershipEvent> =>
    recorded<MembershipEvent>(type, `organization_membership-${ENVIRONMENT}-${organization}.${user}`, data);
  const pair = { user_id: user, organization_id: organization };
  const after = (...events: readonly Recorded<MembershipEvent>[]) =>
    events.reduce<typeof pair | null>((row, event) => usersOfOrganizationsView.evolve(row, event, id), null);
  const created = (status: string) => fact('organization_membership.created', { id: 'om_1', ...pair, status });

  it('has a row for each active membership, under the user and the organization', () => {
    expect(usersOfOrganizationsView.idsOf(created('active'))).toEqual([id]);
    expect(after(created('active'))).toEqual(pair);
    expect(after(created('pending'))).toBeNull();
    expect(after(created('active'), fact('organization_membership.updated', { id: 'om_1', status: 'inactive' }))).toBeNull();
    expect(after(created('pending'), fact('organization_membership.updated', { id: 'om_1', status: 'active' }))).toEqual(pair);
    expect(after(created('active'), fact('organization_membership.updated', { id: 'om_1', roles: [] }))).toEqual(pair);
    expect(after(created('active'), fact('organization_membership.deleted', { id: 'om_1' }))).toBeNull();
  });
});
