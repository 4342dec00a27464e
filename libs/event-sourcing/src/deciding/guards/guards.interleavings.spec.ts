import { createSecretKey } from 'node:crypto';
import { setImmediate as settled } from 'node:timers/promises';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import { newCommandId } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { isEverythingWanted, seededNumbers } from '#libs/testing/src/seed';
import type { ReadModels, Write } from '#libs/read-models/src/read-models';
import type { Decider, Decision, Fact } from '../decider.ts';
import { EventStore, START, WrongVersion, type Appended, type NewEvent, type Position, type RecordedEvent } from '../../log/event-store.ts';
import { LogRepository } from '../log.repository.ts';
import { toFolded } from '../records.ts';
import { Naming, streamName } from '../../log/naming.ts';
import { afterClosing, closingOf, reopeningOf, withoutClosing, type ClosingEvent, type WithClosings } from './closings.decider.ts';
import { undoWhatMayNotHang } from './hanging.ts';
import { narrow } from './narrowing.ts';
import { mayHang, refuseClosed, type ParentStatus } from './parent-status.ts';

/**
 * Walks every order in which the steps of those can happen who begin to hang something on a thing, who delete the thing unless something hangs on it, and of the
 * reaction: with the code itself, each of whose calls to the log waits until the walk lets it proceed. A pause is an order like any other; a crash is a process
 * that never moves again.
 */

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const CREATED_AT = Date.parse('2026-01-15T12:00:00.000Z');
const naming = new Naming(createSecretKey(Buffer.alloc(32, 1)));
const log = new PinoLog({ level: 'silent', readable: false });

interface ThingState extends WithClosings {
  readonly lives: boolean;
}
type ThingEvent = Fact<'thing.deleted', { readonly id: 'it' }> | ClosingEvent<'thing'>;
type UseEvent = Fact<'use.begun' | 'use.ended', null>;

const thing: Decider<ThingState, ThingEvent> = {
  category: 'thing',
  foldVersion: 1,
  initial: { lives: true },
  sealed: { 'thing.deleted': null, 'thing.closing': null, 'thing.reopened': null },
  evolve: (state, event) => (event.type === 'thing.deleted' ? { ...withoutClosing(state, 'it'), lives: false } : afterClosing(state, event)),
  toPublicEvent: () => null,
};

const use: Decider<boolean, UseEvent> = {
  category: 'use',
  foldVersion: 1,
  initial: false,
  sealed: { 'use.begun': null, 'use.ended': null },
  evolve: (_lives, { type }) => type === 'use.begun',
  toPublicEvent: () => null,
};

const begin: Decision<boolean, UseEvent> = (lives) => (lives ? [] : [{ type: 'use.begun', data: null }]);
const end: Decision<boolean, UseEvent> = (lives) => (lives ? [{ type: 'use.ended', data: null }] : []);

const THING = streamName('thing', ENVIRONMENT, 'it');
const useStream = (name: string): string => streamName('use', ENVIRONMENT, name);

/** Three processes have a hundred thousand states and more: enough of them every day, and many on request. */
const SAMPLE = isEverythingWanted() ? 100_000 : 3_000;
const LONGEST_WALK = isEverythingWanted() ? 3_600_000 : 240_000;

/** What is left out of the protocol. */
type Fault = 'look' | 'intent' | 'reaction';
type Role = 'creator' | 'remover' | 'reaction';

/** Every reading is minutes after the one before: each intent that is met has been abandoned, whether its owner lives or not. */
class LeapingClock extends Clock {
  private time = CREATED_AT;
  now(): number {
    return (this.time += 60_000);
  }
}

/** The log, and the rows of the reaction. */
class World {
  readonly clock = new LeapingClock();
  readonly records: RecordedEvent[] = [];
  readonly rows = new Map<string, Write>();

  of(stream: string): readonly RecordedEvent[] {
    return this.records.filter((record) => record.stream === stream);
  }

  append(stream: string, expected: number, events: readonly NewEvent[]): Appended {
    const { length } = this.of(stream);
    if (length !== expected) throw new WrongVersion(stream, expected);
    for (const [place, event] of events.entries())
      this.records.push({ ...event, stream, version: length + place + 1, position: String(this.records.length + 1).padStart(8, '0') });
    return { version: length + events.length, position: this.records.at(-1)!.position };
  }

