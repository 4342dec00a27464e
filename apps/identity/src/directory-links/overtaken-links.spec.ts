import { randomUUID } from 'node:crypto';
import type { DirectoryPolicy } from '#libs/contracts/src/directories/directory';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import { systemContext } from '#libs/platform/src/system-context';
import { ProductInProcess } from '#libs/testing/src/running-product';
import { Caller } from '#libs/testing/src/suite';
import { eventually, until } from '#libs/testing/src/until';
import { directoryLinkDecider } from '../domain/directory-link.decider.ts';
import { manageMembership, membershipDecider, membershipKey, type MembershipEvent, type MembershipState } from '../domain/membership.decider.ts';
import { RoleDirectory } from '../readers/role-directory.ts';
import { FollowPeopleOfDirectories, FollowPoliciesOfDirectories } from './directory.reactions.ts';

const MEMBERSHIPS = '/user_management/organization_memberships';

/** Of a person whose link was about to be recorded, everything was looked at, and nobody else finds the person by the link. */
describe('what changes between the look at a person and the record of the link', () => {
  let product: ProductInProcess;
  let suite: Caller;
  /** Types of what reactions are through with. */
  let followed: string[];
  let environment: string;
  /** Where records of links wait; how many do. */
  let gate: Promise<void> | null = null;
  let waiting = 0;
  let letGo = (): void => {};

  beforeAll(async () => {
    product = await ProductInProcess.open({ variables: {}, log: new PinoLog({ level: 'silent', readable: false }) });
    suite = new Caller(() => product.url, product.key);
    for (const reaction of [product.get(FollowPeopleOfDirectories), product.get(FollowPoliciesOfDirectories)]) {
      const react: (event: never) => Promise<void> = reaction.react.bind(reaction);
      Object.assign(reaction, {
        react: async (event: never) => {
          await react(event);
          const { type, meta } = event as RecordedEvent;
          followed.push(type);
          environment = meta.environment;
        },
      });
    }
    const repository = product.get(Repository);
    const transact = repository.transact.bind(repository) as (...given: readonly unknown[]) => Promise<unknown>;
    Object.assign(repository, {
      transact: async (...given: readonly unknown[]) => {
        if (given[0] === directoryLinkDecider && gate !== null) {
          waiting++;
          await gate;
        }
        return transact(...given);
      },
    });
  });
  beforeEach(() => void (followed = []));
  afterEach(() => letGo());
  afterAll(() => product.close());

  /** Whatever follows from `change`, which another reaction sees to, is over before the link of whoever `begin` makes one look at is recorded. */
  async function overtaken(begin: () => Promise<unknown>, change: () => Promise<unknown>, type: string): Promise<void> {
    gate = new Promise((resolve) => {
      letGo = () => {
        gate = null;
        resolve();
      };
    });
    waiting = 0;
    const begun = begin();
    await until(() => waiting > 0);
    followed = [];
    await change();
    await until(() => followed.includes(type));
    letGo();
    await begun;
  }

  async function given({ policy = {}, state = 'verified' }: { readonly policy?: Partial<DirectoryPolicy>; readonly state?: string } = {}) {
    const domain = `${randomUUID()}.test`;
    const { id: organization_id, domains } = await suite.post('/organizations', { name: 'Acme', domain_data: [{ domain, state }] }).expect(201);
    const asked = { organization_id, type: 'generic scim v2.0', name: 'D', policy: { follows: 'memberships', ...policy } };
    const { id: directory } = await suite.post('/admin/directories', asked).expect(201);
    const { token } = await suite.post(`/admin/directories/${directory}/tokens`).expect(201);
    const person = async (name: string): Promise<{ readonly id: string }> => {
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/scim+json' };
      const body = JSON.stringify({ userName: `${name}@${domain}` });
      const answer = await fetch(`${product.url}/scim/v2/${directory}/Users`, { method: 'POST', headers, body });
      expect(answer.status).toBe(201);
      // Of whom nobody follows: nothing else looks at them any more.
      if (policy.follows === 'off') await until(() => followed.includes('dsync.user.created'));
      return (await answer.json()) as { readonly id: string };
    };
    const memberships = async (): Promise<readonly { readonly id: string; readonly user_id: string; readonly directory_managed: boolean }[]> =>
      (await suite.get(`${MEMBERSHIPS}?organization_id=${organization_id}&statuses=active,inactive,pending`).expect(200)).data;
    const follow = (changes: object) => suite.patch(`/admin/directories/${directory}`, { policy: changes }).expect(200);
    const linkOf = async (id: string) => (await suite.get(`/directory_users/${id}`).expect(200)).link_state;
    const scim = async (method: string, path: string): Promise<void> => {
      const answer = await fetch(`${product.url}/scim/v2/${directory}${path}`, { method, headers: { Authorization: `Bearer ${token}` } });
      expect(answer.status).toBe(204);
    };
    /** What a process writes that stood still since it looked at the person, and that dies before it looks again. */
    const recordLate = async (directory_user_id: string): Promise<void> => {
      const { id: user_id } = await suite.post('/user_management/users', { email: `${randomUUID()}@${domain}` }).expect(201);
      const context = systemContext(environment, Date.now());
      const roles = await product.get(RoleDirectory).ofNewcomer(context, organization_id);
      const decision = manageMembership({ organization_id, user_id, roles, managed_by: { directory_id: directory, directory_user_id } });
      followed = [];
      await product.get(Repository).transact<MembershipState, MembershipEvent>(membershipDecider, context, membershipKey(organization_id, user_id), decision);
      await until(() => followed.includes('organization_membership.created'));
    };
    return { domainId: domains[0].id as string, directory, person, follow, memberships, linkOf, scim, recordLate };
  }

  it.each<[DirectoryPolicy['on_delete'], readonly object[]]>([
    ['end', []],
    ['release', [{ directory_managed: false }]],
  ])('is met where the directory is deleted: memberships %s with it', async (on_delete, expected) => {
    const { directory, person, memberships } = await given({ policy: { on_delete } });
    await overtaken(
      () => person('ada'),
      () => suite.delete(`/directories/${directory}`).expect(202),
      'dsync.deleted',
    );
    await eventually(async () => {
      expect(followed).toContain('dsync.user.created');
      expect(await memberships()).toMatchObject(expected);
    });
  });

  it('is met where the domain is verified', async () => {
    const { domainId, person, follow, memberships } = await given({ policy: { follows: 'off' }, state: 'pending' });
    await person('ada');
    await overtaken(
      () => follow({ follows: 'memberships' }),
      () => suite.post(`/admin/organization_domains/${domainId}/verification`, { state: 'verified' }).expect(200),
      'organization_domain.verified',
    );
    await eventually(async () => expect(await memberships()).toMatchObject([{ directory_managed: true }]));
  });

  it('is met where the membership is deleted', async () => {
    const { person, follow, memberships, linkOf } = await given({ policy: { follows: 'off' } });
    const { id } = await person('ada');
    await overtaken(
      () => follow({ follows: 'memberships' }),
      async () => {
        const [membership] = await memberships();
        await suite.delete(`${MEMBERSHIPS}/${membership!.id}`).expect(200);
      },
      'organization_membership.deleted',
    );
    await eventually(async () => expect(await linkOf(id)).toBe('unlinked_by_hand'));
    expect(await memberships()).toEqual([]);
  });

  describe('a membership that is recorded late, by somebody who does not look again', () => {
    it('ends where the person is gone', async () => {
      const { person, scim, memberships, recordLate } = await given();
      const { id } = await person('ada');
      await scim('DELETE', `/Users/${id}`);
      await eventually(async () => expect(await memberships()).toEqual([]));
      await recordLate(id);
      await eventually(async () => expect(await memberships()).toEqual([]));
    });

    it.each<[DirectoryPolicy['on_delete'], readonly object[]]>([
      ['end', []],
      ['release', [{ directory_managed: false }, { directory_managed: false }]],
    ])('is as the others where the directory is gone: %s', async (on_delete, expected) => {
      const { person, directory, memberships, recordLate } = await given({ policy: { on_delete } });
      const { id } = await person('ada');
      await suite.delete(`/directories/${directory}`).expect(202);
      await eventually(async () => expect(await memberships()).toMatchObject(expected.slice(1)));
      await recordLate(id);
      await eventually(async () => expect(await memberships()).toMatchObject(expected));
    });

    it('is managed by hand where nobody follows the directory any more', async () => {
      const { person, follow, memberships, recordLate } = await given();
      const { id } = await person('ada');
      await follow({ follows: 'off' });
      await eventually(async () => expect(await memberships()).toMatchObject([{ directory_managed: false }]));
      await recordLate(id);
      await eventually(async () => expect(await memberships()).toMatchObject([{ directory_managed: false }, { directory_managed: false }]));
    });
  });
});
