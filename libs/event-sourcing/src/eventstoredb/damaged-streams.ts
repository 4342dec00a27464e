import { setTimeout as pause } from 'node:timers/promises';
import { StreamDeletedError } from '@eventstore/db-client';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import type { Log } from '#libs/platform/src/log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { type NewEvent, type RecordedEvent, WrongVersion } from '../log/event-store.ts';
import { UnreadableRecord } from '../log/lazy-record.ts';
import { type Damage, describeDamage, eventLogDamaged, type ExaminedPage, LogDamage, nothingThere, type RevisionSkip } from '../log/log-damage.ts';
import { isRefused } from './failures.ts';
import { isDamage, isRevision, KnownDamages, keyOf, type Known } from './known-damages.ts';
import { LearnedNotes } from './learned-notes.ts';
import { examined } from './log-examination.ts';
import { contentForwards, skippedRecord } from './stream-content.ts';
import type { StreamNames } from './stream-names.ts';
import { type LogEvent, type ReadRequest, streamForwards } from './wire.ts';

/** A damage that is known is looked at again, where somebody asks for its stream, this often: somebody may have repaired it. */
const RECHECK_MS = 1_000;
/** So often it is tried to tell the other processes of a damage. */
const TELL_MS = 1_000;
/** An event that another has put there may not be shown at once. */
const SHOWN_MS = 4_000;
const SHOWN_AGAIN_MS = 100;
/** Events of a stream that are read at once, where all of it is looked at. */
const PAGE = 5_000;
/** Metadata that came by are looked at so many at once: a script may have set those of every stream. */
const LOOKS = 16;

const FOUND = 'damage.found';
const REPAIRED = 'damage.mended';
const PASSED = 'damage.skipped';

/** What an operator decided to go on without: revisions, with their ends. */
interface Skip {
  readonly stream: string;
  readonly from: number;
  readonly revision: number;
}

interface Recheck {
  readonly at: number;
  readonly damages: Promise<readonly Damage[]>;
}

interface Needs {
  readonly names: StreamNames;
  readonly log: Log;
  readonly read: (request: ReadRequest) => Promise<readonly LogEvent[]>;
  /** The same of `$all`, up to so many events, in which those of others may have to be passed over. */
  readonly search: (request: ReadRequest, count: number) => Promise<readonly LogEvent[]>;
  /** The last metadata of a stream; null where the user may not read them. */
  readonly metadata: (stream: string) => Promise<readonly LogEvent[] | null>;
  /** Appends to the stream for damage. @throws WrongVersion */
  readonly append: (expectedVersion: number, event: NewEvent) => Promise<void>;
}

/**
 * What is damaged, as this process and the others have found it. They tell each other in a stream beside the log, which outlives them: what hides events of a stream
 * does not show in the events that are left.
 */
export class DamagedStreams extends LogDamage {
  private readonly known = new KnownDamages();
  private readonly skips = new Map<string, Skip[]>();
  private readonly rechecks = new Map<string, Recheck>();
  /** Where what is known of the stream for damage lies. */
  private readonly learned = new LearnedNotes();
  /** Streams whose metadata came by, and were not looked at since; the latest of each. */
  private readonly described = new Map<string, LogEvent>();
  private isLooking = false;
  private isClosed = false;
  private telling: Promise<void> = Promise.resolve();

  constructor(private readonly needs: Needs) {
    super();
  }

  list(): readonly Damage[] {
    return this.known.list().map(({ damage }) => damage);
  }

  close(): void {
    this.isClosed = true;
  }

  /** Learns what was told since. */
  async refresh(): Promise<void> {
    const { read, names } = this.needs;
    for (let length = PAGE; length === PAGE;) {
      const events = await read(streamForwards(names.damage, this.learned.version + 1, PAGE)).catch((error: unknown) => {
        // Who may not read it goes by what comes along with the log.
        if (!(error instanceof StreamDeletedError || isRefused(error))) throw error;
        return [];
      });
      for (const event of events) this.learn(event);
      ({ length } = events);
    }
  }

  /** Whether an operator decided to go on without it. */
  isSkipped(stream: string, version: number): boolean {
    return this.skips.get(stream)?.some(({ from, revision }) => version > from && version <= revision + 1) ?? false;
  }

