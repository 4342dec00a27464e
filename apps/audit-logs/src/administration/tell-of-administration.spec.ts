import type { AdministrativeFact } from '#libs/contracts/src/administration';
import type { Fact, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { START, type Appended, type EventStore, type NewEvent, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Origins } from '#libs/event-sourcing/src/sealing/origins';
import { SystemClock, type Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { metaOf } from '#libs/event-sourcing/src/deciding/records';
import { systemContext } from '#libs/platform/src/system-context';
import { commandIdOf, derivedId, newCommandId } from '#libs/platform/src/ids';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { Engines } from '#libs/runtime/src/engines';
import { ENVIRONMENT, givenServices, type GivenServices } from '#libs/testing/src/given-services';
import { KeptLog } from '#libs/testing/src/kept-log';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { until } from '#libs/testing/src/until';
import { Retention } from '../readers/retention.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailKeys } from '../sealing/trail-keys.ts';
import { TrailWriter } from '../trail/trail-writer.ts';
import { TellOfAdministration } from './tell-of-administration.reaction.ts';

const DAY = 86_400_000;
const OPERATOR = { id: 'command_line', source: 'system', name: null } as const;
/** Rows that have nothing yet. */
const UNSHOWN = { checkpoint: async () => START, page: async () => ({ rows: [], hasAfter: false }) };
const SETTINGS = `environment_settings-${ENVIRONMENT}-${ENVIRONMENT}`;
const TEMPLATE = `jwt_template-${ENVIRONMENT}-${ENVIRONMENT}`;
const TRAIL = `audit_trail-${ENVIRONMENT}-${ENVIRONMENT}`;

describe('whoever tells of administration', () => {
  const log = new KeptLog();
  let services: GivenServices;
  let engines: Engines;
  beforeAll(async () => void (services = await givenServices((embedded) => (engines = embedded))));
  afterAll(() => services.close());

  /** As another process would: with nothing in memory. The process of this spec tells of everything as well. */
  const another = (
    clock: Clock = new SystemClock(),
    events: EventStore = engines.events,
    readModels: ReadModels = engines.readModels,
  ): TellOfAdministration => {
    const keys = new TrailKeys(engines.keys);
    const writer = new TrailWriter(events, keys, services.get(TrailReader), clock, log, readModels);
    return new TellOfAdministration(events, writer, new Origins(engines.keys), services.get(Retention), clock);
  };
  const facts = async (): Promise<readonly Recorded<Fact<AdministrativeFact>>[]> => {
    const streams = await Promise.all([SETTINGS, TEMPLATE].map((stream) => engines.events.read(stream)));
    return streams.flat().sort((one, other) => (one.position < other.position ? -1 : 1)) as readonly Recorded<Fact<AdministrativeFact>>[];
  };
  const change = async (times: number): Promise<void> => {
    for (let time = 0; time < times; time++) await services.ask('UpdateEnvironmentSettings', { sessions: { access_token_seconds: 300 + (changes += 1) } });
  };
  let changes = 0;
  const idsOf = (records: readonly Pick<RecordedEvent, 'id' | 'meta'>[]): readonly string[] =>
    records.map(({ id, meta }) => derivedId(commandIdOf(meta.at, 'tell-of-administration', id), 0));
  /** But for the key of its checkpoints, which is made when they are. */
  const told = async (): Promise<readonly string[]> => {
    const others = new Set(idsOf(await engines.events.read(`audit_keys-${ENVIRONMENT}-${ENVIRONMENT}`)));
    return (await engines.events.read(TRAIL)).map(({ id }) => id).filter((id) => !others.has(id));
  };
  const expected = async (): Promise<readonly string[]> => idsOf(await facts());
  const tellsOfAll = async (telling: TellOfAdministration): Promise<void> => {
    for (const fact of await facts()) await telling.react(fact);
  };

  it('tells of each fact once, in the order of the log, however many do so at once', async () => {
    await change(12);
    await Promise.all([another(), another()].map(tellsOfAll));
    await tellsOfAll(another());
    await until(async () => (await told()).length === 12);
    expect(await told()).toEqual(await expected());
    expect(log.lines).toEqual([]);
  });

  it('tells of many together in few appends, in the order of the log, and again of none', async () => {
    const appends: (readonly NewEvent[])[] = [];
    // Nobody has told of anything yet.
    const empty = new Proxy(engines.events, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (name === 'append')
          return async (_: string, version: number, events: readonly NewEvent[]): Promise<Appended> => {
            appends.push(events);
            return { version: version + events.length, position: '9'.repeat(16) };
          };
        if (typeof value !== 'function') return value;
        return (stream: unknown, ...args: unknown[]): unknown =>
          name.toString().startsWith('read') && stream === TRAIL
            ? Promise.resolve([])
            : (value as (...given: unknown[]) => unknown).apply(target, [stream, ...args]);
      },
    });
    const unshown = new Proxy(engines.readModels, { get: (target, name) => (name === 'table' ? () => UNSHOWN : (Reflect.get(target, name) as unknown)) });
    await change(40);
    const telling = another(undefined, empty, unshown);
    const all = await facts();
    for (let time = 0; time < 2; time++) await telling.reactTogether(all);
    expect(appends.flat().map(({ id }) => id)).toEqual(idsOf(all));
    expect([all.length > 40, appends.length]).toEqual([true, Math.ceil(all.length / 100)]);
    await until(async () => (await told()).length === all.length);
  });

  it('goes on where the answer of an append was lost with its process', async () => {
    await change(3);
    const losing = new Proxy(engines.events, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]) => {
          const answer: unknown = await (value as (...given: unknown[]) => unknown).apply(target, args);
          if (name === 'append') throw unavailable('The answer was lost.');
          return answer;
        };
      },
    });
    for (const fact of await facts())
      await another(undefined, losing)
        .react(fact)
        .catch(() => {});
    await tellsOfAll(another());
    expect(await told()).toEqual(await expected());
  });

  it('knows what was told of half a year ago, and passes over what would be kept no more', async () => {
    // More than are read of a trail at once.
    const templates = Array.from({ length: 101 }, (_, index) => ({
      ...{ id: derivedId(newCommandId(Date.now()), 0), type: 'jwt_template.set', shape: 1, data: { content: String(index) }, subject: null, public: [] },
      meta: metaOf(systemContext(ENVIRONMENT, Date.now()), Date.now()),
    }));
    await engines.events.append(TEMPLATE, 0, templates);
    await tellsOfAll(another());
    const before = await told();
    expect(before).toEqual(await expected());
    for (const days of [20, 40, 180, 360]) await tellsOfAll(another(new SettableClock(Date.now() + days * DAY)));
    expect(await told()).toEqual(before);
    // Nor where no row shows any of it yet, and where a later release has other words for it.
    const unshown = new Proxy(engines.readModels, { get: (target, name) => (name === 'table' ? () => UNSHOWN : (Reflect.get(target, name) as unknown)) });
    const late = another(new SettableClock(Date.now() + 3 * DAY), engines.events, unshown);
    for (const fact of await facts()) await late.react({ ...fact, data: fact.data, meta: { ...fact.meta, requestId: 'another', actor: OPERATOR } });
    expect(await told()).toEqual(before);
    await change(1);
    const [fact] = (await facts()).slice(-1);
    await until(async () => (await told()).length === before.length + 1);
    const old = { ...fact!, data: fact!.data, id: derivedId(fact!.id, 9), meta: { ...fact!.meta, at: Date.now() - 366 * DAY } };
    await another().react(old);
    expect(await told()).toHaveLength(before.length + 1);
    await another().react({ ...old, meta: { ...old.meta, at: Date.now() - 364 * DAY } });
    expect(await told()).toHaveLength(before.length + 2);
  });
});
