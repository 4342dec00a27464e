import { setImmediate as settled } from 'node:timers/promises';
import { createSecretKey } from 'node:crypto';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import { newCommandId } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { isEverythingWanted, seededNumbers } from '#libs/testing/src/seed';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { Decider, Decision, Fact } from './decider.ts';
import { EventStore, START, WrongVersion, type Append, type Appended, type NewEvent, type RecordedEvent } from '../log/event-store.ts';
import { LogRepository } from './log.repository.ts';
import { Naming } from '../log/naming.ts';

/**
 * Walks every order in which the steps of several processes can happen that take and drop one claimed value, with the repository itself: each call to the store
 * waits until the walk lets it proceed. A crash is a process that never moves again, so it needs no step of its own.
 */

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const CREATED_AT = Date.parse('2026-01-15T12:00:00.000Z');
const naming = new Naming(createSecretKey(Buffer.alloc(32, 1)));
const claimStream = naming.claimStream(ENVIRONMENT, 'thing.value', 'it');

type Operation = 'take' | 'drop';
type Script = readonly [owner: string, operations: readonly Operation[]];
type ThingEvent = Fact<'thing.taken' | 'thing.dropped', null>;

const thing: Decider<boolean, ThingEvent> = {
  category: 'thing',
  foldVersion: 1,
  initial: false,
  sealed: { 'thing.taken': null, 'thing.dropped': null },
  evolve: (_holds, { type }) => type === 'thing.taken',
  claims: (holds) => (holds ? [{ kind: 'thing.value', value: 'it', refusal: () => new DomainError('conflict', 'thing_taken', 'Somebody has it.') }] : []),
  toPublicEvent: () => null,
};

const decisions: Readonly<Record<Operation, Decision<boolean, ThingEvent>>> = {
  take: (holds) => (holds ? [] : [{ type: 'thing.taken', data: null }]),
  drop: (holds) => (holds ? [{ type: 'thing.dropped', data: null }] : []),
};

/** Every reading by any process is minutes after the one before, so that no rival is waited for: the protocol must be safe without. */
class LeapingClock extends Clock {
  private time = CREATED_AT;
  now(): number {
    return (this.time += 60_000);
  }
}

/** Three processes have a million states and more: enough of them that the planted faults are found, or as many as a quarter of an hour has. */
const SAMPLE = isEverythingWanted() ? 150_000 : 3_000;
const LONGEST_WALK = isEverythingWanted() ? 3_600_000 : 240_000;
/** An attempt has six steps at most, and a conflict that somebody left behind costs another attempt. */
const LONGEST_ALONE = 12;

/** What a faulty repository would leave out. */
type Fault = 'fence of an owner that moved on' | 'claim that is ours already';

/** The streams that all processes share. */
class World {
  readonly clock = new LeapingClock();
  readonly streams = new Map<string, RecordedEvent[]>();
  /** The version of the owner's stream that the last claim was taken on. */
  claimedAt = 0;

  of(stream: string): readonly RecordedEvent[] {
    return this.streams.get(stream) ?? [];
  }

  holds(owner: string): boolean {
    return this.of(streamOf(owner)).reduce((holds, { type }) => (type.startsWith('thing.') ? type === 'thing.taken' : holds), false);
  }

  append(stream: string, expected: number, events: readonly NewEvent[]): Appended {
    const records = this.streams.get(stream) ?? [];
    if (records.length !== expected) throw new WrongVersion(stream, expected);
    for (const event of events) records.push({ ...event, stream, version: records.length + 1, position: START });
    this.streams.set(stream, records);
    return { version: records.length, position: START };
  }
}

/** The store as one process has it: every call waits. */
class ParkedStore extends EventStore {
  waiting: { readonly call: string; readonly proceed: () => unknown } | null = null;
  /** What the process knows in its present attempt, which begins when it reads its own stream: with the call that waits, all that decides what it does next. */
  known: unknown[] = [];
  private version = 0;
  private readonly fault: Fault | undefined;
  private readonly isOnePlace: boolean;

  constructor(
    private readonly world: World,
    private readonly owner: string,
    { fault, isOnePlace = false }: Pick<Bounds, 'fault' | 'isOnePlace'>,
  ) {
    super();
    this.fault = fault;
    this.isOnePlace = isOnePlace;
  }

  read(stream: string, from = 1): Promise<readonly RecordedEvent[]> {
    const isOwn = stream === streamOf(this.owner);
    if (isOwn) this.known = [];
    return this.park(`read ${stream}`, () => {
      const records = this.world.of(stream).slice(from - 1);
      if (isOwn) this.version = records.length;
      this.known.push([records.length, this.world.holds(stream.split('-').at(-1)!)]);
      return records;
    });
  }

  readBackwards(): Promise<never> {
    throw new Error('No command of these is asked for again.');
  }

  last(stream: string): Promise<RecordedEvent | null> {
    return this.park(`last ${stream}`, () => {
      const records = this.world.of(stream);
      this.known.push([records.length, ownerOf(records)]);
      return records.at(-1) ?? null;
    });
  }