  /** What of an event is for followers. What damages its stream, and what others tell of such, is noticed here and passed over. */
  receive(event: LogEvent): RecordedEvent | null {
    const { stream, describes, version, record, damage, note } = event;
    if (note !== null) this.pass(event);
    if (describes !== null) this.look(describes, event);
    if (describes !== null || damage === null) return record;
    const isSkipped = this.isSkipped(damage.stream, version) && damage.revision !== null;
    if (!isSkipped) this.report(damage);
    // It stays in its place for those who have read so far.
    return record instanceof UnreadableRecord && isSkipped ? skippedRecord({ ...event, stream: stream! }) : record;
  }

  /** Has it known here at once, and elsewhere as soon as it can be told. */
  report(damage: Damage): void {
    const earlier = this.known.get(damage);
    if (earlier !== undefined) {
      if (earlier.damage.position === null) earlier.damage = damage;
      return;
    }
    const known: Known = { damage, isTold: false };
    if (!this.known.add(known)) return;
    this.rechecks.delete(damage.stream);
    this.needs.log.error('A stream of the log is damaged: calls on it are refused, and everybody else goes on. docs/operations.md says what to do.', {
      ...damage,
    });
    this.telling = this.telling.then(() => this.tell(known));
  }

  /** @throws DomainError `event_log_damaged` where something is known of the stream, and still so */
  async require(stream: string): Promise<void> {
    if (this.known.of(stream).length === 0) return;
    const damages = await this.rechecked(stream);
    if (damages.length > 0) throw eventLogDamaged(stream);
  }

  /** @throws DomainError `event_log_damaged` where there are any */
  refuse(stream: string, damages: readonly Damage[]): void {
    for (const damage of damages) this.report(damage);
    if (damages.length > 0) throw eventLogDamaged(stream);
  }

  /** Whether the server leaves out events of a stream of which it shows none. @throws DomainError `event_log_damaged` */
  async requireEmpty(stream: string): Promise<void> {
    this.refuse(stream, await this.hidden(stream));
  }

  async inspect(stream: string): Promise<readonly Damage[]> {
    await this.refresh();
    const damages = [...(await this.hidden(stream)), ...(await this.content(stream))];
    for (const damage of damages) this.report(damage);
    const keys = new Set(damages.map(keyOf));
    await this.noteRepaired(this.known.of(stream).filter(({ damage }) => !keys.has(keyOf(damage))));
    // A command ends once it has looked.
    await this.telling;
    return damages;
  }

  async skip({ stream, revision, reason }: RevisionSkip, record: (type: string) => NewEvent): Promise<boolean> {
    const damages = await this.inspect(stream);
    const damage = damages.find((each) => each.revision === revision);
    if (damage === undefined && this.isSkipped(stream, revision + 1)) return false;
    // What is hidden may come back: it is not given up.
    if (damage === undefined || (damage.cause === 'missing' && damages.some(({ cause }) => cause === 'truncated')))
      throw new Error(await this.nothingToSkip(stream, revision, damages));
    const { from = revision } = damage;
    const event = { ...record(PASSED), data: { stream, from, revision, reason } };
    return this.note(event, () => this.isSkipped(stream, revision + 1));
  }

  examine(): AsyncIterable<ExaminedPage> {
    return examined({ ...this.needs, damage: this });
  }

  /** Whoever mistypes a name is not told that all is well. */
  private async nothingToSkip(stream: string, revision: number, damages: readonly Damage[]): Promise<string> {
    const { read, names } = this.needs;
    const isThere = damages.length > 0 || (await read(streamForwards(names.stored(stream), 1, 1))).length > 0;
    return isThere
      ? nothingThere(stream, revision, damages)
      : `There is no stream '${stream}': streams are called here as in the log, without '${names.prefix}'.`;
  }

  /** Metadata that come by may have been changed since. */
  private look(stream: string, event: LogEvent): void {
    const earlier = this.described.get(stream);
    if (earlier === undefined || earlier.position < event.position) this.described.set(stream, event);
    if (!this.isLooking) void this.lookAtAll();
  }

