import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { eventually } from '#libs/testing/src/until';
import { WebhookReceiver, type ReceivedWebhook } from '#libs/testing/src/webhook-receiver';

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

const MAGIC_AUTH = 'urn:workos:oauth:grant-type:magic-auth:code';
/** All are under way when the process is killed, so that each is caught at a point of its own. */
const COUNT = 16;
/** So many are answered before. */
const ANSWERED = 3;

describe('sign-ins that a kill cuts off', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-killed-sign-ins-'));
  const variables = { DATA_DIR: join(root, 'data'), DATA_MIN_FREE: '0' };
  let suite: SuiteProcess;
  let apiKey: string;
  let client_id: string;

  beforeAll(async () => {
    suite = await SuiteProcess.start(variables);
    apiKey = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
    client_id = /client_\w+/.exec((await gatehouse(variables, 'environments', 'list')).stdout)![0];
  });
  afterAll(async () => {
    await suite.killHard();
    rmSync(root, { recursive: true });
  });

  async function ask(method: string, path: string, body?: object): Promise<Answer> {
    const response = await fetch(suite.url + path, {
      method,
      headers: { Authorization: `Bearer ${apiKey}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  }
  const authenticate = (fields: object) => ask('POST', '/user_management/authenticate', { client_id, client_secret: apiKey, ...fields });
  const refresh = (refresh_token: string) => authenticate({ grant_type: 'refresh_token', refresh_token });
  const codeFor = async (email: string): Promise<string> => (await ask('POST', '/user_management/magic_auth', { email })).body.code;
  const sessionOf = ({ body }: Answer): string => JSON.parse(Buffer.from(body.access_token.split('.')[1], 'base64url').toString()).sid;

  /** Kills the process once some are answered, and starts it again: what each was answered, null where the kill was faster. */
  async function cutOff(asked: readonly (() => Promise<Answer>)[]): Promise<readonly (Answer | null)[]> {
    let answered = 0;
    const answers = asked.map(async (one) => {
      const answer = await one().catch(() => null);
      if (++answered === ANSWERED) await suite.killHard();
      return answer;
    });
    const settled = await Promise.all(answers);
    await suite.ended;
    suite = await SuiteProcess.start(variables);
    return settled;
  }

  it('are sessions that refresh where they were answered, and get their session where they were not', async () => {
    const shown = await Promise.all(
      Array.from({ length: COUNT }, async () => {
        const email = `${randomUUID()}@killed.test`;
        return { grant_type: MAGIC_AUTH, email, code: await codeFor(email) };
      }),
    );
    const answers = await cutOff(shown.map((fields) => () => authenticate(fields)));
    expect(answers.flatMap((answer) => answer?.status ?? [])).toEqual(expect.arrayContaining(Array<number>(ANSWERED).fill(200)));
    const retried = await Promise.all(shown.map(authenticate));
    for (const [place, again] of retried.entries()) {
      const answer = answers[place]!;
      expect([place, again.status]).toEqual([place, 200]);
      if (answer !== null) {
        expect(sessionOf(again)).toBe(sessionOf(answer));
        expect((await refresh(answer.body.refresh_token)).status).toBe(200);
      }
      const { data } = (await ask('GET', `/user_management/users/${again.body.user.id}/sessions`)).body;
      expect(data.map(({ id }: { id: string }) => id)).toEqual([sessionOf(again)]);
      // What was redeemed begins no other session, also once that one is over.
      await ask('POST', '/user_management/sessions/revoke', { session_id: sessionOf(again) });
      expect((await authenticate(shown[place]!)).status).toBe(400);
    }
  });

  it('go on from the token that was answered, or from the one before where none was', async () => {
    const sessions = await Promise.all(
      Array.from({ length: COUNT }, async () => {
        const email = `${randomUUID()}@killed.test`;
        return (await authenticate({ grant_type: MAGIC_AUTH, email, code: await codeFor(email) })).body.refresh_token as string;
      }),
    );
    const answers = await cutOff(sessions.map((token) => () => refresh(token)));
    for (const [place, answer] of answers.entries()) {
      const next = answer?.body.refresh_token ?? sessions[place]!;
      const { status, body } = await refresh(next);
      expect([place, status]).toEqual([place, 200]);
      expect((await refresh(body.refresh_token)).status).toBe(200);
    }
  });

  it('are sent the texts that waited for a webhook, by the process that comes next', async () => {
    const receiver = await WebhookReceiver.listen();
    try {
      receiver.answers(503);
      const sms = { countries: ['DE'], webhook_url: receiver.url, webhook_secret: 'a secret as it comes' };
      expect((await ask('PATCH', '/admin/environment_settings', { sms })).status).toBe(200);
      const phones = ['+4915112000001', '+4915112000002'];
      const sentTo = (phone: string) => receiver.received.filter(({ body }) => JSON.parse(body).data.phone_number === phone);
      const challenges: string[] = [];
      for (const [place, phone_number] of phones.entries()) {
        const { id } = (
          await eventually(async () => {
            const enrolled = await ask('POST', '/auth/factors/enroll', { type: 'sms', phone_number });
            expect(enrolled.status).toBe(201);
            return enrolled;
          })
        ).body;
        challenges.push((await ask('POST', `/auth/factors/${id}/challenge`, { sms_template: 'Yours: {{code}}' })).body.id);
        // Where the log has gone on to the second one, it is stored that the first one is behind it.
        const handled = `gatehouse_reaction_events_total{reaction="send-codes-by-sms"} ${place + 1}\n`;
        await eventually(async () => expect(await (await fetch(`${suite.url}/metrics`)).text()).toContain(handled));
      }
      await suite.killHard();
      const before = phones.map(sentTo);
      expect(before.map(({ length }) => length > 0)).toEqual([true, true]);
      receiver.received.length = 0;
      receiver.answers(200);
      suite = await SuiteProcess.start(variables);
      for (const [place, phone] of phones.entries()) {
        await eventually(async () => expect(sentTo(phone)).toHaveLength(1));
        const [{ headers, body }] = sentTo(phone) as [ReceivedWebhook];
        expect(headers['webhook-id']).toBe(before[place]![0]!.headers['webhook-id']);
        const { code, text } = JSON.parse(body).data;
        expect(text).toBe(`Yours: ${code}`);
        expect((await ask('POST', `/auth/challenges/${challenges[place]}/verify`, { code })).body).toMatchObject({ valid: true });
      }
    } finally {
      await receiver.close();
    }
  });
});
