import { readFileSync } from 'node:fs';
import { factsOf, metaOf } from '#libs/event-sourcing/src/deciding/records';
import { CurrentStates } from '#libs/event-sourcing/src/following/current-states';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import type { DataKey } from '#libs/event-sourcing/src/sealing/key-store';
import { commandIdOf, derivedId } from '#libs/platform/src/ids';
import { systemContext } from '#libs/platform/src/system-context';
import type { Engines } from '#libs/runtime/src/engines';
import { ENVIRONMENT, givenServices, type GivenServices } from '#libs/testing/src/given-services';
import { KeptLog } from '#libs/testing/src/kept-log';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { until } from '#libs/testing/src/until';
import { auditRetentionDecider } from '../domain/audit-retention.decider.ts';
import { Retention } from '../readers/retention.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailKeys } from '../sealing/trail-keys.ts';
import { TrailWriter } from '../trail/trail-writer.ts';
import { ExpiredEvents } from './expired-events.ts';

const DAY = 86_400_000;
const today = new Date();
/** The first of a month, long ago: a check of all rows asks the clock of the machine what may be gone. */
const START = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 5, 1);
const CREATED = JSON.parse(readFileSync(new URL('../../../identity/src/domain/organization.examples.json', import.meta.url), 'utf8')).events[0];

