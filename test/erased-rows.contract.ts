import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { linkData, userDecider } from '#apps/identity/src/domain/user.decider';
import { Suite } from '#apps/suite/src/suite';
import { FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { metaOf } from '#libs/event-sourcing/src/deciding/records';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { ERASED, holdersOf } from '#libs/event-sourcing/src/erasure/erasing';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { EventStore, START, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ERASURE_FINISHED } from '#libs/event-sourcing/src/log/protocol';
import type { Variables } from '#libs/platform/src/config/setting';
import { newCommandId } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { LEAST_HASH_COST } from '#libs/testing/src/least-hash-cost';
import { recordsAfter } from '#libs/testing/src/records-after';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import { until } from '#libs/testing/src/until';

const USERS = '/user_management/users';
const PASSWORD = 'ride-a-giraffe-7';
const [AT_ONCE, STEPS, ADDRESSES] = [4, 20, 5];

/** What the product does with people who come, sign in, change and are erased, all at the same time. */
export function rowsOfErasedPeople(name: string, variables: Variables): void {
  describe(`rows of a time in which people were erased, ${name},`, () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-erased-rows-'));
    let suite: Suite;
    beforeAll(async () => {
      suite = await Suite.start({
        variables: { PORT: '0', DATA_DIR: directory, DATA_MIN_FREE: '0', PASSWORD_HASH_COST: LEAST_HASH_COST.development, ...variables },
        log: new PinoLog({ level: 'silent', readable: false }),
        onFatal: (sentence) => {
          throw new Error(sentence);
        },
      });
    });
    afterAll(async () => {
      await suite.close();
      rmSync(directory, { recursive: true });
    });

    async function ask(method: string, path: string, body?: object, key = suite.firstKey!.value) {
      const response = await fetch(suite.url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
      });
      expect(response.status).toBeLessThan(500);
      const text = await response.text();
      return { status: response.status, body: text === '' ? null : JSON.parse(text) };
    }

    async function recorded(): Promise<readonly RecordedEvent[]> {
      return recordsAfter(suite.get(EventStore), START);
    }

    /** Whatever follows from what was recorded has followed, and the log ends there. */
    async function quiet(): Promise<void> {
      await until(async () => {
        const head = await suite.get(EventStore).head();
        // Who finishes erasures waits for a minute and more, for processes that still have a key; a trail has its next checkpoint a minute after the one before.
        const others = (await suite.get(LeasedFollowers).status()).filter(({ name }) => name !== 'erasures.finish' && name !== 'audit.checkpoints');
        return others.every(({ position }) => position >= head) && head === (await suite.get(EventStore).head());
      }, 60_000);
    }

    it('are those of a rebuild, and hold nothing of them', async () => {
      const find = Object.assign(new FindEnvironmentKey(), { hash: hash('sha256', suite.firstKey!.value, 'hex') });
      find.context = systemContext(SYSTEM_ENVIRONMENT, Date.now());
      const { client_id } = await suite.call(find);
      const any = seededNumbers(seedOf('erased rows'));
      const { body: organization } = await ask('POST', '/organizations', { name: 'Acme' });
      const { body: directory } = await ask('POST', '/admin/directories', { organization_id: organization.id, type: 'okta scim v2.0', name: 'Okta' });
      const { body: token } = await ask('POST', `/admin/directories/${directory.id}/tokens`);
      const scim = async (method: string, path: string, body?: object) => ask(method, `/scim/v2/${directory.id}${path}`, body, token.token);
      const { body: group } = await scim('POST', '/Groups', { displayName: 'Everybody' });
      const { environment } = (await recorded()).find(({ stream }) => stream.endsWith(group.id))!.meta;
      /** People of the directory, and the users whose they are. */
      const linked: { readonly user: string; readonly person: string; readonly name: string }[] = [];
      const link = async ({ id, name }: { readonly id: string; readonly name: string }): Promise<void> => {
        const { body } = await scim('POST', '/Users', { userName: `${name}-${linked.length}@acme.test`, name: { givenName: name }, externalId: name });
        if (body.id === undefined) return;
        linked.push({ user: id, person: body.id, name });
        await suite.get(Repository).transact(userDecider, systemContext(environment, Date.now()), id, linkData(id, `directory_user.${body.id}`));
      };
      const users: { readonly id: string; readonly name: string }[] = [];
      const gone = new Set<string>();
      const erased = new Set<string>();
      const someone = () => users[any(users.length)]!;
      const address = (): string => `person-${any(ADDRESSES)}@acme.test`;
      const create = async (): Promise<void> => {
        const name = `Name${users.length}of${any(1_000_000)}x`;
        const { status, body } = await ask('POST', USERS, { email: address(), first_name: name, password: PASSWORD, email_verified: true });
        if (status === 201) users.push({ id: body.id, name });
      };
      const steps: readonly (() => Promise<unknown>)[] = [
        create,
        create,
        async () => ask('PUT', `${USERS}/${someone().id}`, { last_name: 'King', email: address() }),
        ...[PASSWORD, PASSWORD, 'ride-a-giraffe-8'].map((password) => async () => {
          const by = { client_id, client_secret: suite.firstKey!.value, ip_address: '192.0.2.7', user_agent: 'Browser' };
          return ask('POST', '/user_management/authenticate', { ...by, grant_type: 'password', email: address(), password });
        }),
        async () => ask('POST', '/user_management/magic_auth', { email: address() }),
        async () => ask('POST', '/user_management/password_reset', { email: address() }),
        async () => {
          const { id, name: totp_issuer } = someone();
          await ask('POST', '/auth/factors/enroll', { type: 'totp', totp_issuer, totp_user: address(), user_id: id });
        },
        async () => {
          const { id, name } = someone();
          const phone_number = `+49151${String(any(10 ** 8)).padStart(8, '0')}`;
          const { status, body } = await ask('POST', '/auth/factors/enroll', { type: 'sms', phone_number, user_id: id });
          if (status === 201) await ask('POST', `/auth/factors/${body.id}/challenge`, { sms_template: `{{code}} for ${name}` });
        },
        async () => {
          const { body } = await ask('GET', `${USERS}/${someone().id}/sessions`);
          const [session] = body.data ?? [];
          if (session !== undefined) await ask('POST', '/user_management/sessions/revoke', { session_id: session.id });
        },
        async () => ask('POST', '/user_management/invitations', { email: address() }),
        async () => {
          const { body } = await ask('GET', '/user_management/invitations?limit=1');
          const [invitation] = body.data;
          if (invitation !== undefined) await ask('POST', `/user_management/invitations/${invitation.id}/${any(2) === 0 ? 'revoke' : 'accept'}`);
        },
        async () => link(someone()),
        async () => {
          const one = linked[any(linked.length + 1)];
          if (one === undefined) return;
          await scim('PATCH', `/Groups/${group.id}`, { Operations: [{ op: 'add', path: 'members', value: [{ value: one.person }] }] });
          await scim('PATCH', `/Users/${one.person}`, { Operations: [{ op: 'replace', path: 'title', value: `Dr ${one.name}` }] });
        },
        async () => ask('DELETE', `${USERS}/${someone().id}`),
        async () => {
          const { id, name } = someone();
          expect((await ask('POST', `/admin/users/${id}/erasure`)).status).toBe(202);
          gone.add(name);
          erased.add(id);
        },
      ];
      await ask('PATCH', '/admin/environment_settings', { sms: { countries: ['DE'] } });
      await create();
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (let step = 0; step < STEPS; step++) await steps[any(steps.length)]!();
        }),
      );
      // At least of these.
      for (const user of users.slice(0, 3)) await link(user);
      await Promise.all(Array.from({ length: AT_ONCE }, () => steps.at(-3)!()));
      await steps.at(-1)!();
      await quiet();
      for (const { user, person } of linked) {
        const patch = { Operations: [{ op: 'replace', path: 'title', value: 'Dr' }] };
        const answers = [await scim('GET', `/Users/${person}`), await scim('PATCH', `/Users/${person}`, patch), await ask('GET', `/directory_users/${person}`)];
        expect(answers.map(({ status }) => status)).toEqual(Array(3).fill(erased.has(user) ? 404 : 200));
      }
      const told = (await recorded()).flatMap(({ type, subject }) => (type === 'dsync.user.deleted' ? [subject as { readonly id: string }] : []));
      expect(told.map(({ id }) => id).sort()).toEqual(linked.flatMap(({ user, person }) => (erased.has(user) ? [person] : [])).sort());
      for (const one of told) expect(one).toMatchObject({ email: null, username: null, raw_attributes: null });
      // As its product sends it again: another person.
      const [first] = linked;
      const again = await scim('POST', '/Users', { userName: `${first!.name}-0@acme.test`.toLowerCase() });
      expect(again.status).toBe(erased.has(first!.user) ? 201 : 409);
      if (again.status === 201) expect((await scim('DELETE', `/Users/${again.body.id}`)).status).toBe(204);
      await quiet();
      // As a minute later, when nobody has a key any more.
      for (const record of await recorded()) {
        if (record.type !== ERASED) continue;
        const context = systemContext(record.meta.environment, Date.now());
        const finished = {
          type: ERASURE_FINISHED,
          shape: 1,
          data: { holders: holdersOf(record) },
          subject: null,
          public: [],
          meta: metaOf(context, Date.now()),
        };
        await suite.get(EventStore).append(streamName('erasure', record.meta.environment, record.id), 0, [{ id: newCommandId(Date.now()), ...finished }]);
      }
      await quiet();
      const { runtime } = suite.process;
      await runtime.projector.caughtUpWith(await suite.get(EventStore).head());

      const differences = [];
      for await (const difference of runtime.differences()) differences.push(difference);
      expect(differences).toEqual([]);
      const held: string[] = [];
      for (const table of runtime.tables())
        for await (const { id, text } of table.dump()) for (const name of gone) if (text?.includes(name)) held.push(`${table.definition.name} ${id}`);
      expect(held).toEqual([]);
      const log = JSON.stringify(await recorded());
      expect([...gone].filter((name) => log.includes(name))).toEqual([]);
      // Nothing that follows from what was recorded was given up.
      expect(await runtime.metrics.text()).not.toMatch(/reaction_skipped_total\{[^}]*\} [1-9]/);
    }, 240_000);
  });
}
