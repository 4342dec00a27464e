import { randomUUID } from 'node:crypto';
import '#libs/contracts/src/all';
import { AddGroupMember } from '#libs/contracts/src/groups/operations';
import type { Class, Operation } from '#libs/contracts/src/operation';
import { AddOrganizationRolePermission, AddRolePermission } from '#libs/contracts/src/roles/operations';
import { newCommandId } from '#libs/platform/src/ids';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

let suite: GivenSuite;
beforeAll(async () => {
  suite = await givenSuite();
});

async function made(path: string, body: object): Promise<string> {
  return (await suite.post(path, body).expect(201)).id as string;
}

const slug = () => `x-${randomUUID()}`;

async function permission(): Promise<string> {
  const name = slug();
  await made('/authorization/permissions', { slug: name, name: 'Named' });
  return name;
}

interface Given {
  readonly type: Class<Operation>;
  readonly fields: object;
  /** Takes back what the command did. */
  readonly undo: () => Promise<unknown>;
  /** How the answer shows that it stands as it was taken back. */
  readonly standing: object;
}

/** Commands that change what is there, by what they are given. */
const GIVEN: Readonly<Record<string, () => Promise<Given>>> = {
  'a permission of a role': async () => {
    const [role_slug, name] = [slug(), await permission()];
    await made('/authorization/roles', { slug: role_slug, name: 'Role' });
    const undo = () => suite.put(`/authorization/roles/${role_slug}/permissions`, { permissions: [] }).expect(200);
    return { type: AddRolePermission, fields: { role_slug, slug: name }, undo, standing: { permissions: [] } };
  },
  'a permission of a role of an organization': async () => {
    const [organization_id, role_slug, name] = [await made('/organizations', { name: 'Acme' }), `org-${slug()}`, await permission()];
    const path = `/authorization/organizations/${organization_id}/roles`;
    await made(path, { slug: role_slug, name: 'Role' });
    const undo = () => suite.delete(`${path}/${role_slug}/permissions/${name}`).expect(200);
    return { type: AddOrganizationRolePermission, fields: { organization_id, role_slug, slug: name }, undo, standing: { permissions: [] } };
  },
  'a member of a group': async () => {
    const organization_id = await made('/organizations', { name: 'Acme' });
    const user_id = await made('/user_management/users', { email: `${randomUUID()}@acme.test` });
    const organization_membership_id = await made('/user_management/organization_memberships', { organization_id, user_id });
    const group_id = await made(`/organizations/${organization_id}/groups`, { name: 'Group' });
    const undo = () => suite.delete(`/organizations/${organization_id}/groups/${group_id}/organization-memberships/${organization_membership_id}`).expect(204);
    return { type: AddGroupMember, fields: { organization_id, group_id, organization_membership_id }, undo, standing: { id: group_id } };
  },
};

describe('a command whose answer was lost', () => {
  it.each(Object.keys(GIVEN))('is not carried out again after a restart, whatever was done since: %s', async (what) => {
    const { type, fields, undo, standing } = await GIVEN[what]!();
    const { environment } = (await suite.records()).at(-1)!.meta;
    const commandId = newCommandId(Date.now());
    const ask = (attempt: number) => suite.call(type, fields, { environment, actor: { id: 'key', source: 'api', name: null }, commandId, attempt });
    await ask(1);
    await suite.restart();
    await undo();
    const before = await suite.records();
    expect(await ask(2)).toMatchObject(standing);
    const after = await suite.records();
    expect(after).toEqual(before);
    const publicIds = after.flatMap((record) => record.public.map(({ id }) => id));
    expect(new Set(publicIds).size).toBe(publicIds.length);
  });
});
