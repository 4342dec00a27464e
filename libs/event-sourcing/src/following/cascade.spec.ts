import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import type { Decider, Fact } from '../deciding/decider.ts';
import { LogRepository } from '../deciding/log.repository.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { Naming, streamName } from '../log/naming.ts';
import { primariesOf, primaryView } from '../views/view.ts';
import { Cascade } from './cascade.ts';

const ENVIRONMENT = 'environment_1';
const clock = new SystemClock();

type LampEvent = Fact<'lamp.made', { readonly id: string }> | Fact<'lamp.broken', { readonly id: string }>;
type Lamp = { readonly id: string; readonly isBroken: boolean } | null;
type BulbEvent = Fact<'bulb.made', { readonly id: string; readonly lamp_id: string | null }> | Fact<'bulb.thrown', { readonly id: string }>;
type Bulb = { readonly id: string; readonly lamp_id: string | null; readonly isThrown: boolean } | null;

const lampDecider: Decider<Lamp, LampEvent> = {
  category: 'lamp',
  foldVersion: 1,
  initial: null,
  sealed: { 'lamp.made': null, 'lamp.broken': null },
  evolve: (_state, { type, data: { id } }) => ({ id, isBroken: type === 'lamp.broken' }),
  toPublicEvent: () => null,
};
const bulbDecider: Decider<Bulb, BulbEvent> = {
  category: 'bulb',
  foldVersion: 1,
  initial: null,
  sealed: { 'bulb.made': null, 'bulb.thrown': null },
  evolve: (state, event) => (event.type === 'bulb.made' ? { ...event.data, isThrown: false } : state && { ...state, isThrown: true }),
  toPublicEvent: () => null,
  hangsOn: {
    reaction: 'throw-bulbs',
    parents: [{ ends: 'lamp.broken', index: 'lamp', category: 'lamp', field: 'lamp_id' }],
    begins: ['bulb.made'],
    end: (id) => (state) => (state === null || state.isThrown ? [] : [{ type: 'bulb.thrown', data: { id } }]),
  },
};
const lampsView = primaryView<Lamp, LampEvent, NonNullable<Lamp>>({
  name: 'lamps',
  version: 1,
  decider: lampDecider,
  indexes: [],
  rowOf: (lamp) => (lamp?.isBroken === true ? null : lamp),
});
const bulbsView = primaryView<Bulb, BulbEvent, NonNullable<Bulb>>({
  name: 'bulbs',
  version: 1,
  decider: bulbDecider,
  indexes: [{ name: 'lamp', keys: ({ lamp_id }) => (lamp_id === null ? [] : [lamp_id]) }],
  rowOf: (bulb) => (bulb?.isThrown === true ? null : bulb),
});

describe('what hangs on something that ends', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let readModels: LmdbReadModels;
  let repository: LogRepository;
  const views = primariesOf([lampsView, bulbsView]);

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'cascade-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    readModels = new LmdbReadModels(storage);
    repository = new LogRepository(
      events,
      readModels,
      new Naming(createSecretKey(Buffer.alloc(32, 1))),
      clock,
      new PinoLog({ level: 'silent', readable: false }),
    );
    repository.registerPrimaryView(lampsView);
    repository.registerPrimaryView(bulbsView);
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const cascade = (over = repository) => new Cascade(over, { reached: async () => {} }, readModels, clock);
  const reaction = (over = repository) => cascade(over).reactionOf([bulbDecider as never], views);
  const record = <State, Event extends Fact>(decider: Decider<State, Event>, key: string, event: Event) =>
    repository.transact(decider, systemContext(ENVIRONMENT, clock.now()), key, () => [event]);
  const make = (id: string, lamp_id: string | null) => record(bulbDecider, id, { type: 'bulb.made', data: { id, lamp_id } });
  const lastOf = async (category: string, key: string) => (await events.last(streamName(category, ENVIRONMENT, key)))!;
  const typesOf = async (id: string) => (await events.read(streamName('bulb', ENVIRONMENT, id))).map(({ type }) => type);

  async function broken(lamp: string) {
    await record(lampDecider, lamp, { type: 'lamp.broken', data: { id: lamp } });
    return (await lastOf('lamp', lamp)) as never;
  }

  it('ends too, however much it is, and nothing else does', async () => {
    for (const lamp of ['desk', 'hall']) await record(lampDecider, lamp, { type: 'lamp.made', data: { id: lamp } });
    const bulbs = Array.from({ length: 60 }, (_, index) => `bulb-${index}`);
    for (const id of bulbs) await make(id, 'desk');
    await make('other', 'hall');
    await reaction().react(await broken('desk'));
    for (const id of bulbs) expect(await typesOf(id)).toEqual(['bulb.made', 'bulb.thrown']);
    expect(await typesOf('other')).toEqual(['bulb.made']);
  });

  it('ends once, also where whoever records it dies in the midst and another begins again', async () => {
    await record(lampDecider, 'desk', { type: 'lamp.made', data: { id: 'desk' } });
    const bulbs = Array.from({ length: 40 }, (_, index) => `bulb-${index}`);
    for (const id of bulbs) await make(id, 'desk');
    const event = await broken('desk');
    let left = 10;
    const dying = Object.assign(Object.create(repository) as LogRepository, {
      transact: (...given: Parameters<LogRepository['transact']>) => (left-- > 0 ? repository.transact(...given) : Promise.reject(new Error('killed'))),
    });
    await expect(reaction(dying).react(event)).rejects.toThrow('killed');
    for (let time = 0; time < 2; time++) await reaction().react(event);
    for (const id of bulbs) expect(await typesOf(id)).toEqual(['bulb.made', 'bulb.thrown']);
  });

  it('ends too, where it began behind the end, or under what never was', async () => {
    await record(lampDecider, 'desk', { type: 'lamp.made', data: { id: 'desk' } });
    await make('in-time', 'desk');
    await reaction().react((await lastOf('bulb', 'in-time')) as never);
    expect(await typesOf('in-time')).toEqual(['bulb.made']);
    await broken('desk');
    for (const [id, lamp] of [
      ['late', 'desk'],
      ['nowhere', 'none'],
    ] as const) {
      await make(id, lamp);
      await reaction().react((await lastOf('bulb', id)) as never);
      expect(await typesOf(id)).toEqual(['bulb.made', 'bulb.thrown']);
    }
  });

  it('waits for rows before each event: what was shown may be of a log that was put back since', async () => {
    const waited: string[] = [];
    const waiting = new Cascade(repository, { reached: async (position) => void waited.push(position) }, readModels, clock).reactionOf(
      [bulbDecider as never],
      views,
    );
    for (const lamp of ['desk', 'hall']) await record(lampDecider, lamp, { type: 'lamp.made', data: { id: lamp } });
    const [earlier, later] = [await broken('desk'), await broken('hall')] as { readonly position: string }[];
    for (const event of [later!, earlier!]) await waiting.react(event as never);
    expect(waited).toEqual([later!.position, earlier!.position]);
  });

  it('goes on, where it hangs on none', async () => {
    await make('spare', null);
    await reaction().react((await lastOf('bulb', 'spare')) as never);
    expect(await typesOf('spare')).toEqual(['bulb.made']);
  });

  it('is refused where nobody can tell whether what it begins under lives', () => {
    expect(() => cascade().reactionOf([bulbDecider as never], primariesOf([bulbsView]))).toThrow('No view of this service tells which lamp lives.');
  });
});