  private async lookAtAll(): Promise<void> {
    this.isLooking = true;
    while (this.described.size > 0 && !this.isClosed) {
      const next = [...this.described].slice(0, LOOKS);
      for (const [stream] of next) this.described.delete(stream);
      const isDone = await Promise.all(next.map(([stream, event]) => this.lookAt(stream, event)));
      if (isDone.includes(false)) await pause(TELL_MS, undefined, { ref: false });
    }
    this.isLooking = false;
  }

  /** False where it is to be done again. */
  private async lookAt(stream: string, event: LogEvent): Promise<boolean> {
    const known = this.known.of(stream).filter(({ damage: { cause } }) => cause === 'truncated');
    if (event.damage === null && known.length === 0) return true;
    this.rechecks.delete(stream);
    try {
      const metadata = await this.needs.metadata(stream);
      const hidden = metadata === null ? event.damage : (metadata[0]?.damage ?? null);
      if (hidden === null) await this.noteRepaired(known);
      else this.report(hidden);
    } catch (error) {
      if (isUnavailable(error)) {
        if (!this.described.has(stream)) this.described.set(stream, event);
        return false;
      }
      // It is looked at again when somebody asks for the stream.
      if (event.damage !== null) this.report(event.damage);
    }
    return true;
  }

  /** Those of a stream that are still so. Its content is not read: what lies there stays, and what is gone is asked for. */
  private rechecked(stream: string): Promise<readonly Damage[]> {
    const now = performance.now();
    const earlier = this.rechecks.get(stream);
    if (earlier !== undefined && now - earlier.at < RECHECK_MS) return earlier.damages;
    const damages = this.recheck(stream);
    this.rechecks.set(stream, { at: now, damages });
    // What could not be looked at is looked at again at once.
    damages.catch(() => this.rechecks.delete(stream));
    return damages;
  }

  private async recheck(stream: string): Promise<readonly Damage[]> {
    await this.refresh();
    const known = this.known.of(stream);
    const isSo = await Promise.all(known.map(({ damage }) => this.isStillSo(damage)));
    await this.noteRepaired(known.filter((_, index) => !isSo[index]));
    return known.filter((_, index) => isSo[index]).map(({ damage }) => damage);
  }

  private async isStillSo({ stream, revision, from, cause }: Damage): Promise<boolean> {
    const { names, read } = this.needs;
    switch (cause) {
      case 'truncated':
        return (await this.hidden(stream)).length > 0;
      case 'missing':
        return !(await read(streamForwards(names.stored(stream), from! + 1, 1))).some(({ version }) => version === from! + 1);
      case 'foreign':
      case 'misplaced':
      case 'unreadable':
        return !this.isSkipped(stream, revision! + 1);
      case 'deleted':
        return true;
    }
  }

  /** Nothing where it may not be asked: what others tell, and what comes by, says it too. */
  private async hidden(stream: string): Promise<readonly Damage[]> {
    const metadata = await this.needs.metadata(stream);
    return metadata === null
      ? this.known.of(stream).flatMap(({ damage }) => (damage.cause === 'truncated' ? damage : []))
      : metadata.flatMap(({ damage }) => damage ?? []);
  }

  /** What is wrong with the events of a stream. */
  private async content(stream: string): Promise<readonly Damage[]> {
    const { names, read } = this.needs;
    const damages: Damage[] = [];
    const isSkipped = (version: number): boolean => this.isSkipped(stream, version);
    try {
      for (let [from, length] = [1, PAGE]; length === PAGE;) {
        const events = await read(streamForwards(names.stored(stream), from, PAGE));
        damages.push(...contentForwards(events, { stream, from, isSkipped }).damages);
        from = (events.at(-1)?.version ?? 0) + 1;
        ({ length } = events);
      }
    } catch (error) {
      if (!(error instanceof StreamDeletedError)) throw error;
      return [{ stream, revision: null, position: null, cause: 'deleted' }];
    }
    return damages;
  }

  /** What others have told, as it comes by. */
  private pass(event: LogEvent): void {
    // The log was put back to an earlier state, and went on.
    if (this.learned.isOther(event)) this.forget();
    if (event.version === this.learned.version + 1) return this.learn(event);
    if (event.version > this.learned.version)
      void this.refresh()
        .catch(() => {})
        .then(() => this.learn(event));
  }