  get isDeleted(): boolean {
    return this.of(THING).some(({ type }) => type === 'thing.deleted');
  }

  isUsed(name: string): boolean {
    return this.of(useStream(name)).at(-1)?.type === 'use.begun';
  }

  readModels(): ReadModels {
    const table = {
      write: async (writes: readonly Write[]) => {
        for (const write of writes) if (write.position > (this.rows.get(write.id)?.position ?? START)) this.rows.set(write.id, write);
      },
      getMany: async (_environment: string, ids: readonly string[]) => ids.map((id) => (this.rows.get(id)?.text == null ? null : this.rows.get(id)!)),
    };
    return { table: () => table } as unknown as ReadModels;
  }
}

/** The log as one process has it: what others may change meanwhile waits. */
class ParkedStore extends EventStore {
  waiting: { readonly call: string; readonly proceed: () => void } | null = null;
  /** All that the process did and learnt. */
  readonly trace: string[] = [];

  constructor(private readonly world: World) {
    super();
  }

  read(stream: string, from = 1): Promise<readonly RecordedEvent[]> {
    return this.park(
      `read ${stream}`,
      () => this.world.of(stream).slice(from - 1),
      ({ length }) => length,
    );
  }

  readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    const act = (): readonly RecordedEvent[] => {
      const records = this.world.of(stream);
      return records
        .slice(0, from ?? records.length)
        .slice(-count)
        .toReversed();
    };
    return this.park(`backwards ${stream} ${String(from)}`, act, (records) => records[0]?.version);
  }

  last(stream: string): Promise<RecordedEvent | null> {
    return this.park(
      `last ${stream}`,
      () => this.world.of(stream).at(-1) ?? null,
      (record) => record?.version,
    );
  }

  append(stream: string, expected: number, events: readonly NewEvent[]): Promise<Appended> {
    const types = events.map(({ type }) => type).join();
    return this.park(
      `${types} ${stream} ${expected}`,
      () => this.world.append(stream, expected, events),
      ({ position }) => position,
    );
  }

  /** Nobody decides by it alone. */
  async head(): Promise<Position> {
    return this.world.records.at(-1)?.position ?? START;
  }

  subscribe(): never {
    throw new Error('The walk says what the reaction hears.');
  }

  park<T>(call: string, act: () => T, learnt: (result: T) => unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const proceed = (): void => {
        this.waiting = null;
        try {
          const result = act();
          this.trace.push(`${call}: ${String(learnt(result))}`);
          resolve(result);
        } catch (error) {
          this.trace.push(`${call}: refused`);
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      this.waiting = { call, proceed };
    });
  }
}

const refusal = (): DomainError => new DomainError('conflict', 'thing_in_use', 'Refused.');

class Process {
  readonly store: ParkedStore;
  outcome: 'done' | 'refused' | null = null;
  failure: unknown = null;
  /** How many records the reaction has dealt with. */
  heard = 0;
  private readonly repository: LogRepository;

  constructor(
    private readonly world: World,
    readonly role: Role,
    readonly name: string,
    private readonly fault: Fault | undefined,
  ) {
    this.store = new ParkedStore(world);
    // No view is kept, so no table is ever opened.
    this.repository = new LogRepository(this.store, null as unknown as ReadModels, naming, world.clock, log);
  }

  start(uses: readonly string[]): void {
    const works: Readonly<Record<Role, () => Promise<void>>> = {
      creator: () => this.create(),
      remover: () => this.remove(uses),
      reaction: () => this.follow(uses),
    };
    works[this.role]().then(
      () => (this.outcome ??= 'done'),
      (error: unknown) => {
        if (error instanceof DomainError && error.code === 'thing_in_use') this.outcome = 'refused';
        else this.failure = error;
      },
    );
  }

  get place(): string {
    return JSON.stringify([this.outcome, this.store.waiting?.call, this.store.trace]);
  }

