import { environmentVariables } from '#libs/platform/src/config/environment';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventsWhoseTimePasses } from './retention.contract.ts';

const EVENTS = '/audit_logs/events';

/** Two gateways with the services behind them. */
describe('the retention of an audit trail', () => {
  let suite: GivenSuite;
  let other: Caller;
  beforeAll(async () => {
    suite = await givenSuite({ replicas: true });
    other = new Caller(() => suite.urls.at(-1)!, suite.key);
  });

  const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const record = async (organization_id: string, action: string): Promise<void> => {
    const occurred_at = new Date().toISOString();
    const event = { action, occurred_at, actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } };
    await suite.post(EVENTS, { organization_id, event }).expect(200);
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
});

// Processes of a cluster have the clock of their machine.
if (environmentVariables()['SUITE'] !== 'processes') eventsWhoseTimePasses('on embedded engines');
