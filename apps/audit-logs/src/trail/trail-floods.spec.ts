import { setImmediate as endOfTurn } from 'node:timers/promises';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ENVIRONMENT, givenServices, type GivenServices } from '#libs/testing/src/given-services';
import { AUDIT_TRAIL } from '../domain/audit-trail.decider.ts';

const FLOOD = 200;
/** Of the event loop, in which somebody else is answered. */
const TURNS = 6;

describe('a flood of one organization', () => {
  let services: GivenServices;
  beforeAll(async () => void (services = await givenServices((engines) => engines)));
  afterAll(() => services.close());

  const record = (organization_id: string, action: string) => {
    const event = { action, occurred_at: new Date().toISOString(), actor: { id: 'a', type: 'u' }, targets: [], context: { location: '' } };
    return services.ask('CreateAuditLogEvent', { organization_id, event });
  };
  const organization = async (): Promise<string> => {
    const { id } = await services.ask('CreateOrganization', { name: 'Acme' });
    await record(id, 'first');
    return id;
  };

  it.each<[string, (organization_id: string) => Promise<unknown>]>([
    ['lists', (organization_id) => services.ask('ListAuditLogEvents', { organization_id, limit: 10 })],
    ['proofs', (organization_id) => services.ask('ProveAuditLogConsistency', { organization_id, from: 1, to: 1 })],
  ])('leaves others their turns beside its %s', async (_, ask) => {
    const [busy, other] = [await organization(), await organization()];
    let answered = 0;
    const flood = Array.from({ length: FLOOD }, () => ask(busy).then(() => (answered += 1)));
    const others = ask(other);
    for (let turn = 0; turn < TURNS; turn++) await endOfTurn();
    expect(answered).toBeLessThan(FLOOD / 4);
    await others;
    expect(answered).toBeLessThan(FLOOD / 2);
    await Promise.all(flood);
  });

  it('has others wait for few of its events', async () => {
    const [busy, other] = [await organization(), await organization()];
    const flood = Array.from({ length: FLOOD }, (_, number) => record(busy, `busy ${number}`));
    await Promise.all([...flood, record(other, 'other')]);
    const trailOf = (id: string) => services.get(EventStore).read(streamName(AUDIT_TRAIL, ENVIRONMENT, id), 2);
    const [all, [one]] = [await trailOf(busy), await trailOf(other)];
    expect(all).toHaveLength(FLOOD);
    expect(all.filter(({ position }) => position < one!.position).length).toBeLessThan(FLOOD / 4);
  });
});