describe('whoever takes events whose time has passed', () => {
  let services: GivenServices;
  let engines: Engines;
  let reader: TrailReader;
  let keys: TrailKeys;
  let job: ExpiredEvents;
  beforeAll(async () => {
    services = await givenServices((embedded) => (engines = embedded));
    keys = new TrailKeys(engines.keys);
    reader = new TrailReader(keys, engines.readModels);
    job = anotherProcess();
    // A clock that nobody has looked at is believed a day later.
    expect(await swept(-1)).toBe(0);
  });
  afterAll(() => services.close());

  let ids = 0;
  /** Those of this process count on from the latest. */
  const idAt = (time: number): string => derivedId(commandIdOf(time, `${ids++}`), 0);
  const anotherProcess = (): ExpiredEvents => {
    const load = async (decider: typeof auditRetentionDecider, environment: string, key: string) =>
      (await factsOf(engines.events, decider, environment, key)).reduce(
        (state, { meta, ...fact }) => decider.evolve(state, { ...fact, at: new Date(meta.at).toISOString() }),
        decider.initial,
      );
    const retention = new Retention(new CurrentStates({ load } as never, {} as never), new SettableClock());
    return new ExpiredEvents(reader, retention, keys, engines.events, engines.readModels);
  };
  const swept = async (days: number, limit = 100, by = job): Promise<number> => by.sweep(ENVIRONMENT, START + days * DAY, limit);
  /** In steps that a clock is believed to make. */
  const sweptUpTo = async (from: number, to: number): Promise<number> => {
    let sum = 0;
    for (let day = from; day <= to; day += 1.5) sum += await swept(day);
    return sum + (await swept(to));
  };
  const organization = async (): Promise<string> => {
    const context = systemContext(ENVIRONMENT, START);
    const id = `org_${idAt(START)}`;
    const data = { ...CREATED.data, id, domains: [] };
    const created = { id: idAt(START), type: CREATED.type, shape: CREATED.shape, data, subject: null, public: [], meta: metaOf(context, START, id) };
    await engines.events.append(streamName('organization', ENVIRONMENT, id), 0, [created]);
    await until(async () => (await reader.rows.get(ENVIRONMENT, id)) !== null);
    return id;
  };
  /** One that arrives so many days after the start. */
  const record = async (id: string, day: number, times = 1): Promise<void> => {
    const clock = new SettableClock(START + day * DAY);
    const writer = new TrailWriter(engines.events, keys, reader, clock, new KeptLog(), engines.readModels);
    for (let count = 0; count < times; count++) {
      const context = { ...systemContext(ENVIRONMENT, clock.now()), deadline: clock.now() + 5_000 };
      const event = { context, id: idAt(clock.now()), occurredAt: START - day * DAY, content: `{"day":${day},"n":${count}}` };
      const position = await writer.add({ environment: ENVIRONMENT, organization: id }, { ...event, terms: [['action', 'a']] });
      await until(async () => (await reader.rows.checkpoint()) >= position);
    }
  };
  const rowsOf = async (id: string) =>
    (await reader.rows.page(ENVIRONMENT, { where: { index: 'organization', values: [id] }, order: 'desc', limit: 100 })).rows;
  const daysLeft = async (id: string): Promise<readonly number[]> => {
    const texts = await reader.textsOf({ environment: ENVIRONMENT, organization: id }, await rowsOf(id), 0);
    // Events of the environment tell beside it who set what is set here.
    return texts.flatMap((text) => (JSON.parse(text!) as { readonly day?: number }).day ?? []);
  };
  const stepOf = async (id: string): Promise<unknown> => ((await engines.keys.find(`trail.${ENVIRONMENT}-${id}`)) as DataKey).step;
  const expectSameRebuilt = async (): Promise<void> => {
    for await (const difference of services.runtime.differences()) expect(difference).toBeNull();
  };

  it('takes rows on their day, in the order of arrival, and the key with the month', async () => {
    const [acme, kept] = [await organization(), await organization()];
    for (const day of [0.1, 1, 20, 45]) await record(acme, day);
    for (const day of [1, 45]) await record(kept, day);
    await record(ENVIRONMENT, 1);
    await services.ask('SetAuditLogsRetention', { id: kept, retention_period_in_days: 365 });
    expect(await swept(0.5)).toBe(0);
    expect(await sweptUpTo(0.6, 30)).toBe(0);
    expect(await sweptUpTo(30, 30.5)).toBe(1);
    expect(await daysLeft(acme)).toEqual([1, 20, 45]);
    const before = await rowsOf(acme);
    expect(await stepOf(acme)).toBe(0);
    const [first] = await engines.events.read(streamName('audit_trail', ENVIRONMENT, acme));
    const sealed = first!.data as { readonly id: string; readonly sealed: string };
    const openFirst = async () =>
      (await keys.find({ environment: ENVIRONMENT, organization: acme }))!.at(first!.meta.at).open(`${first!.stream} ${sealed.id}`, sealed.sealed);
    expect(await openFirst()).toBe('{"day":0.1,"n":0}');

    // Of what remains of a month, two are taken one by one.
    expect(await sweptUpTo(32, 49)).toBe(1);
    expect(await sweptUpTo(50.5, 62)).toBe(1);
    expect(await daysLeft(acme)).toEqual([45]);
    expect(await stepOf(acme)).toBe(1);
    expect(await stepOf(kept)).toBe(0);
    await expect(openFirst()).rejects.toThrow();
    expect([await daysLeft(kept), await daysLeft(ENVIRONMENT)]).toEqual([[1, 45], [1]]);
    await record(acme, 62);
    expect(await daysLeft(acme)).toEqual([45, 62]);
    await expectSameRebuilt();

    // Rows that were made anew show nothing, and go again, by a process that starts or a day later.
    const writes = before.map(({ id, text, position, revision }) => ({ environment: ENVIRONMENT, id, text, position, revision }));
    await reader.rows.write(writes);
    expect(await reader.textsOf({ environment: ENVIRONMENT, organization: acme }, await rowsOf(acme), 0)).toEqual([
      null,
      null,
      expect.anything(),
      expect.anything(),
    ]);
    expect(await swept(62.1, 100, anotherProcess())).toBe(3);
    await reader.rows.write(writes);
    expect([await sweptUpTo(62.2, 64), await swept(64.1)]).toEqual([3, 0]);
    expect(await daysLeft(acme)).toEqual([45, 62]);
  });

  it('is one of several that begin at once, each at most as far as it may, and goes on where one was killed', async () => {
    await sweptUpTo(64.2, 80);
    const acme = await organization();
    await record(acme, 80, 12);
    await sweptUpTo(80, 110);
    expect(await daysLeft(acme)).toHaveLength(12);
    expect(await swept(111.5, 5)).toBe(5);
    // Killed before it noted what it took.
    await reader.rows.purge(
      ENVIRONMENT,
      (await rowsOf(acme)).slice(-2).map(({ id }) => id),
    );
    expect(await Promise.all([swept(111.6, 3, anotherProcess()), swept(111.6, 3, anotherProcess()), swept(111.6, 3)])).toEqual([3, 3, 3]);
    await sweptUpTo(111.7, 125);
    expect(await daysLeft(acme)).toEqual([]);
    expect(await stepOf(acme)).toBe(3);
    await record(acme, 125);
    expect(await daysLeft(acme)).toEqual([125]);
    await expectSameRebuilt();
  });

  it('takes nothing by a clock that jumps a year ahead and is set right', async () => {
    const acme = await organization();
    await record(acme, 126);
    await sweptUpTo(125, 126);
    const step = await stepOf(acme);
    expect(await swept(126 + 365)).toBe(0);
    expect(await swept(126 + 365 + 20 / 24)).toBe(0);
    expect(await swept(126.1)).toBe(0);
    expect(await sweptUpTo(126.2, 128)).toBe(0);
    expect([await daysLeft(acme), await stepOf(acme)]).toEqual([[126], step]);
    // It stays so far ahead: a day later there is no other time.
    await swept(300);
    expect(await swept(301.1)).toBeGreaterThan(0);
    expect(await daysLeft(acme)).toEqual([]);
  });
});
