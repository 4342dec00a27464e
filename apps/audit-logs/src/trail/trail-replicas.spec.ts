import { SettableClock } from '#libs/testing/src/settable-clock';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const HOUR = 3_600_000;
const EVENTS = '/audit_logs/events';

/** Two gateways with the services behind them, which share the log and the rows and know nothing else of each other. */
describe('a trail that two replicas write', () => {
  let suite: GivenSuite;
  let clock: SettableClock;
  let callers: readonly [Caller, Caller];
  beforeAll(async () => {
    // Ahead of every id that this process has made before: the first key of a trail is that of the month in its owner's id.
    clock = new SettableClock(Date.parse('2041-01-31T12:00:00.000Z'));
    suite = await givenSuite({ clock, replicas: true });
    callers = suite.urls.map((url) => new Caller(() => url, suite.key)) as unknown as [Caller, Caller];
  });

  const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const later = async (milliseconds: number): Promise<void> => {
    clock.forward(milliseconds);
    for (const caller of callers) await eventually(() => caller.get('/organizations').expect(200));
  };
  const record = (at: Caller, organization_id: string, action: string, key?: string, occurred_at = new Date(clock.now()).toISOString()) =>
    at
      .post(
        EVENTS,
        { organization_id, event: { action, occurred_at, actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } } },
        key === undefined ? {} : { 'Idempotency-Key': key },
      )
      .expect(200, { success: true });
  const listed = async (at: Caller, organization_id: string, query = '') =>
    (await at.get(`${EVENTS}?organization_id=${organization_id}&limit=100${query}`).expect(200)).data as { action: string; leaf_index: number }[];

  it('has each event once, without a gap, whoever was asked how often', async () => {
    const acme = await organization();
    await Promise.all(
      Array.from({ length: 240 }, (_, index) =>
        record(callers[index % 2]!, acme, `a${index % 60}`, index % 120 < 60 ? `key-${index % 60}` : `other-${index % 60}`),
      ),
    );
    const all = await Promise.all(
      callers.map(async (at) => [
        ...(await listed(at, acme)),
        ...(await listed(at, acme, `&after=${(await at.get(`${EVENTS}?organization_id=${acme}&limit=100`)).body.list_metadata.after}`)),
      ]),
    );
    expect(all[0]).toEqual(all[1]);
    expect(all[0]!.map(({ leaf_index }) => leaf_index).sort((one, other) => one - other)).toEqual(Array.from({ length: 120 }, (_, index) => index));
  });

  it('shows what one has taken at the other at once', async () => {
    const acme = await organization();
    for (let turn = 0; turn < 6; turn++) {
      await record(callers[turn % 2]!, acme, `turn ${turn}`);
      expect((await listed(callers[(turn + 1) % 2]!, acme)).map(({ leaf_index }) => leaf_index)).toContain(turn);
    }
  });

  it('knows a repeat for a day, also over the end of a month, and finds events of both months', async () => {
    const acme = await organization();
    const occurred = new Date(clock.now()).toISOString();
    await record(callers[0], acme, 'keyed', 'k');
    await record(callers[0], acme, 'bare', undefined, occurred);
    await later(23 * HOUR);
    expect(new Date(clock.now()).getUTCMonth()).toBe(1);
    await record(callers[1], acme, 'keyed', 'k');
    await record(callers[1], acme, 'bare', undefined, occurred);
    await record(callers[1], acme, 'bare', 'now with a key'.replaceAll(' ', '-'), occurred);
    expect(await listed(callers[1], acme)).toHaveLength(2);
    await later(2 * HOUR);
    await record(callers[0], acme, 'keyed', 'k');
    await record(callers[0], acme, 'bare', undefined, occurred);
    for (const action of ['keyed', 'bare']) expect(await listed(callers[1], acme, `&actions=${action}`)).toHaveLength(2);
    expect(await listed(callers[1], acme, '&actor_ids=a&range_start=2041-02-01')).toHaveLength(1);
  });
});