  private async create(): Promise<void> {
    const before = await this.status();
    if (!before.allows) throw refusal();
    // What was left closed is an intent like any other here: whoever removes reopens it.
    refuseClosed([before], 0, refusal);
    const { position } = await this.repository.transact(use, contextOf(), this.name, begin);
    if (this.fault === 'look' || (await mayHang(this.store, [await this.status()], position))) return;
    await this.repository.transact(use, contextOf(), this.name, end);
    throw refusal();
  }

  private async remove(uses: readonly string[]): Promise<void> {
    const { clock } = this.world;
    const decide = (decision: Decision<ThingState, ThingEvent>, context: RequestContext) => this.repository.transact(thing, context, 'it', decision);
    const context = contextOf();
    const hasIntent = this.fault !== 'intent';
    await narrow(context, clock, {
      refusal,
      close: async (intent) => {
        if (!hasIntent) return START;
        const { state, position } = await decide(({ closings, lives }) => {
          if (!lives) throw refusal();
          return closingOf('thing', closings?.it, { id: 'it', intent, now: clock.now() });
        }, context);
        return state.closings?.it?.intent === intent ? position : null;
      },
      // Whoever looks here reads the log itself.
      reached: async () => {},
      isUsed: async () => {
        for (const name of uses) if (await this.repository.load(use, ENVIRONMENT, name)) return true;
        return false;
      },
      change: async (intent) => {
        const { facts } = await decide(({ closings, lives }) => {
          if (!lives || (hasIntent && closings?.it?.intent !== intent)) throw refusal();
          return [{ type: 'thing.deleted', data: { id: 'it' } }];
        }, context);
        return facts.length > 0 ? true : null;
      },
      reopen: (intent) => decide(({ closings }) => reopeningOf('thing', closings?.it, 'it', intent), contextOf()).then(() => {}),
    });
  }

  /** Hears everything, each record twice, as one does that died after it and began again. */
  private async follow(uses: readonly string[]): Promise<void> {
    const { world, store } = this;
    const nameOf = ({ stream }: RecordedEvent): string => uses.find((name) => useStream(name) === stream)!;
    const reaction = undoWhatMayNotHang(
      'spec',
      ['thing'],
      [
        {
          begins: ['use.begun'],
          hangsOn: async () => [{ id: 'it', allows: (await this.repository.load(thing, ENVIRONMENT, 'it')).lives }],
          undo: (event) => this.repository.transact(use, contextOf(), nameOf(event), end),
        },
      ],
      { events: store, readModels: world.readModels(), positions: { reached: async () => {} }, clock: world.clock },
    );
    for (;;) {
      await store.park(
        'hear',
        () => {},
        () => '',
      );
      const event = world.records[this.heard]!;
      for (let time = 0; time < 2; time++) if (reaction.handles.includes(event.type)) await reaction.react(event);
      this.heard++;
    }
  }

  private async status(): Promise<ParentStatus> {
    const records = await this.store.read(THING);
    const state = records.reduce((before, record) => thing.evolve(before, toFolded<ThingEvent>(record)), thing.initial);
    const closing = state.closings?.it ?? null;
    // An intent that anybody meets was abandoned: here it is refused all the same.
    const open = closing === null ? null : { ...closing, at: new Date(CREATED_AT).toISOString() };
    return { stream: THING, id: 'it', allows: state.lives, closing: open, since: records.at(-1)?.position ?? START };
  }
}

function contextOf(): RequestContext {
  const commandId = newCommandId(CREATED_AT);
  return { environment: ENVIRONMENT, actor: { id: 'spec', source: 'system', name: null }, requestId: commandId, commandId, deadline: Infinity, receipt: {} };
}

/** Who takes part, by the first letter of what they do: `C`reators, `R`emovers. */
class Run {
  readonly world = new World();
  readonly processes: readonly Process[];

  constructor(parts: readonly Role[], fault?: Fault) {
    const all: readonly Role[] = fault === 'reaction' ? parts : [...parts, 'reaction'];
    this.processes = all.map((role, index) => new Process(this.world, role, `${role}${index}`, fault));
    const uses = this.creators.map(({ name }) => name);
    for (const process of this.processes) process.start(uses);
  }

