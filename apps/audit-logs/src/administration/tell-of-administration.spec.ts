import type { AdministrativeFact } from '#libs/contracts/src/administration';
import type { Fact, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { EventStore, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Origins } from '#libs/event-sourcing/src/sealing/origins';
import { SystemClock, type Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { commandIdOf, derivedId } from '#libs/platform/src/ids';
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
const TRAIL = `audit_trail-${ENVIRONMENT}-${ENVIRONMENT}`;

describe('whoever tells of administration', () => {
  const log = new KeptLog();
  let services: GivenServices;
  let engines: Engines;
  beforeAll(async () => void (services = await givenServices((embedded) => (engines = embedded))));
  afterAll(() => services.close());

  /** As another process would: with nothing in memory. The process of this spec tells of everything as well. */
  const another = (clock: Clock = new SystemClock(), events: EventStore = engines.events): TellOfAdministration => {
    const keys = new TrailKeys(engines.keys);
    const writer = new TrailWriter(events, keys, services.get(TrailReader), clock, log, engines.readModels);
    return new TellOfAdministration(events, writer, new Origins(engines.keys), services.get(Retention), clock);
  };
  const facts = async (): Promise<readonly Recorded<Fact<AdministrativeFact>>[]> =>
    (await engines.events.read(`environment_settings-${ENVIRONMENT}-${ENVIRONMENT}`)) as readonly Recorded<Fact<AdministrativeFact>>[];
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
    const before = await told();
    for (const days of [20, 40, 180, 360]) await tellsOfAll(another(new SettableClock(Date.now() + days * DAY)));
    expect(await told()).toEqual(before);
    await change(1);
    const [fact] = (await facts()).slice(-1);
    await until(async () => (await told()).length === before.length + 1);
    const late = { ...fact!, data: fact!.data, id: derivedId(fact!.id, 9), meta: { ...fact!.meta, at: Date.now() - 366 * DAY } };
    await another().react(late);
    expect(await told()).toHaveLength(before.length + 1);
    await another().react({ ...late, meta: { ...late.meta, at: Date.now() - 364 * DAY } });
    expect(await told()).toHaveLength(before.length + 2);
  });
});
