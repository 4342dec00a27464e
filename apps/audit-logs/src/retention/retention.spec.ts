import { ForwardedClock } from '#libs/testing/src/forwarded-clock';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const DAY = 86_400_000;
const EVENTS = '/audit_logs/events';

/** Two gateways with the services behind them. */
describe('the retention of an audit trail', () => {
  const clock = new ForwardedClock();
  let suite: GivenSuite;
  let other: Caller;
  beforeAll(async () => {
    suite = await givenSuite({ clock, replicas: true });
    other = new Caller(() => suite.urls.at(-1)!, suite.key);
  });

  const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const record = async (organization_id: string, action: string): Promise<void> => {
    const occurred_at = new Date(clock.now()).toISOString();
    const event = { action, occurred_at, actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } };
    await suite.post(EVENTS, { organization_id, event }).expect(200);
  };
  const listed = async (id: string, query = '', at: Caller = other): Promise<{ readonly id: string; readonly action: string }[]> =>
    (await at.get(`${EVENTS}?organization_id=${id}${query}`).expect(200)).data;
  const actions = async (id: string, query = ''): Promise<readonly string[]> => (await listed(id, query)).map(({ action }) => action);
  /** Nobody has heard of anybody for that long. */
  const later = async (days: number): Promise<void> => {
    clock.forward(days * DAY);
    for (const caller of [suite, other]) await eventually(() => caller.get('/organizations?limit=1').expect(200));
  };
  const retention = (id: string, days: number) =>
    suite.put(`/organizations/${id}/audit_logs_retention`, { retention_period_in_days: days }).expect(200, { retention_period_in_days: days });

  it('is thirty days until it is set; whoever asks is told, of organizations that there are', async () => {
    const acme = await organization();
    const [period, configuration] = [`/organizations/${acme}/audit_logs_retention`, `/organizations/${acme}/audit_log_configuration`];
    await other.get(period).expect(200, { retention_period_in_days: 30 });
    const configured = { organization_id: acme, retention_period_in_days: 30, state: 'inactive' };
    expect((await other.get(configuration)).body).toEqual(configured);
    await record(acme, 'first');
    await retention(acme, 365);
    await other.get(period).expect(200, { retention_period_in_days: 365 });
    expect((await other.get(configuration)).body).toEqual({ ...configured, retention_period_in_days: 365, state: 'active' });
    for (const wrong of [31, '365', null, 30.5, undefined])
      await suite.put(period, { retention_period_in_days: wrong }).expect(422, { errors: [{ field: 'retention_period_in_days' }] });
    const [environment] = (await suite.recordsAfter('')).map(({ meta }) => meta.environment).slice(-1);
    for (const id of ['org_01J0000000000000000000000A', environment!, await stranger()]) {
      await suite.get(`/organizations/${id}/audit_logs_retention`).expect(404, { entity_id: id });
      await suite.put(`/organizations/${id}/audit_logs_retention`, { retention_period_in_days: 30 }).expect(404, { entity_id: id });
      await suite.get(`/organizations/${id}/audit_log_configuration`).expect(404, { entity_id: id });
    }
  });

  const stranger = async (): Promise<string> => (await (await suite.otherEnvironment()).post('/organizations', { name: 'Other' }).expect(201)).id;

  it('hides what is older from every list, look and proof on every replica at once, whoever has not taken it yet', async () => {
    const [acme, kept] = [await organization(), await organization()];
    await retention(kept, 365);
    for (const id of [acme, kept]) await record(id, 'old');
    const [old] = await listed(acme);
    const inclusion = `/audit_logs/organizations/${acme}/inclusion?event_id=${old!.id}`;
    await suite.eventually(`/audit_logs/organizations/${acme}/checkpoint`, { size: 1 });
    await other.get(inclusion).expect(200);
    await later(29.9);
    expect(await actions(acme)).toEqual(['old']);
    await record(acme, 'new');
    await later(0.2);
    for (const query of ['', '&actions=old&actions=new', '&order=asc', '&limit=1']) expect(await actions(acme, query)).toEqual(['new']);
    await other.get(`${EVENTS}/${old!.id}`).expect(404, { entity_id: old!.id });
    await other.get(inclusion).expect(404, { entity_id: old!.id });
    expect(await actions(kept)).toEqual(['old']);

    // Shorter at once; longer only for what is there.
    await record(kept, 'new');
    await retention(kept, 30);
    expect(await actions(kept)).toEqual(['new']);
    await retention(kept, 365);
    expect(await actions(kept)).toEqual(['new']);
    await later(40);
    expect([await actions(kept), await actions(acme)]).toEqual([['new'], []]);
    // What follows is proven as before: places in the trail stay.
    await record(acme, 'third');
    const [third] = await listed(acme);
    await suite.eventually(`/audit_logs/organizations/${acme}/checkpoint`, { size: 3, trail: 'intact' });
    await other.get(`/audit_logs/organizations/${acme}/inclusion?event_id=${third!.id}`).expect(200, { leaf_index: 2 });
    await other.get(`/audit_logs/organizations/${acme}/consistency?from=1&to=3`).expect(200);
  });
});
