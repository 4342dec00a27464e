import { seedsOf } from '#libs/contracts/src/roles/seeds';
import type { Fact } from '#libs/event-sourcing/src/deciding/decider';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { roleDirectoryView, type RoleScope } from './role-directory.view.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const ACME = 'org_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const [admin, member] = seedsOf(ENVIRONMENT).roles.map(({ id }) => id);
const roleId = (number: number): string => `role_01HZZZZZZZZZZZZZZZZZZZZZZ${number}`;

const seeded: Fact = { type: 'authorization_model.seeded', data: seedsOf(ENVIRONMENT) };
const created = (number: number, type = 'role.created'): Fact => ({
  type,
  data: {
    id: roleId(number),
    slug: `role-${number}`,
    name: 'Role',
    description: null,
    resource_type_id: null,
    resource_type_slug: 'organization',
    permissions: [],
  },
});
const recorded = (category: string, key: string, fact: Fact) =>
  ({
    ...fact,
    stream: streamName(category, ENVIRONMENT, key),
    meta: { environment: ENVIRONMENT, at: Date.parse('2026-01-15T12:00:00.000Z') },
  }) as never;

/** The rows after these facts, each by its id. */
function rowsAfter(category: string, key: string, ...facts: readonly Fact[]): ReadonlyMap<string, RoleScope | null> {
  const rows = new Map<string, RoleScope | null>();
  for (const fact of facts) {
    const event = recorded(category, key, fact);
    for (const id of roleDirectoryView.idsOf(event)) rows.set(id, roleDirectoryView.evolve(rows.get(id) ?? null, event, id));
  }
  return rows;
}
const ofEnvironment = (...facts: readonly Fact[]) => rowsAfter('authorization_model', ENVIRONMENT, seeded, ...facts).get(ENVIRONMENT)!;
const idsOf = ({ roles }: RoleScope) => roles.map(({ id }) => id);

describe('the directory of roles', () => {
  it('has the roles of an environment in the order of their priority, new ones last', () => {
    expect(idsOf(ofEnvironment(created(1), created(2)))).toEqual([admin, member, roleId(1), roleId(2)]);
    expect(ofEnvironment(created(1)).roles.at(-1)).toEqual({ id: roleId(1), slug: 'role-1', resource_type_slug: 'organization' });
  });

  it('follows their order, and leaves those behind it that are not named', () => {
    const reordered = (...role_ids: readonly string[]): Fact => ({ type: 'roles.reordered', data: { role_ids } });
    expect(idsOf(ofEnvironment(created(1), reordered(roleId(1), member!, admin!)))).toEqual([roleId(1), member, admin]);
    expect(idsOf(ofEnvironment(created(1), reordered(roleId(1)), created(2)))).toEqual([roleId(1), admin, member, roleId(2)]);
  });

  it('forgets a deleted role but for its id, which is never that of another', () => {
    const deleted: Fact = { type: 'role.deleted', data: { id: roleId(1) } };
    expect(ofEnvironment(created(1), deleted)).toMatchObject({ roles: [{ id: admin }, { id: member }], deleted: [roleId(1)] });
  });

  it('knows which custom roles somebody is about to delete', () => {
    const intent = (type: string, given = 'mine'): Fact => ({ type: `organization_role.${type}`, data: { id: roleId(1), intent: given } });
    const after = (...facts: readonly Fact[]) => rowsAfter('organization_roles', ACME, created(1, 'organization_role.created'), ...facts).get(ACME)!;
    expect(after(intent('closing')).closings).toEqual({ [roleId(1)]: { intent: 'mine', at: '2026-01-15T12:00:00.000Z' } });
    expect(after(intent('closing'), intent('reopened', 'of another')).closings).toBeDefined();
    expect(after(intent('closing'), intent('reopened'))).toEqual(after());
    expect(after(intent('closing'), { type: 'organization_role.deleted', data: { id: roleId(1) } })).toEqual({ roles: [], deleted: [roleId(1)] });
  });

  it('keeps custom roles with their organization', () => {
    const deleted: Fact = { type: 'organization_role.deleted', data: { id: roleId(1) } };
    const facts = [created(1, 'organization_role.created'), created(2, 'organization_role.created'), deleted];
    const rows = rowsAfter('organization_roles', ACME, ...facts);
    expect([...rows]).toMatchObject([[ACME, { roles: [{ id: roleId(2) }], deleted: [roleId(1)] }]]);
  });
});