  private forget(): void {
    this.learned.clear();
    this.known.clear();
    this.skips.clear();
    this.rechecks.clear();
  }

  private learn(event: LogEvent): void {
    if (!this.learned.add(event)) return;
    const { type, data } = event.note ?? {};
    if (type === PASSED && isSkip(data)) this.learnSkip(data);
    if (!isDamage(data)) return;
    if (type === FOUND) this.learnFound(data);
    else if (type === REPAIRED) this.known.delete(data);
  }

  private learnFound(damage: Damage): void {
    const known = this.known.get(damage);
    if (known !== undefined) known.isTold = true;
    else this.known.add({ damage, isTold: true });
  }

  private learnSkip({ stream, from, revision }: Skip): void {
    const skips = this.skips.get(stream);
    if (skips === undefined) this.skips.set(stream, [{ stream, from, revision }]);
    else skips.push({ stream, from, revision });
    this.rechecks.delete(stream);
    for (const { damage } of this.known.of(stream))
      if (damage.revision !== null && (damage.from ?? damage.revision) >= from && damage.revision <= revision) this.known.delete(damage);
  }

  private async noteRepaired(known: readonly Known[]): Promise<void> {
    for (const each of known) {
      const { damage, isTold } = each;
      if (isTold) await this.tellMended(damage);
      else each.isMended = true;
      this.known.delete(damage);
      this.rechecks.delete(damage.stream);
      this.needs.log.info('A stream of the log is no longer damaged.', { damage: describeDamage(damage) });
    }
  }

  /** Where others cannot be told they find it themselves: here it counts all the same. @throws DomainError `service_unavailable` */
  private async tellMended(damage: Damage): Promise<void> {
    try {
      await this.note(this.eventOf(REPAIRED, damage), () => this.known.get(damage) === undefined);
    } catch (error) {
      if (isUnavailable(error) && !isRefused(error)) throw error;
    }
  }

  private async tell(known: Known): Promise<void> {
    const isOver = (): boolean => known.isTold || this.known.get(known.damage) !== known;
    while (!this.isClosed && !isOver())
      try {
        await this.note(this.eventOf(FOUND, known.damage), isOver);
        // It was on its way when it was found to be over.
        if (known.isMended) await this.recheck(known.damage.stream);
      } catch (error) {
        // Others may.
        if (isRefused(error)) return;
        if (!isUnavailable(error)) {
          this.needs.log.error('The other processes cannot be told that a stream of the log is damaged.', { stream: known.damage.stream, error });
          return;
        }
        await pause(TELL_MS, undefined, { ref: false });
      }
  }

  /** Unless it was told by another, as `isTold` says once everything was read. Answers whether it was not. @throws Error where not everything can be read */
  private async note(event: NewEvent, isTold: () => boolean): Promise<boolean> {
    const deadline = performance.now() + SHOWN_MS;
    for (let isOurs = false; ;) {
      await this.refresh();
      if (isTold()) return isOurs;
      const { version } = this.learned;
      try {
        await this.needs.append(version, event);
        isOurs = true;
      } catch (error) {
        if (!(error instanceof WrongVersion)) throw error;
        await this.refresh();
        if (version < this.learned.version) continue;
        if (performance.now() > deadline)
          throw new Error(`The stream ${this.needs.names.damage} does not show all that it has: take away what its metadata hide it with.`, { cause: error });
        await pause(SHOWN_AGAIN_MS);
      }
    }
  }

  private eventOf(type: string, damage: Damage): NewEvent {
    const now = Date.now();
    const { environment, actor, requestId, commandId } = systemContext(SYSTEM_ENVIRONMENT, now);
    const meta = { environment, actor, requestId, commandId, at: now };
    return { id: newUlid(now), type, shape: 1, data: damage, subject: null, public: [], meta };
  }
}

function isSkip(data: unknown): data is Skip {
  const { stream, from, revision } = (data ?? {}) as Partial<Record<keyof Skip, unknown>>;
  return typeof stream === 'string' && isRevision(from) && isRevision(revision);
}
