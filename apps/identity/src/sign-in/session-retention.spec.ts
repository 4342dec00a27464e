import { randomUUID } from 'node:crypto';
import { CreateEnvironment } from '#libs/contracts/src/environments/operations';
import { UpdateEnvironmentSettings } from '#libs/contracts/src/environment-settings/operations';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { differences } from '#libs/event-sourcing/src/views/rebuild';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { ReadModels } from '#libs/read-models/src/read-models';
import { Sweepers } from '#libs/read-models/src/sweepers';
import { GivenApplication } from '#libs/testing/src/given-application';
import { recordsAfter } from '#libs/testing/src/records-after';
import type { ProductInProcess } from '#libs/testing/src/running-product';
import { Caller } from '#libs/testing/src/suite';
import { sessionsView } from '../views/sessions.view.ts';

const DAY = 86_400_000;
const USERS = '/user_management/users';

/** The default of `SESSIONS_RETENTION`, and how long a session is at most. */
const MONTH = 30 * DAY;

describe('sessions that are over', () => {
  let application: GivenApplication;
  let product: ProductInProcess;
  let suite: Caller;
  beforeAll(async () => {
    // Long ago, since a rebuild asks the clock of the machine what may be gone.
    application = await GivenApplication.open({ now: Date.now() - 100 * DAY });
    ({ product } = application);
    suite = new Caller(() => product.url, product.key);
  });
  afterAll(() => application.close());

  const later = (milliseconds: number) => application.later(milliseconds);
  const signIn = async (): Promise<{ readonly id: string; readonly user: string }> => {
    const email = `${randomUUID()}@sign-in.test`;
    const { code } = await suite.post('/user_management/magic_auth', { email }).expect(201);
    const grant = { grant_type: 'urn:workos:oauth:grant-type:magic-auth:code', client_secret: suite.key, email, code };
    const { access_token, user } = await suite.post('/user_management/authenticate', { ...grant, client_id: application.client_id }).expect(200);
    return { id: JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString()).sid, user: user.id };
  };
  const revoke = (session_id: string) => suite.post('/user_management/sessions/revoke', { session_id }).expect(200);
  /** What is stored after a round of the sweepers. */
  const kept = async (): Promise<readonly string[]> => {
    await product.get(Sweepers).sweepAll();
    const ids: string[] = [];
    for await (const { id } of product.get(ReadModels).table(tableOf(sessionsView)).dump()) ids.push(id);
    return ids;
  };

  it('are kept for their time, and then taken, whether they ended or expired', async () => {
    const [ended, expired] = [await signIn(), await signIn()];
    await revoke(ended.id);
    await later(MONTH);
    expect(await kept()).toEqual([ended.id, expired.id]);
    await later(DAY);
    expect(await kept()).toEqual([expired.id]);
  });

  it('are signed out of once more without a look at the settings of any environment', async () => {
    const call = (environment: string, operation: CreateEnvironment | UpdateEnvironmentSettings, fields: object) =>
      product.call(Object.assign(operation, fields, { context: systemContext(environment, application.clock.now()) }) as CreateEnvironment);
    const last = 'https://environment-4.test/bye';
    for (let number = 0; number < 5; number++) {
      const { id } = await call(SYSTEM_ENVIRONMENT, new CreateEnvironment(), { name: `environment-${number}` });
      await call(id, new UpdateEnvironmentSettings(), { sign_out_uris: [`https://environment-${number}.test/bye`] });
    }
    const { id } = await signIn();
    await revoke(id);
    const events = product.get(EventStore);
    const asked: string[] = [];
    for (const name of ['read', 'readBackwards', 'last'] as const) {
      const of = events[name].bind(events) as (stream: string, ...more: never[]) => never;
      events[name] = (stream: string, ...more: never[]) => {
        asked.push(stream);
        return of(stream, ...more);
      };
    }
    const logOut = (session_id: string, return_to: string) =>
      suite.get(`/user_management/sessions/logout?${new URLSearchParams({ session_id, return_to }).toString()}`, { Authorization: '' });
    for (const session of [id, `session_01J0000000000000000000000A`]) {
      expect((await logOut(session, last)).headers['location']).toBe(last);
      await logOut(session, 'https://nobody.test/bye').expect(400);
    }
    expect(asked.filter((stream) => stream.startsWith('environment'))).toEqual([]);
  });

  it('are taken without anybody noticing, and no rebuild misses them', async () => {
    const [ended, expired] = [await signIn(), await signIn()];
    await revoke(ended.id);
    await later(MONTH + DAY);
    const told = await product.events.head();
    for (const left of [[expired.id], [], []]) {
      for (const { id, user } of [ended, expired]) {
        await revoke(id);
        await suite.get(`${USERS}/${user}/sessions`).expect(200, { data: [] });
      }
      expect(await kept()).toEqual(left);
      await later(MONTH + DAY);
    }
    expect(await recordsAfter(product.events, told, ended.id, expired.id)).toEqual([]);
    const missed = [];
    for await (const difference of differences([sessionsView as never], { events: product.get(EventStore), readModels: product.get(ReadModels) }))
      missed.push(difference);
    expect(missed).toEqual([]);
  });
});
