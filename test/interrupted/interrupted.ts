import { setTimeout as pause } from 'node:timers/promises';
import { type EventStore, type NewEvent, type RecordedEvent, START, WrongVersion } from '#libs/event-sourcing/src/log/event-store';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import type { EngineProcess } from '#libs/testing/src/engines/engine-process';
import type { Members } from './members.ts';
import { type Verdict, verdictOn, type Written } from './verdict.ts';

const RETRY_MS = 50;
/** Events of one append. */
const EVENTS = 2;
/** Longer than a cluster takes to notice that its leader is frozen. */
const GOES_ON_MS = 90_000;
const CATCHES_UP_MS = 120_000;

interface Plan {
  readonly members: Members;
  /** A connection of its own, as each process has one. */
  readonly connect: () => Promise<EventStore>;
  readonly writers: number;
  readonly followers: number;
  /** What happens to the leader, one after the other. */
  readonly interruptions: readonly ('kill' | 'freeze')[];
  /** Milliseconds of writing before each. */
  readonly calm: number;
  /** A leader without others to go on stays frozen so long. */
  readonly frozen: number;
  /** While the leader is dead. */
  readonly onKilled?: (leader: EngineProcess, kills: number) => Promise<void>;
  readonly say?: (line: string) => void;
}

interface Outcome {
  readonly events: number;
  readonly verdict: Verdict;
  /** Writers that were refused what they had been promised. */
  readonly refused: readonly string[];
  /** Milliseconds from each interruption to the next append that was acknowledged. */
  readonly pauses: readonly number[];
}

/** What writers were told. */
interface Told {
  readonly acknowledged: Written[];
  /** When the last that was acknowledged was asked for. */
  askedAt: number;
}

/** Writes and follows while the leader is killed and frozen; then holds the log to what was acknowledged. */
export async function interrupted(plan: Plan): Promise<Outcome> {
  const { members, connect, say = () => {} } = plan;
  const stores = [await connect(), await connect()];
  const told: Told = { acknowledged: [], askedAt: 0 };
  const refused: string[] = [];
  const writing = new AbortController();
  const following = new AbortController();
  const seen: readonly string[][] = Array.from({ length: plan.followers }, () => []);
  const storeOf = (number: number): EventStore => stores[number % stores.length]!;
  const writers = Array.from({ length: plan.writers }, (_, number) =>
    write(storeOf(number), `thing-${number}`, told, writing.signal).catch((error: Error) => void refused.push(error.message)),
  );
  const followers = seen.map((ids, number) => follow(storeOf(number), ids, following.signal));
  const pauses: number[] = [];
  let kills = 0;
  try {
    for (const [index, interruption] of plan.interruptions.entries()) {
      await pause(plan.calm);
      const leader = await members.leader();
      const at = Date.now();
      // What was asked before may still be answered.
      const goesOn = async (): Promise<void> => {
        while (told.askedAt <= at && refused.length < plan.writers) {
          if (Date.now() - at > GOES_ON_MS)
            throw new Error(`Nothing was acknowledged for ${GOES_ON_MS / 1_000} s after ${leader.name} was met with: ${interruption}.`);
          await pause(20);
        }
      };
      if (interruption === 'kill') {
        await leader.kill();
        await plan.onKilled?.(leader, ++kills);
        if (members.count > 1) await goesOn();
        else await leader.restart();
      } else {
        await leader.pause();
        if (members.count > 1) await goesOn();
        else await pause(plan.frozen);
        await leader.resume();
      }
      await goesOn();
      pauses.push(Date.now() - at);
      if (members.count > 1 && interruption === 'kill') await leader.restart();
      say(`${index + 1}. ${interruption}: ${leader.name}, ${pauses.at(-1)} ms until the next was acknowledged; ${told.acknowledged.length} events.`);
    }
    await pause(plan.calm);
  } catch (error) {
    following.abort();
    throw error;
  } finally {
    writing.abort();
    await Promise.all(writers);
  }
  const log = await wholeOf(await connect());
  for (const deadline = Date.now() + CATCHES_UP_MS; seen.some(({ length }) => length < log.length) && Date.now() < deadline;) await pause(50);
  following.abort();
  await Promise.all(followers);
  return { events: log.length, verdict: verdictOn(log, told.acknowledged, seen), refused, pauses };
}

/** As a client that repeats its command until it is told what became of it. @throws WrongVersion where the stream is not as it was promised */
async function write(store: EventStore, stream: string, told: Told, signal: AbortSignal): Promise<void> {
  for (let version = 0; !signal.aborted; version += EVENTS) {
    const events = Array.from({ length: EVENTS }, () => eventOf(stream));
    const askedAt = Date.now();
    await insisted(store, stream, { version, events });
    told.acknowledged.push(...events.map(({ id }, index) => ({ id, stream, version: version + index + 1 })));
    told.askedAt = Math.max(told.askedAt, askedAt);
  }
}

async function insisted(
  store: EventStore,
  stream: string,
  { version, events }: { readonly version: number; readonly events: readonly NewEvent[] },
): Promise<void> {
  for (;;)
    try {
      await store.append(stream, version, events);
      return;
    } catch (error) {
      if (!isUnavailable(error)) throw error instanceof WrongVersion ? new Error(`${stream} is not at version ${version}, which was acknowledged.`) : error;
      await pause(RETRY_MS);
    }
}

/** From where it was, whenever the connection breaks. */
async function follow(store: EventStore, ids: string[], signal: AbortSignal): Promise<void> {
  for (let position = START; !signal.aborted; await pause(RETRY_MS))
    try {
      for await (const batch of store.subscribe(position, signal)) {
        ids.push(...batch.map(({ id }) => id));
        position = batch.at(-1)!.position;
      }
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
}

async function wholeOf(store: EventStore): Promise<readonly Written[]> {
  const head = await store.head();
  const written: Written[] = [];
  const stop = new AbortController();
  const take = ({ id, stream, version }: RecordedEvent): Written => ({ id, stream, version });
  for await (const batch of head === START ? [] : store.subscribe(START, stop.signal)) {
    written.push(...batch.map(take));
    if (batch.at(-1)!.position >= head) break;
  }
  stop.abort();
  return written;
}

function eventOf(stream: string): NewEvent {
  const id = newUlid(Date.now());
  const meta = { environment: 'environment_1', actor: { id: 'key_1', source: 'api', name: null }, requestId: id, commandId: id, at: Date.now() } as const;
  return { id, type: 'thing.happened', shape: 1, data: { stream }, subject: null, public: [], meta };
}