  append(stream: string, expected: number, events: readonly NewEvent[]): Promise<Appended> {
    const type = events[0]!.type;
    return this.park(`${type} ${stream} ${expected}`, () => {
      const left = { version: expected, position: START };
      if (this.fault === 'fence of an owner that moved on' && type === 'claim.fenced' && expected !== this.world.claimedAt) return left;
      if (this.fault === 'claim that is ours already' && type === 'claim.taken' && ownerOf(this.world.of(stream).slice(0, expected)) === this.owner)
        return left;
      const appended = this.world.append(stream, expected, events);
      if (type === 'claim.taken') this.world.claimedAt = this.version;
      this.known.push('done');
      return appended;
    });
  }

  override get appendsTogether(): boolean {
    return this.isOnePlace;
  }

  override appendTogether(appends: readonly Append[]): Promise<readonly Appended[]> {
    return this.park(`together ${appends.map(({ stream, expectedVersion }) => `${stream} ${expectedVersion}`).join(', ')}`, () => {
      const outrun = appends.find(({ stream, expectedVersion }) => this.world.of(stream).length !== expectedVersion);
      if (outrun !== undefined) throw new WrongVersion(outrun.stream, outrun.expectedVersion);
      const appended = appends.map((each) => this.world.append(each.stream, each.expectedVersion, each.events));
      this.world.claimedAt = this.version;
      this.known.push('done');
      return appended;
    });
  }

  head(): Promise<never> {
    throw new Error('The repository does not ask for the head.');
  }

  subscribe(): never {
    throw new Error('The repository does not subscribe.');
  }

  private park<T>(call: string, act: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.waiting = {
        call,
        proceed: () => {
          this.waiting = null;
          try {
            resolve(act());
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        },
      };
    });
  }
}

/** A process that carries out its script, step by step. */
class Process {
  readonly store: ParkedStore;
  /** How its operations ended. */
  readonly outcomes: ('done' | 'refused')[] = [];
  failure: unknown = null;

  constructor(
    private readonly world: World,
    readonly owner: string,
    private readonly operations: readonly Operation[],
    ways: Pick<Bounds, 'fault' | 'isOnePlace'>,
  ) {
    this.store = new ParkedStore(world, owner, ways);
  }

  start(): void {
    const log = new PinoLog({ level: 'silent', readable: false });
    // No view is kept, so no table is ever opened.
    const repository = new LogRepository(this.store, null as unknown as ReadModels, naming, this.world.clock, log);
    const run = async (): Promise<void> => {
      for (const operation of this.operations) {
        try {
          await repository.transact(thing, contextOf(), this.owner, decisions[operation]);
          this.outcomes.push('done');
        } catch (error) {
          if (!(error instanceof DomainError && error.code === 'thing_taken')) throw error;
          this.outcomes.push('refused');
        }
      }
    };
    run().catch((error: unknown) => (this.failure = error));
  }

  get place(): string {
    const { waiting, known } = this.store;
    return JSON.stringify([this.outcomes.length, waiting?.call, known]);
  }
}

function contextOf(): RequestContext {
  const commandId = newCommandId(CREATED_AT);
  return { environment: ENVIRONMENT, actor: { id: 'spec', source: 'system', name: null }, requestId: commandId, commandId, deadline: Infinity, receipt: {} };
}

function streamOf(owner: string): string {
  return `thing-${ENVIRONMENT}-${owner}`;
}

function ownerOf(records: readonly RecordedEvent[]): string | null {
  return (records.at(-1)?.data as { key: string } | undefined)?.key ?? null;
}

/** One run from the beginning, along a schedule. */
class Run {
  readonly world = new World();
  readonly processes: readonly Process[];

  constructor(scripts: readonly Script[], ways: Pick<Bounds, 'fault' | 'isOnePlace'>) {
    this.processes = scripts.map(([owner, operations]) => new Process(this.world, owner, operations, ways));
    for (const process of this.processes) process.start();
  }

  async step(index: number): Promise<void> {
    this.processes[index]!.store.waiting!.proceed();
    // Nothing but promises lies between two calls of a process.
    await settled();
    const { failure } = this.processes[index]!;
    if (failure !== null) throw failure as Error;
  }

  get movable(): readonly number[] {
    return this.processes.flatMap(({ store }, index) => (store.waiting === null ? [] : [index]));
  }

  get holders(): readonly string[] {
    return [...new Set(this.processes.map(({ owner }) => owner))].filter((owner) => this.world.holds(owner));
  }

  get longest(): number {
    return Math.max(0, ...[...this.world.streams.values()].map(({ length }) => length));
  }

  /** Two runs in the same state go on in the same way. */
  get state(): string {
    const streams = [...new Set(this.processes.map(({ owner }) => owner))].map((owner) => [this.world.of(streamOf(owner)).length, this.world.holds(owner)]);
    const claim = this.world.of(claimStream);
    return JSON.stringify([streams, claim.length, ownerOf(claim), this.world.claimedAt, this.processes.map(({ place }) => place)]);
  }
}

