import { hash } from 'node:crypto';
import { FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { inTurns } from '#libs/platform/src/in-turns';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { NDJSON, group, user } from '#libs/testing/src/given-directory';
import { recordsAfter } from '#libs/testing/src/records-after';
import { ProductInProcess } from '#libs/testing/src/running-product';
import { isEverythingWanted } from '#libs/testing/src/seed';
import { Caller } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { FollowPeopleOfDirectories, FollowPoliciesOfDirectories } from './directory.reactions.ts';
import { standingsContract } from './directory-standings.contract.ts';

let product: ProductInProcess;
/** Lets the reactions go on. */
let goOn: () => void = () => {};
beforeAll(async () => void (product = await ProductInProcess.open({ variables: {}, log: new PinoLog({ level: 'silent', readable: false }) })));
afterAll(() => product.close());

async function stopFollowing(): Promise<void> {
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  for (const reaction of [product.get(FollowPeopleOfDirectories), product.get(FollowPoliciesOfDirectories)]) {
    const react: (event: never) => Promise<void> = reaction.react.bind(reaction);
    Object.assign(reaction, { react: async (event: never) => gate.then(() => react(event)) });
  }
}

standingsContract('embedded', async () => {
  const asked = Object.assign(new FindEnvironmentKey(), { hash: hash('sha256', product.key, 'hex'), context: systemContext(SYSTEM_ENVIRONMENT, Date.now()) });
  return {
    suite: new Caller(() => product.url, product.key),
    client_id: (await product.call(asked)).client_id,
    head: () => product.events.head(),
    stopFollowing,
    goOn: () => goOn(),
  };
});

/** A company's worth; fewer in each commit. */
const PEOPLE = isEverythingWanted() ? 1_000 : 150;

describe('a directory of many people that is deleted, where memberships end with it', () => {
  it('gives nobody anything from the answer on, and each membership ends, once', async () => {
    const suite = new Caller(() => product.url, product.key);
    const { id: organization_id } = await suite
      .post('/organizations', { name: 'Acme', domain_data: [{ domain: 'thousand.test', state: 'verified' }] })
      .expect(201);
    const policy = { follows: 'memberships_and_roles', on_delete: 'end' };
    const { id } = await suite.post('/admin/directories', { organization_id, type: 'sftp', name: 'All', policy }).expect(201);
    await suite.post('/authorization/permissions', { slug: 'read', name: 'Read' });
    const roles = `/authorization/organizations/${organization_id}/roles`;
    await suite.post(roles, { slug: 'org-everybody', name: 'Everybody' }).expect(201);
    await suite.put(`${roles}/org-everybody/permissions`, { permissions: ['read'] }).expect(200);
    const people = Array.from({ length: PEOPLE }, (_, index) => `p${index}`);
    const lines = [...people.map((each) => user(each, { email: `${each}@thousand.test` })), group('everybody', people)];
    await suite.put(`/admin/directories/${id}/snapshot`, `${lines.join('\n')}\n`, { 'Content-Type': NDJSON }).expect(202);
    const memberships = await eventually(async () => {
      const found = await all(suite, `/user_management/organization_memberships?organization_id=${organization_id}`);
      expect(found).toHaveLength(PEOPLE);
      return found;
    }, 60_000);
    const [{ id: everybody }] = (await suite.get(`/directory_groups?directory=${id}`).expect(200)).data;
    await suite.put(`/admin/directories/${id}/role_mappings`, { role_mappings: [{ group_id: everybody, role_slug: 'org-everybody' }] }).expect(200);
    const resource_id = `authz_resource_${organization_id.slice(-26)}`;
    const allowed = async (): Promise<number> => {
      const answers = await inTurns(memberships, 32, async ({ id: membership }) => {
        const asked = { permission_slug: 'read', resource_id };
        return (await suite.post(`/authorization/organization_memberships/${membership}/check`, asked)).body.authorized === true;
      });
      return answers.filter(Boolean).length;
    };
    // Members become members of their group one after the other.
    await eventually(async () => expect(await allowed()).toBe(PEOPLE), 60_000);
    const before = await product.events.head();
    await stopFollowing();
    await suite.delete(`/directories/${id}`).expect(202);
    expect(await allowed()).toBe(0);
    goOn();
    const ended = async (): Promise<readonly string[]> =>
      (await recordsAfter(product.events, before)).flatMap(({ type, data }) =>
        type === 'organization_membership.deleted' ? [(data as { id: string }).id] : [],
      );
    await eventually(async () => expect(await ended()).toHaveLength(PEOPLE), 60_000);
    expect([...(await ended())].sort()).toEqual(memberships.map((each) => each.id).sort());
    expect(await all(suite, `/user_management/organization_memberships?organization_id=${organization_id}&statuses=active,inactive,pending`)).toEqual([]);
  }, 180_000);
});

async function all(suite: Caller, path: string): Promise<readonly { readonly id: string }[]> {
  const found: { readonly id: string }[] = [];
  for (let after = ''; ;) {
    const { data, list_metadata } = await suite.get(`${path}&limit=100${after}`).expect(200);
    found.push(...data);
    if (list_metadata.after === null) return found;
    after = `&after=${list_metadata.after}`;
  }
}
