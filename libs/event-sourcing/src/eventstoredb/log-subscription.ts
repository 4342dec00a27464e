import type { ClientReadableStream } from '@grpc/grpc-js';
import type { Position, RecordedEvent } from '../log/event-store.ts';
import { driverErrorOf } from './failures.ts';
import type { ReadResponse } from './wire.ts';

/** Events that wait for the consumer, at most; what it is handed at once. */
export const BATCH = 500;
const BATCH_BYTES = 4 * 1024 * 1024;

/** An event of ours, and how large it is. */
export interface Arrived {
  readonly record: RecordedEvent;
  readonly bytes: number;
}

/** What of a response is for followers, and how far it brings them; null where it brings them nowhere. */
export type Receive = (response: ReadResponse) => { readonly position: Position; readonly record: RecordedEvent | null; readonly bytes: number } | null;

/** A subscription to `$all`: what has arrived waits here until it is asked for, and the server is held up where that is too much. */
export class LogSubscription {
  /** Of what came last, whoever wrote it; null: nothing has come yet. */
  position: Position | null = null;
  private arrived: Arrived[] = [];
  private bytes = 0;
  private failure: Error | null = null;
  private call: ClientReadableStream<ReadResponse> | null = null;
  private wake: () => void = () => {};

  constructor(
    private readonly opening: Promise<ClientReadableStream<ReadResponse>>,
    /** The server was asked for what comes after it. */
    readonly began: Position,
    private readonly receive: Receive,
    heard: () => void,
  ) {
    opening.then(
      (call) => {
        this.call = call;
        call.on('data', (response: ReadResponse) => {
          heard();
          this.take(response);
        });
        call.on('error', (error: Error) => this.fail(driverErrorOf(error)));
        for (const event of ['end', 'close']) call.on(event, () => this.fail(new Error('The server has ended the subscription.')));
      },
      (error: Error) => this.fail(error),
    );
  }

  /**
   * The next events, in order; none when nothing came for `idle` milliseconds, or `signal` has aborted.
   * @throws what has ended the subscription, after the last of its events
   */
  async next(idle: number, signal: AbortSignal): Promise<readonly Arrived[]> {
    if (this.arrived.length === 0) await this.arrival(idle, signal);
    const events = this.arrived;
    if (events.length === 0 && this.failure !== null && !signal.aborted) throw this.failure;
    this.arrived = [];
    this.bytes = 0;
    this.call?.resume();
    return events;
  }

  /** Ends it for whoever asks for its events. */
  fail(error: Error): void {
    this.failure ??= error;
    this.wake();
  }

  close(): void {
    this.opening.then(
      (call) => {
        call.cancel();
        // One that is paused would never learn that it was cancelled, and whoever keeps it until it closes would keep all that has arrived.
        call.destroy();
      },
      () => undefined,
    );
  }

  private take(response: ReadResponse): void {
    let event;
    try {
      event = this.receive(response);
    } catch (error) {
      this.fail(error as Error);
      this.close();
      return;
    }
    if (event === null || this.failure !== null) return;
    this.position = event.position;
    if (event.record === null) return;
    this.arrived.push({ record: event.record, bytes: event.bytes });
    this.bytes += event.bytes;
    if (this.arrived.length >= BATCH || this.bytes >= BATCH_BYTES) this.call?.pause();
    this.wake();
  }

  private async arrival(idle: number, signal: AbortSignal): Promise<void> {
    if (this.failure !== null || signal.aborted) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      timer = setTimeout(resolve, idle).unref();
      signal.addEventListener('abort', this.wake);
    });
    clearTimeout(timer);
    signal.removeEventListener('abort', this.wake);
    this.wake = () => {};
  }
}