  async step(index: number): Promise<void> {
    const process = this.processes[index]!;
    process.store.waiting!.proceed();
    // Nothing but promises lies between two calls of a process.
    await settled();
    if (process.failure !== null) throw process.failure as Error;
  }

  /** The reaction hears what there is. */
  get movable(): readonly number[] {
    return this.processes.flatMap(({ store, heard }, index) =>
      store.waiting === null || (store.waiting.call === 'hear' && heard === this.world.records.length) ? [] : [index],
    );
  }

  get state(): string {
    return JSON.stringify([this.world.records.map(({ type, stream }) => `${type} ${stream}`), this.processes.map(({ place }) => place)]);
  }

  /** What may never be, whoever never moves again from here. */
  get badness(): string | null {
    const { world, creators } = this;
    const reaction = this.processes.find(({ role }) => role === 'reaction');
    const isRemoved = this.processes.some(({ role, outcome }) => role === 'remover' && outcome === 'done');
    for (const { name, outcome } of creators) {
      if (outcome === 'done' && isRemoved) return 'both were told that it is done';
      if (outcome === 'done' && !world.isUsed(name)) return 'what was answered was taken back';
      const place = world.records.findIndex(({ stream }) => stream === useStream(name));
      const isLookedAt = reaction === undefined || (place !== -1 && reaction.heard > place);
      if (isLookedAt && isRemoved && world.isUsed(name)) return 'something hangs on what is gone';
    }
    return null;
  }

  private get creators(): readonly Process[] {
    return this.processes.filter(({ role }) => role === 'creator');
  }
}

interface Walk {
  readonly states: number;
  readonly bad: string | null;
  /** How the processes ended that came to an end, in any order of steps. */
  readonly ends: ReadonlySet<string>;
}

/** Every run goes on to its end, and leaves the other ways to go for later; which way comes first is drawn, the same in every test run. */
async function walk(parts: readonly Role[], { states = Infinity, fault }: { readonly states?: number; readonly fault?: Fault } = {}): Promise<Walk> {
  const seen = new Set<string>();
  const ends = new Set<string>();
  const draw = seededNumbers(6);
  const open: (readonly number[])[] = [[]];
  while (open.length > 0 && seen.size < states) {
    const [prefix] = open.splice(draw(open.length), 1) as [readonly number[]];
    const run = new Run(parts, fault);
    await settled();
    const schedule: number[] = [];
    for (const index of prefix) {
      await run.step(index);
      schedule.push(index);
    }
    while (!seen.has(run.state)) {
      seen.add(run.state);
      if (run.badness !== null) return { states: seen.size, bad: `${run.badness}: ${run.state}`, ends };
      const ways = [...run.movable];
      if (ways.length === 0) {
        ends.add(run.processes.map(({ outcome }) => outcome).join());
        break;
      }
      const [next] = ways.splice(draw(ways.length), 1) as [number];
      for (const way of ways) open.push([...schedule, way]);
      await run.step(next);
      schedule.push(next);
    }
  }
  return { states: seen.size, bad: null, ends };
}

describe('what something hangs on, in every order of steps', () => {
  it.each<readonly [string, readonly Role[], number]>([
    ['a creator and a remover', ['creator', 'remover'], Infinity],
    ['a creator and two removers, of which each ends the intent of the other', ['creator', 'remover', 'remover'], SAMPLE],
    ['two creators and a remover', ['creator', 'creator', 'remover'], SAMPLE],
  ])(
    'is not taken away beside it: %s',
    async (_, parts, states) => {
      const walked = await walk(parts, { states });
      expect(walked.bad).toBeNull();
      // Each of them gets its way in some order.
      expect([...walked.ends].some((ends) => ends.startsWith('done'))).toBe(true);
      expect([...walked.ends].some((ends) => ends.startsWith('refused') && ends.includes('done'))).toBe(true);
    },
    LONGEST_WALK,
  );

  it.each<readonly [Fault, string]>([
    ['look', 'both were told that it is done'],
    ['intent', 'both were told that it is done'],
    ['reaction', 'something hangs on what is gone'],
  ])('would be without the %s', async (fault, bad) => {
    const walked = await walk(['creator', 'remover'], { fault });
    expect(walked.bad).toContain(bad);
  });
});
