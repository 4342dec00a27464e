import { request } from 'node:http';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { GivenDirectory, group, NDJSON, user } from '#libs/testing/src/given-directory';

type Body = Awaited<ReturnType<GivenDirectory['run']>>;

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite({ variables: { REQUEST_TIMEOUT: '2s' } })));

it('a full listing goes on after restarts in the midst of comparing and of applying', async () => {
  const directory = await GivenDirectory.open(suite);
  await directory.carryOut(Array.from({ length: 100 }, (_, index) => user(`old${index}`)));
  const people = Array.from({ length: 1_000 }, (_, index) => user(`u${index}`));
  const { id } = await directory.send([...people, group('all', ['u0', 'u1', 'u999'])], '?force=true').expect(202);
  await suite.restart();
  await eventually(async () => expect((await suite.get(`/admin/directories/${directory.id}/runs/${id}`).expect(200)).phase).toBe('applying'));
  await suite.restart();
  const run = await directory.over(id);
  expect(run).toMatchObject({ phase: 'completed', error_count: 0, users: { listed: 1_000, created: 1_000, removed: 100 } });
  await suite.eventually(`/directories/${directory.id}`, { metadata: { users: { active: 1_000, inactive: 0 }, groups: 1 } });
  const told = await directory.told();
  expect(told.filter((name) => name === 'dsync.user.created')).toHaveLength(1_100);
  expect(told.filter((name) => name === 'dsync.user.deleted')).toHaveLength(100);
  expect((await directory.groups())['all']).toEqual(['u0', 'u1', 'u999']);
});

describe('an upload', () => {
  it('that is cut off is discarded, one that is silent is refused, and one that goes on takes its time', async () => {
    const directory = await GivenDirectory.open(suite);
    const open = () => {
      const { hostname, port } = new URL(suite.url);
      const sent = request({
        hostname,
        port,
        method: 'PUT',
        path: `/admin/directories/${directory.id}/snapshot`,
        headers: { Authorization: `Bearer ${suite.key}`, 'Content-Type': NDJSON },
      });
      const answered = new Promise<{ status: number; body: Body }>((resolve, reject) => {
        sent.on('error', reject).on('response', (response) => {
          let text = '';
          response.on('data', (part) => (text += part)).on('end', () => resolve({ status: response.statusCode!, body: JSON.parse(text) }));
        });
      });
      sent.write(`${user('a')}\n`);
      return { sent, answered };
    };
    const [cut, silent, slow] = [open(), open(), open()];
    // More than two at once are too many of one environment.
    const [third] = await Promise.all([slow.answered.catch(() => null), new Promise((resolve) => setTimeout(resolve, 100))].slice(0, 1));
    expect(third).toMatchObject({ status: 429 });
    cut.answered.catch(() => {});
    cut.sent.destroy();
    expect(await silent.answered).toMatchObject({ status: 408, body: { code: 'request_timeout' } });
    const patient = open();
    // Longer than REQUEST_TIMEOUT in all.
    for (let part = 0; part < 5; part += 1) {
      await new Promise((resolve) => setTimeout(resolve, 700));
      patient.sent.write(`${user(`p${part}`)}\n`);
    }
    patient.sent.end();
    const { status, body } = await patient.answered;
    expect(status).toBe(202);
    expect(await directory.over(body.id)).toMatchObject({ phase: 'completed', users: { created: 6 } });
  });
});
