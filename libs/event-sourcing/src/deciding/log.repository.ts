import { setTimeout as pause } from 'node:timers/promises';
import { isAdministrative } from '#libs/contracts/src/administration';
import type { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { derivedId, newUlid } from '#libs/platform/src/ids';
import type { Log } from '#libs/platform/src/log';
import type { Origin, RequestContext } from '#libs/platform/src/request-context';
import { shortened } from '#libs/platform/src/shortened';
import type { ReadModels, Table, Write } from '#libs/read-models/src/read-models';
import { appendBytes } from '../log/append-bytes.ts';
import {
  AppendTooLarge,
  MAX_APPEND_BYTES,
  WrongVersion,
  type Append,
  type Appended,
  type EventMeta,
  type EventStore,
  type NewEvent,
  type Position,
  type RecordedEvent,
  START,
} from '../log/event-store.ts';
import { streamName, type Naming } from '../log/naming.ts';
import { upcast, writtenShape } from '../log/upcasts.ts';
import { isProtocol, SKIPPED } from '../log/protocol.ts';
import type { ReadYourWrites } from '../views/read-your-writes.ts';
import { StoppedViews } from '../views/stopped-views.ts';
import { tableOf, type PrimaryView } from '../views/view.ts';
import type { Claim, Decider, Decision, Fact } from './decider.ts';
import { DECIDED, decisionContext, evolved, metaOf, momentOf } from './records.ts';
import { mayHaveRun, outcomeUnknown, recordedCalls } from './repeats.ts';
import { IDS_PER_TRANSACT, Repository, type Transacted } from './repository.ts';
import { sealedPartsOf } from '../sealing/declared-sealing.ts';
import { HolderErased } from '../sealing/key-store.ts';

/** What four characters of base 32 can number. */
const IDS = 2 ** 20;
const ORDINAL_LENGTH = 4;
/** A claim older than this belongs to no append that is still on its way: its rival need not wait. */
const SETTLED = 30_000;
/** As recorded with administration. */
const MAX_USER_AGENT = 500;
/** One after the other, the claims of several hundred domains would take longer than what was decided may be old. */
const CLAIMS_AT_ONCE = 64;

interface Loaded<State> {
  readonly state: State;
  readonly version: number;
  readonly position: Position;
}

interface Read<State> extends Loaded<State> {
  /** What was read of the stream: all that is newer than the row, and than what was met before. */
  readonly recorded: readonly RecordedEvent[];
  /** Some of it may not be shown yet: the row is older, or not there, or lies under another key than the stream's. */
  readonly isRowLate: boolean;
}

interface ClaimOwner {
  readonly category: string;
  readonly key: string;
}

interface WantedClaim {
  readonly claim: Claim;
  /** Where another holds it, the change goes on. */
  readonly mayBeHeld: boolean;
}

interface ClaimEnd extends WantedClaim {
  readonly stream: string;
  readonly version: number;
  /** The key of whom it names. */
  readonly owner: string | null;
  readonly mayBeOnItsWay: boolean;
}

/** The owner that claims name, and which of them it holds. */
interface Met {
  readonly rival: string;
  readonly version: number;
  readonly loaded: Read<unknown>;
  readonly named: readonly ClaimEnd[];
  readonly held: readonly ClaimEnd[];
}

/** The rows that `transact` writes at once. */
interface PrimaryRows {
  readonly name: string;
  readonly view: PrimaryView<unknown, Fact>;
  readonly table: Table<unknown>;
}

/** The repository on the log: the steps of a write in the order that makes them safe. */
export class LogRepository extends Repository {
  private readonly primaries = new Map<string, PrimaryRows>();

  constructor(
    private readonly events: EventStore,
    private readonly readModels: ReadModels,
    private readonly naming: Naming,
    private readonly clock: Clock,
    private readonly log: Log,
    /** Rows that do not say what the log says are no states: nothing may be decided on them. */
    private readonly stopped = new StoppedViews(),
    private readonly awaited: Pick<ReadYourWrites, 'waitForViews'> | null = null,
  ) {
    super();
  }

  registerPrimaryView<State, Event extends Fact, Row extends State>(view: PrimaryView<State, Event, Row>): void {
    const definition = tableOf(view);
    this.primaries.set(view.decider.category, { name: definition.name, view: view as never, table: this.readModels.table(definition) as Table<unknown> });
  }

  async transact<State, Event extends Fact, Written extends Fact = Event>(
    decider: Decider<State, Event, Written>,
    context: RequestContext,
    key: string,
    decide: Decision<State, Written>,
  ): Promise<Transacted<State, Event>> {
    const { environment, receipt } = context;
    const firstId = (receipt.transacts ?? 0) * IDS_PER_TRANSACT;
    if (firstId >= IDS) throw new RangeError('One command asks too many aggregates, or another after one that yielded more facts than it may.');
    receipt.transacts = (receipt.transacts ?? 0) + 1;
    const stream = streamName(decider.category, environment, key);
    let isNewborn = firstId === 0 && isOfThisCommand(context, key);
    let isRowBelieved = true;
    for (let met: number | null = null; ;) {
      refuseLate(context, this.clock.now());
      const began = performance.now();
      const isTakenForNew = isNewborn;
      isNewborn = false;
      const loaded: Read<State> = isTakenForNew
        ? { state: decider.initial, version: 0, position: START, recorded: [], isRowLate: false }
        : await this.loadLatest(decider, environment, key, { met, isRowBelieved });
      const done = await this.recordsOf(context, { stream, firstId, met, loaded });
      if (done.length > 0) return this.unchanged(decider, context, loaded, { unseen: done, isRepeat: true });
      const isOutrun = met !== null;
      const at = momentOf(context.commandId, this.clock.now());
      const decided = attempted(() => decide(loaded.state, decisionContext(context, at)), isTakenForNew);
      // Only the version of an append says that nothing was there.
      if (decided === null || (isTakenForNew && decided.length === 0)) continue;
      met = loaded.version;
      if (decided.length === 0)
        return this.unchanged(decider, context, loaded, { unseen: isOutrun || loaded.isRowLate ? loaded.recorded : [], isRepeat: false });
      // Ids of a later aggregate of this command would meet ours.
      if (decided.length > IDS_PER_TRANSACT) receipt.transacts = Infinity;
      try {
        // Before anything is claimed for what is too much.
        const { facts, states, events } = atOnce(decider, stream, recordsOf(decider, { key, ...loaded }, decided, { context, at, firstId }));
        const state = states.at(-1)!;
        const claims = decider.claims === undefined ? [] : await this.takeClaims(decider, context, key, decider.claims(loaded.state), decider.claims(state));
        // Nobody may wait for it any more, or have been told meanwhile that nothing happened.
        refuseLate(context, this.clock.now());
        if (performance.now() - began > DECIDED) continue;
        const { position, version } = await this.append(claims, { stream, expectedVersion: loaded.version, events });
        receipt.position = position;
        const late = await this.writeRows(decider.category, environment, key, { facts, states }, { position, version });
        await this.awaited?.waitForViews(facts, position, late);
        return { state, facts, position, version, isRepeat: false };
      } catch (error) {
        // Rows forget a moment later than the log; where the command itself brought what is personal, it is refused the second time too.
        if (error instanceof HolderErased && isRowBelieved) {
          isRowBelieved = false;
          continue;
        }
        if (error instanceof AppendTooLarge && context.actor.source !== 'system') throw tooMuchAtOnce();
        if (!(error instanceof WrongVersion)) throw error;
      }
    }
  }

  private async append(claims: readonly Append[], facts: Append): Promise<Appended> {
    if (claims.length === 0) return this.events.append(facts.stream, facts.expectedVersion, facts.events);
    return (await this.events.appendTogether([...claims, facts])).at(-1)!;
  }

  async load<State, Event extends Fact>(decider: Decider<State, Event, Fact>, environment: string, key: string): Promise<State> {
    return (await this.loadLatest(decider, environment, key)).state;
  }

  /**
   * What the stream has of this very call, if it was carried out before. Looks for it once, where that can be; whatever comes later meets the version of the stream, and
   * is read then.
   */
  private async recordsOf(
    context: RequestContext,
    { stream, firstId, met, loaded }: { readonly stream: string; readonly firstId: number; readonly met: number | null; readonly loaded: Read<unknown> },
  ): Promise<readonly RecordedEvent[]> {
    const call = { context, firstId: derivedId(context.commandId, firstId) };
    const { recorded, version } = loaded;
    if (recorded.some(({ id }) => id === call.firstId)) return recorded.filter(({ meta }) => meta.commandId === context.commandId);
    if (met !== null || !mayHaveRun(context)) return [];
    const upTo = (recorded[0]?.version ?? version + 1) - 1;
    const { records, unknown } = await recordedCalls({ events: this.events, clock: this.clock }, stream, { calls: [call], upTo });
    if (unknown.size > 0) throw outcomeUnknown();
    return records.get(call.firstId) ?? [];
  }

  /** What is answered is seen by every later request, whoever recorded it. */
  private async unchanged<State, Event extends Fact>(
    { category }: Decider<State, Event, Fact>,
    { receipt }: RequestContext,
    { state, position, version }: Loaded<State>,
    { unseen, isRepeat }: { readonly unseen: readonly RecordedEvent[]; readonly isRepeat: boolean },
  ): Promise<Transacted<State, Event>> {
    receipt.position = position;
    if (unseen.length > 0) await this.awaited?.waitForViews(unseen, position, this.primaries.get(category)?.view.name ?? null);
    return { state, facts: [], position, version, isRepeat };
  }

  /** The row, where there is one, and what its stream has recorded since, and since `met`. */
  private async loadLatest<State, Event extends Fact>(
    decider: Decider<State, Event, Fact>,
    environment: string,
    key: string,
    { met = null, isRowBelieved = true }: { readonly met?: number | null; readonly isRowBelieved?: boolean } = {},
  ): Promise<Read<State>> {
    const primary = this.primaries.get(decider.category);
    const hasRows = isRowBelieved && primary !== undefined && primary.view.rowIdOf === null && this.stopped.isTrue(primary.name);
    const row = hasRows ? await primary.table.get(environment, key) : null;
    const base: Loaded<State> =
      row === null
        ? { state: decider.initial, version: 0, position: START }
        : { state: JSON.parse(row.text) as State, version: row.revision, position: row.position };
    const recorded = await this.events.read(streamName(decider.category, environment, key), Math.min(base.version, met ?? base.version) + 1);
    const news = recorded.filter(({ version }) => version > base.version);
    return { ...fold(decider, base, news), recorded, isRowLate: news.length > 0 };
  }

  /** After the append nothing may change the answer: answers the view whose rows could not be written, which the projector brings along. */
  private async writeRows(
    category: string,
    environment: string,
    key: string,
    { facts, states }: { readonly facts: readonly Fact[]; readonly states: readonly unknown[] },
    { position, version }: Appended,
  ): Promise<string | null> {
    const primary = this.primaries.get(category);
    if (primary === undefined) return null;
    const { view, table } = primary;
    try {
      // What is the last that is said of each row.
      const last = new Map<string, number>();
      for (const [index, { type, data }] of facts.entries())
        if (view.rowIdOf === null) last.set(key, index);
        else if (view.handles.includes(type)) last.set(view.rowIdOf(data), index);
      const writes = [...last].map(([id, index]): Write => {
        const row = view.rowOf(states[index]);
        const text = row === null ? null : (view.serialise?.(row) ?? JSON.stringify(row));
        return { environment, id, position, revision: version - facts.length + 1 + index, text, row };
      });
      await table.write(writes);
      return null;
    } catch (error) {
      this.log.warn('A row was not written with its event; the projector writes it.', { view: view.name, error });
      return view.name;
    }
  }

  /**
   * Makes sure that nobody else holds, or can come to hold, what the new state takes. Safe in every interleaving of pauses and crashes: a rival whose append may
   * be on its way is fenced, and the claim is recorded anew at every attempt, also where it is ours already. Answers what is still to be recorded, together with the facts:
   * where the log takes several streams at once, that is as good as before them, and one flush less.
   */
  private async takeClaims<State, Event extends Fact>(
    decider: Decider<State, Event, Fact>,
    context: RequestContext,
    key: string,
    before: readonly Claim[],
    after: readonly Claim[],
  ): Promise<readonly Append[]> {
    const held = new Map(before.map((claim) => [nameOf(claim), claim]));
    const wanted = new Map<string, WantedClaim>();
    for (const claim of after) {
      const earlier = held.get(nameOf(claim));
      const isNew = earlier === undefined || (earlier.mayBeUnclaimed === true && !claim.mayBeUnclaimed);
      if (isNew || claim.mayBeUnclaimed) wanted.set(nameOf(claim), { claim, mayBeHeld: !isNew });
    }
    const all = [...wanted.values()];
    // A rival that is named by claims of several parts is fenced for each of them.
    if (all.length <= CLAIMS_AT_ONCE)
      return this.events.appendsTogether ? (await this.claimed(decider, context, key, all)).flat() : this.take(decider, context, key, all);
    for (let from = 0; from < all.length; from += CLAIMS_AT_ONCE) await this.take(decider, context, key, all.slice(from, from + CLAIMS_AT_ONCE));
    return [];
  }

  /** One step after the other; nothing is left to be recorded. */
  private async take<State, Event extends Fact>(
    decider: Decider<State, Event, Fact>,
    context: RequestContext,
    key: string,
    wanted: readonly WantedClaim[],
  ): Promise<readonly Append[]> {
    for (const step of await this.claimed(decider, context, key, wanted))
      await allOf(step.map(({ stream, expectedVersion, events }) => this.events.append(stream, expectedVersion, events)));
    return [];
  }

  /**
   * For each claim in this order: its end is read, then whom it names, who is to be fenced, then it is to be recorded: the two steps that are answered. Side by side, and a
   * rival once for all that name it.
   */
  private async claimed<State, Event extends Fact>(
    decider: Decider<State, Event, Fact>,
    context: RequestContext,
    key: string,
    wanted: readonly WantedClaim[],
  ): Promise<readonly [fences: readonly Append[], claims: readonly Append[]]> {
    const ends = await allOf(wanted.map((one) => this.endOf(decider, context.environment, one)));
    const rivals = new Map<string, ClaimEnd[]>();
    for (const end of ends) if (end.owner !== null && end.owner !== key) rivals.set(end.owner, [...(rivals.get(end.owner) ?? []), end]);
    const met = await allOf([...rivals].map(([rival, named]) => this.met(decider, context.environment, rival, named)));
    const held = new Set(met.flatMap((rival) => rival.held));
    const refused = ends.find((end) => held.has(end) && !end.mayBeHeld);
    if (refused !== undefined) {
      await this.shown(
        decider.category,
        met.map((rival) => rival.loaded),
      );
      throw refused.claim.refusal() satisfies DomainError;
    }
    const fenced = met.filter((rival) => rival.held.length < rival.named.length);
    const owner: ClaimOwner = { category: decider.category, key };
    const recorded = (stream: string, expectedVersion: number, type: string, data: unknown): Append => ({
      stream,
      expectedVersion,
      events: [protocolRecord(type, data, context, this.clock.now())],
    });
    return [
      fenced.map(({ rival, version }) => recorded(streamName(decider.category, context.environment, rival), version, 'claim.fenced', {})),
      ends.filter((end) => !held.has(end)).map(({ stream, version }) => recorded(stream, version, 'claim.taken', owner)),
    ];
  }

  /** Whoever is refused because another holds a value finds that one: its append may be on its way to the disk still, and is in no row then. */
  private async shown(category: string, rivals: readonly Read<unknown>[]): Promise<void> {
    const view = this.primaries.get(category)?.view.name ?? null;
    for (const { recorded, position, isRowLate } of rivals) if (isRowLate) await this.awaited?.waitForViews(recorded, position, view);
  }

  private async endOf<State, Event extends Fact>(decider: Decider<State, Event, Fact>, environment: string, wanted: WantedClaim): Promise<ClaimEnd> {
    const { kind, value } = wanted.claim;
    const stream = this.naming.claimStream(environment, kind, value);
    const end = await this.events.last(stream);
    const last = end?.type === SKIPPED ? await this.lastClaim(stream) : end;
    const owner = last?.data as ClaimOwner | undefined;
    if (owner !== undefined && owner.category !== decider.category)
      throw new Error(`${kind} is claimed by ${owner.category} and by ${decider.category}: a kind has one aggregate.`);
    const mayBeOnItsWay = last !== null && this.clock.now() - last.meta.at < SETTLED;
    return { ...wanted, stream, version: end?.version ?? 0, owner: owner?.key ?? null, mayBeOnItsWay };
  }

  /** Where an operator had the stream of a claim go on without what was last in it: what stands before that names the owner all the same. */
  private async lastClaim(stream: string): Promise<RecordedEvent | null> {
    return (await this.events.read(stream)).findLast(({ type }) => type !== SKIPPED) ?? null;
  }

  /** The owner that claims name, and which of them it holds. Whatever append it may have pending for the others is killed by a fence at this version. */
  private async met<State, Event extends Fact>(
    decider: Decider<State, Event, Fact>,
    environment: string,
    rival: string,
    named: readonly ClaimEnd[],
  ): Promise<Met> {
    const look = async (): Promise<Met> => {
      const loaded = await this.loadLatest(decider, environment, rival);
      const holds = new Set(decider.claims?.(loaded.state).map(nameOf));
      return { rival, version: loaded.version, loaded, named, held: named.filter(({ claim }) => holds.has(nameOf(claim))) };
    };
    const met = await look();
    if (!named.some((end) => end.mayBeOnItsWay && !met.held.includes(end))) return met;
    // Courtesy, not safety: most rivals that lost their claim meanwhile would only have to begin again.
    await pause(20 + Math.random() * 80);
    return look();
  }
}

/** Of several, those that are on their way are waited for also where one of them fails: none may arrive after another attempt has begun. */
async function allOf<Value>(running: readonly Promise<Value>[]): Promise<readonly Value[]> {
  await Promise.allSettled(running);
  return Promise.all(running);
}

function nameOf({ kind, value }: Claim): string {
  return `${kind} ${value}`;
}

/**
 * Whether an aggregate has an id that this very command made, which nobody was asked for before: nothing is recorded of it, and nothing has to be read to know that. What
 * follows from an event comes under the same ids again whenever that event does, and does not say so.
 */
function isOfThisCommand(context: RequestContext, key: string): boolean {
  const { commandId, actor } = context;
  return actor.source !== 'system' && !mayHaveRun(context) && key.endsWith(derivedId(commandId, 0).slice(0, -ORDINAL_LENGTH), key.length - ORDINAL_LENGTH);
}

/** Null where it throws and `mayFail`. */
function attempted<Answer>(ask: () => Answer, mayFail: boolean): Answer | null {
  try {
    return ask();
  } catch (error) {
    if (!mayFail) throw error;
    return null;
  }
}

/** @throws DomainError `service_unavailable` past the deadline */
function refuseLate({ deadline }: RequestContext, now: number): void {
  if (now > deadline) throw unavailable('Too many writes to the same object at once.');
}

function fold<State, Event extends Fact>(decider: Decider<State, Event, Fact>, base: Loaded<State>, events: readonly RecordedEvent[]): Loaded<State> {
  let { state, version, position } = base;
  for (const event of events) {
    if (!isProtocol(event.type)) state = evolved(decider, state, event);
    ({ version, position } = event);
  }
  return { state, version, position };
}

/** Sealing makes records longer. */
const FITS = 0.75 * MAX_APPEND_BYTES;

interface Records<State, Event> {
  /** As they are folded. */
  readonly facts: readonly Event[];
  readonly states: readonly State[];
  readonly events: readonly NewEvent[];
}

/** What of these facts is recorded at once: all, unless they are too much, and the last of them may follow. @throws AppendTooLarge */
function atOnce<State, Event extends Fact>(
  { mayFollow = [] }: Decider<State, Event, Fact>,
  stream: string,
  { facts, states, events }: Records<State, Event>,
): Records<State, Event> {
  // One alone is counted by the log.
  if (facts.length === 1) return { facts, states, events };
  const sizes = events.map((event) => appendBytes([event]));
  let total = sizes.reduce((sum, bytes) => sum + bytes, 0);
  let count = facts.length;
  while (total > FITS && count > 1 && mayFollow.includes(facts[count - 1]!.type)) total -= sizes[--count]!;
  if (total > MAX_APPEND_BYTES) throw new AppendTooLarge(stream, total);
  return { facts: facts.slice(0, count), states: states.slice(0, count), events: events.slice(0, count) };
}

function tooMuchAtOnce(): DomainError {
  return new DomainError(
    'invalid',
    'payload_too_large',
    'What this asks for is more than can be recorded at once; nothing happened: ask for less of it at a time.',
  );
}

/** The facts as records, each with what it announces, and the state after each of them. */
function recordsOf<State, Event extends Fact>(
  decider: Decider<State, Event, Fact>,
  { key, state: initial, version }: { readonly key: string; readonly state: State; readonly version: number },
  decided: readonly Fact[],
  { context, at, firstId }: { readonly context: RequestContext; readonly at: number; readonly firstId: number },
): Records<State, Event> {
  const moment = new Date(at).toISOString();
  const states: State[] = [];
  let state = initial;
  let nextPublicId = firstId;
  const facts = decided.map((fact) => asFolded(decider, fact));
  const events = facts.map((fact, index): NewEvent => {
    const before = state;
    const happened = { ...fact, at: moment, version: version + 1 + index };
    states.push((state = decider.evolve(before, happened)));
    const sealed = sealedPartsOf(decider.sealed, happened, { key, before, after: state });
    const publicEvent = decider.toPublicEvent(fact, before, state);
    const organization = decider.organization?.(state) ?? decider.organization?.(before);
    return {
      id: derivedId(context.commandId, firstId + index),
      type: fact.type,
      shape: writtenShape(decider, fact.type),
      data: decided[index]!.data,
      subject: publicEvent?.payload ?? null,
      public: publicEvent === null ? [] : publicEvent.names.map((name) => ({ id: `event_${derivedId(context.commandId, nextPublicId++)}`, name })),
      ...(sealed.length > 0 && { sealed }),
      meta: { ...metaOf(context, at, organization), ...(isAdministrative(fact.type) && originIn(context)) },
    };
  });
  return { facts, states, events };
}

/** It is personal, so nothing but administration is recorded with it. */
function originIn({ origin, connection }: RequestContext): Pick<EventMeta, 'origin'> {
  const from: Origin | undefined = origin ?? connection;
  if (from === undefined) return {};
  const { address, userAgent, operator } = from;
  return { origin: { address, userAgent: userAgent && shortened(userAgent, MAX_USER_AGENT), ...(operator !== undefined && { operator }) } };
}

/** A fact that is written in an earlier shape than is folded, as everybody will read it. */
function asFolded<State, Event extends Fact>(decider: Decider<State, Event, Fact>, fact: Fact): Event {
  const { data } = upcast({ data: fact.data, subject: null }, writtenShape(decider, fact.type), decider.upcasts?.[fact.type]);
  return { ...fact, data } as Event;
}

/** Has an id of its own at every attempt: it is never a repeat. */
function protocolRecord(type: string, data: unknown, context: RequestContext, now: number): NewEvent {
  return { id: newUlid(now), type, shape: 1, data, subject: null, public: [], meta: metaOf(context, now) };
}