interface Edge {
  readonly to: string;
  /** The operation that this step ended. */
  readonly ended: boolean;
}

interface Walk {
  readonly states: number;
  /** The schedule that leads to two holders, if any does. */
  readonly twoHolders: readonly number[] | null;
  /** From every state, the steps of each process. */
  readonly graph: ReadonlyMap<string, ReadonlyMap<number, Edge>>;
}

interface Bounds {
  /** No stream grows longer. */
  readonly longest: number;
  /** So many states at most, where all are too many for a test that runs every day. */
  readonly states?: number;
  readonly fault?: Fault | undefined;
  /** Claims are recorded together with the facts. */
  readonly isOnePlace?: boolean;
}

/** Every run goes on to its end, and leaves the other ways to go for later; which way comes first is drawn, the same in every test run. */
async function walk(scripts: readonly Script[], { longest, states = Infinity, ...ways }: Bounds): Promise<Walk> {
  const graph = new Map<string, Map<number, Edge>>();
  const draw = seededNumbers(6);
  const open: (readonly number[])[] = [[]];
  while (open.length > 0 && graph.size < states) {
    const [prefix] = open.splice(draw(open.length), 1) as [readonly number[]];
    const run = new Run(scripts, ways);
    await settled();
    for (const index of prefix.slice(0, -1)) await run.step(index);
    const schedule = prefix.slice(0, -1);
    let next = prefix.at(-1);
    for (let from = run.state; ; next = undefined) {
      let edges = graph.get(from);
      if (edges === undefined) {
        graph.set(from, (edges = new Map<number, Edge>()));
        if (run.holders.length > 1) return { states: graph.size, twoHolders: schedule, graph };
        if (run.longest > longest) break;
        const ways = [...run.movable];
        [next] = ways.splice(draw(ways.length), 1);
        for (const way of ways) open.push([...schedule, way]);
      }
      if (next === undefined || edges.has(next)) break;
      const { outcomes } = run.processes[next]!;
      const before = outcomes.length;
      await run.step(next);
      schedule.push(next);
      expectFair(run, next, before);
      const to = run.state;
      edges.set(next, { to, ended: outcomes.length > before });
      from = to;
    }
  }
  return { states: graph.size, twoHolders: null, graph };
}

/** A refusal names somebody who holds the value; whoever took it holds it. */
function expectFair(run: Run, index: number, before: number): void {
  const { outcomes, owner } = run.processes[index]!;
  if (outcomes.length === before) return;
  if (outcomes.at(-1) === 'refused' && run.holders.every((holder) => holder === owner))
    throw new Error(`${owner} was refused, and nobody else holds the value.`);
}

/** The most steps that any process needs to end its operation when, from some state on, nobody else moves. */
function longestAlone({ graph }: Walk): number {
  let longest = 0;
  for (const [from, edges] of graph)
    for (const index of edges.keys()) {
      let steps = 0;
      for (let at = from; ; steps++) {
        const edge = graph.get(at)?.get(index);
        // Beyond the bound of the walk.
        if (edge === undefined || edge.ended) break;
        if (steps > 100) return Infinity;
        at = edge.to;
      }
      longest = Math.max(longest, steps + 1);
    }
  return longest;
}

const RETAKING: Script = ['A', ['take', 'drop', 'take']];
const A: Script = ['A', ['take']];
const B: Script = ['B', ['take']];
const TWO_OF_ONE_OWNER: readonly Script[] = [['A', ['take', 'drop']], A, B];

describe('a claimed value, in every order of steps', () => {
  it.each<[string, readonly Script[], Bounds]>([
    ['two rivals', [A, B], { longest: 6 }],
    ['three rivals', [A, B, ['C', ['take']]], { longest: 5, states: SAMPLE }],
    ['taking, dropping and taking again against a rival', [RETAKING, B], { longest: 6 }],
    ['two processes of one owner against a rival', TWO_OF_ONE_OWNER, { longest: 5, states: SAMPLE }],
    ['both dropping and taking again', [RETAKING, ['B', ['take', 'drop', 'take']]], { longest: 8, states: 2 * SAMPLE }],
  ])(
    'has one holder, and whoever runs alone takes it or meets the holder: %s',
    async (_, scripts, bounds) => {
      for (const isOnePlace of [false, true]) {
        const walked = await walk(scripts, { ...bounds, isOnePlace });
        expect(walked.twoHolders).toBeNull();
        expect(longestAlone(walked)).toBeLessThanOrEqual(LONGEST_ALONE);
      }
    },
    LONGEST_WALK,
  );

  it.each<Fault>(['fence of an owner that moved on', 'claim that is ours already'])(
    'would have two holders without the %s',
    async (fault) => {
      const { twoHolders } = await walk(TWO_OF_ONE_OWNER, { longest: 6, states: 6 * SAMPLE, fault });
      expect(twoHolders).not.toBeNull();
    },
    LONGEST_WALK,
  );
});
