import type { Variables } from '#libs/platform/src/config/setting';
import { SWEPT_METRIC } from '#libs/platform/src/retention';
import { ForwardedClock } from '#libs/testing/src/forwarded-clock';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const DAY = 86_400_000;
const EVENTS = '/audit_logs/events';

/** What becomes of events while weeks go by, through two gateways with the services behind them. */
export function eventsWhoseTimePasses(name: string, variables: Variables = {}): void {
  describe(`an audit event whose time has passed, ${name},`, () => {
    const clock = new ForwardedClock();
    let suite: GivenSuite;
    let other: Caller;
    beforeAll(async () => {
      suite = await givenSuite({ clock, replicas: true, variables: { ...variables, SWEEP_INTERVAL: '1s' } });
      other = new Caller(() => suite.urls.at(-1)!, suite.key);
    });

    const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
    const record = async (organization_id: string, action: string): Promise<void> => {
      const occurred_at = new Date(clock.now()).toISOString();
      const event = { action, occurred_at, actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } };
      await suite.post(EVENTS, { organization_id, event }).expect(200);
    };
    const listed = async (id: string, query = ''): Promise<{ readonly id: string; readonly action: string }[]> =>
      (await other.get(`${EVENTS}?organization_id=${id}${query}`).expect(200)).data;
    const actions = async (id: string, query = ''): Promise<readonly string[]> => (await listed(id, query)).map(({ action }) => action);
    /** Nobody has heard of anybody for that long. */
    const later = async (days: number): Promise<void> => {
      clock.forward(days * DAY);
      for (const caller of [suite, other]) await eventually(() => caller.get('/organizations?limit=1').expect(200));
    };
    const retention = (id: string, days: number) =>
      suite.put(`/organizations/${id}/audit_logs_retention`, { retention_period_in_days: days }).expect(200, { retention_period_in_days: days });
    /** How many rows of trails the job has taken. */
    const taken = async (): Promise<number> => {
      const counts = await Promise.all(
        suite.urls.map(
          async (url) => new RegExp(`^${SWEPT_METRIC}\\{data="audit_trails"\\} (\\d+)$`, 'm').exec(await (await fetch(`${url}/metrics`)).text())?.[1],
        ),
      );
      return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
    };

    it('is taken by the job once the clock is believed, and what follows is proven as before', async () => {
      const acme = await organization();
      for (const action of ['one', 'two', 'three']) await record(acme, action);
      await later(15);
      await record(acme, 'four');
      await later(15.5);
      expect(await actions(acme)).toEqual(['four']);
      // A clock that has jumped takes nothing for a day, which begins when the job first looks at it.
      await eventually(async () => {
        await later(1.1);
        await eventually(async () => expect(await taken()).toBe(3), 3_000);
      }, 30_000);
      await record(acme, 'five');
      expect(await actions(acme)).toEqual(['five', 'four']);
      await suite.eventually(`/audit_logs/organizations/${acme}/checkpoint`, { size: 5, trail: 'intact' });
      for (const { id } of await listed(acme)) await other.get(`/audit_logs/organizations/${acme}/inclusion?event_id=${id}`).expect(200, { size: 5 });
    });

    it('is in no list, look and proof on any replica at once, whoever has not taken it yet', async () => {
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
}
