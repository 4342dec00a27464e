import { within } from '#libs/platform/src/deadline';
import { unavailable } from '#libs/platform/src/domain-error';
import { type Position, START } from '../log/event-store.ts';
import { allBackwards, allForwards, type LogEvent, type LogPosition, type ReadRequest } from './wire.ts';

/** Events of ours that are asked for at once, where the last one is looked for among those of others. */
const PAGE = 500;
/** The server goes through some hundred thousand events of others in a second; whoever asks waits no longer than it wants to. */
const SEARCH_MS = 120_000;

/** So many runs of others' events are remembered. */
const RUNS = 100;

interface Needs {
  /** Answers up to `count` events. */
  readonly read: (request: ReadRequest, count: number, milliseconds: number) => Promise<readonly LogEvent[]>;
  /** What the names of our streams, and of their metadata, begin with: followers begin behind what was looked through, so whoever reads here sees those who changed them. */
  readonly prefixes: readonly string[];
}

/** Where the log ends, whatever others have written behind it: what was looked through once is not looked through again. */
export class LogEnd {
  /** Everything up to `scanned` is known: the last record of ours in it is at `head`. */
  private known: { readonly scanned: Position; readonly head: Position } = { scanned: START, head: START };
  private searching: Promise<void> | null = null;
  /** Where long runs of what others wrote begin, and how far each of them was passed. */
  private readonly passed = new Map<Position, Position>();

  constructor(private readonly needs: Needs) {}

  /**
   * The position of the last record as it stands after the call. What lies behind it is looked through for up to `timeoutMs`, and further for who asks again.
   * @throws DomainError `service_unavailable`
   */
  async head(milliseconds: number, timeoutMs = milliseconds): Promise<Position> {
    // What comes while it is asked may be newer than the answer.
    const { scanned } = this.known;
    const [newest] = await this.needs.read(allBackwards(null, 1), 1, milliseconds);
    const end = newest?.position ?? START;
    // A log that was put back to an earlier state: nothing is known of it any more.
    if (end < scanned) this.forget();
    if (newest?.record != null) this.remember(end, end);
    return within(this.scannedTo(end, newest?.at ?? null), timeoutMs, () =>
      unavailable('What others have written behind the end of the log is still looked through.'),
    );
  }

  /** What is known may be of another log, as this one was before it was put back to an earlier state. */
  forget(): void {
    this.known = { scanned: START, head: START };
    this.passed.clear();
  }

  /** Where to follow from after a position: past what is known to be of others. */
  startAfter(after: Position): Position {
    const { head, scanned } = this.known;
    return after >= head && after < scanned ? scanned : (this.passed.get(after) ?? after);
  }

  /** A subscription that began at `from` has come to `position`, and the last record in between is at `head`, if any is. */
  carry(from: Position, position: Position, head: Position | null): void {
    if (from <= this.known.scanned) this.remember(position, head !== null && head > this.known.head ? head : this.known.head);
  }

  /** Nothing of ours lies between two positions: whoever follows from the first again, as after a subscription that took long for it, begins at the second. */
  pass(after: Position, position: Position): void {
    if (position <= (this.passed.get(after) ?? after)) return;
    // The latest come last, and stay longest.
    this.passed.delete(after);
    this.passed.set(after, position);
    if (this.passed.size > RUNS) this.passed.delete(this.passed.keys().next().value!);
  }

  /** Never goes back: an answer that comes late must not undo a later one. */
  private remember(scanned: Position, head: Position): void {
    if (scanned >= this.known.scanned) this.known = { scanned, head };
  }

  /** The last record, once everything up to the end is known. */
  private async scannedTo(end: Position, at: LogPosition | null): Promise<Position> {
    while (at !== null && this.known.scanned < end) {
      this.searching ??= this.search(end, at).finally(() => (this.searching = null));
      await this.searching;
    }
    return this.known.head;
  }

  private async search(end: Position, at: LogPosition): Promise<void> {
    if (this.known.scanned === START) return this.searchBackwards(end, at);
    try {
      await this.searchForwards(end);
    } catch (error) {
      // What is known may be of another log, whose positions mean nothing here.
      this.forget();
      throw error;
    }
  }

  /** The server passes over what others wrote. */
  private async searchBackwards(end: Position, at: LogPosition): Promise<void> {
    const { read, prefixes } = this.needs;
    for (let [before, count] = [at, 1]; ; count = PAGE) {
      const events = await read(allBackwards(before, count, ...prefixes), count, SEARCH_MS);
      const last = events.find(({ record }) => record !== null);
      if (last !== undefined || events.length < count) return this.remember(end, last?.position ?? START);
      before = events.at(-1)!.at;
    }
  }

  private async searchForwards(end: Position): Promise<void> {
    const { read, prefixes } = this.needs;
    // An event at the position itself comes again.
    for (let [from, last] = [this.known.scanned, this.known.head]; ;) {
      const events = await read(allForwards(from, PAGE, ...prefixes), PAGE, SEARCH_MS);
      last = events.findLast(({ record }) => record !== null)?.position ?? last;
      from = events.at(-1)?.position ?? from;
      if (events.length < PAGE) return this.remember(from > end ? from : end, last);
      this.remember(from, last);
    }
  }
}
