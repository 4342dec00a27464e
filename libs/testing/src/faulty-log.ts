import { setTimeout as pause } from 'node:timers/promises';
import { EventStore, PositionOfAnotherLog, START, type Appended, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';

/** A log whose engine can be away, hang, or be restored to an earlier state. */
export class FaultyLog extends EventStore {
  private events: RecordedEvent[] = [];
  private broken = new AbortController();
  /** Deaf subscriptions hang without an error, whatever is recorded. */
  isDeaf = false;
  /** Positions that a log had which was put back since. */
  readonly foreign = new Set<Position>();

  constructor(public state: 'there' | 'away' | 'hanging' = 'there') {
    super();
  }

  record(type = 'happened', shape = 1, stream = 's', data: object = {}): Position {
    const position = String(this.events.length + 1).padStart(16, '0');
    const meta = { environment: 'system', actor: { id: 'a', source: 'system', name: null }, requestId: 'r', commandId: 'c', at: Date.now() };
    this.events.push({ id: position, type, shape, data, subject: null, public: [], meta, stream, version: 1, position });
    return position;
  }

  fail(state: 'away' | 'hanging'): void {
    this.state = state;
    if (state === 'away') this.broken.abort();
  }

  restore(count: number): void {
    this.events = this.events.slice(0, count);
  }

  async read(): Promise<readonly RecordedEvent[]> {
    return this.events;
  }

  async readBackwards(): Promise<readonly RecordedEvent[]> {
    return [...this.events].reverse();
  }

  async last(): Promise<RecordedEvent | null> {
    return null;
  }

  append(): Promise<Appended> {
    return Promise.reject(new Error('away'));
  }

  async head(): Promise<Position> {
    await this.there();
    return this.events.at(-1)?.position ?? START;
  }

  override async idAt(position: Position): Promise<string | null> {
    return this.events.find((event) => event.position === position)?.id ?? null;
  }

  async *subscribe(after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    await this.there();
    const { signal: broken } = (this.broken = new AbortController());
    const isDeaf = this.isDeaf;
    if (this.foreign.has(after)) throw new PositionOfAnotherLog(after);
    for (let last = after; !signal.aborted; await pause(5)) {
      if (broken.aborted) throw new Error('away');
      const news = isDeaf || this.state === 'hanging' ? [] : this.events.filter(({ position }) => position > last);
      if (news.length > 0) yield news;
      last = news.at(-1)?.position ?? last;
    }
  }

  private async there(): Promise<void> {
    if (this.state === 'away') throw new Error('away');
    if (this.state === 'hanging') await new Promise(() => {});
  }
}
