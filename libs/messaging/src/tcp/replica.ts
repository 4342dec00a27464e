import type { ServiceName } from '#libs/contracts/src/operation';
import type { Log } from '#libs/platform/src/log';
import { hashOf } from '#libs/platform/src/text-hash';
import { Connection } from './connection.ts';
import { MESSAGE, type FrameSocket, type Message } from './frame-socket.ts';
import type { ServiceSecurity } from './service-security.ts';
import { GREETING, timed } from './wire.ts';

/** What a replica has to know of a call. */
export interface Attempt {
  /** The part of the request's head that is the same wherever it is sent. */
  readonly about: string;
  readonly fields: string;
  /** Of `performance.now()`. */
  readonly deadline: number;
  /** How often it was asked for, unless the earlier replicas certainly did not begin. */
  readonly number: number;
  /** When it was sent for the first time, by whoever sent it first; of `performance.now()`. */
  readonly sentAt: number;
}

interface Listeners<A extends Attempt> {
  answered(attempt: A, message: Message): void;
  /** The connection broke under these. */
  broke(attempts: readonly A[]): void;
  /** It may be asked now, or may not be any more. */
  changed(replica: Replica<A>): void;
}

interface Needs<A extends Attempt> {
  readonly owner: ServiceName;
  readonly security: ServiceSecurity;
  readonly log: Log;
  readonly listeners: Listeners<A>;
}

/**
 * `connecting`: for the first time, or for the first time after the connection broke. `away`: that failed; it is tried again, and nobody waits for it. `leaving`: it is
 * about to stop, or its name leads elsewhere now; it is asked only where there is no other. `silent`: connected, but it does not answer.
 */
type State = 'connecting' | 'ready' | 'leaving' | 'silent' | 'away' | 'closed';

/** For a connection, and again for the greeting. */
const OPENING = 2_000;
const FIRST_PAUSE = 50;
const LAST_PAUSE = 1_000;
/** What one process asks of one replica at once. */
const MAX_PENDING = 512;
/** Unsent bytes with which a replica counts as busy. */
const MAX_BACKLOG = 4 * 1024 * 1024;
/** Rounds of half a second without a word: after these another one is asked if there is any, it is not asked at all, it is connected to anew. */
const SILENT_AFTER = 3;
const MUTE_AFTER = 10;
const GONE_AFTER = 20;
/** Milliseconds by which the clocks of two hosts drift apart in a round, at most. */
const DRIFT = 0.05;

/** One replica of a service as this process sees it: a connection that is made again whenever it is lost. */
export class Replica<A extends Attempt = Attempt> {
  state: State = 'connecting';
  /** The same in every process that asks, so that all send one organization's operations to the same replica. */
  readonly seed: number;
  private readonly pending = new Map<number, A>();
  private connection: Connection | null = null;
  /** Null until both have greeted. */
  private socket: FrameSocket | null = null;
  private nextId = 0;
  private pause = FIRST_PAUSE;
  private timer: NodeJS.Timeout | undefined;
  /** Its clock minus ours: never more than it is, so that a request seems older to it rather than younger. */
  private offset = 0;
  private heard = 0;
  private quietRounds = 0;
  private hasSaidLeave = false;
  /** Its name leads elsewhere now. */
  private isRetired = false;
  private hasComplained = false;

  constructor(
    readonly host: string,
    readonly port: number,
    private readonly needs: Needs<A>,
  ) {
    this.seed = hashOf(this.name);
    this.connect();
  }

  get name(): string {
    return `${this.host}:${this.port}`;
  }

  get isRetiring(): boolean {
    return this.isRetired;
  }

  get load(): number {
    return this.pending.size;
  }

  get hasRoom(): boolean {
    return this.socket !== null && this.pending.size < MAX_PENDING && this.socket.backlog < MAX_BACKLOG;
  }

  /** It may only be very busy: better to ask it than nobody. */
  get mayAnswer(): boolean {
    return this.state === 'silent' && this.quietRounds < MUTE_AFTER && this.hasRoom;
  }

  /** `patience`: milliseconds after which it is not begun. Returns the id by which it can be taken back. */
  send(attempt: A, now: number, patience: number): number {
    const id = (this.nextId = (this.nextId + 1) >>> 0);
    this.pending.set(id, attempt);
    const head = timed(attempt.about, {
      sent: round(now + this.offset),
      left: round(attempt.deadline - now),
      patience: round(patience),
      attempt: attempt.number,
      age: round(now - attempt.sentAt),
    });
    this.say(MESSAGE.request, id, head, attempt.fields);
    return id;
  }

  /** Nobody waits for this answer any more: it is not begun, if that can still be. */
  cancel(id: number): void {
    if (this.pending.delete(id)) this.say(MESSAGE.cancel, id);
  }

  /** Twice a second. `stoodStill`: this process did not run in between, so nobody could be heard. */
  round(now: number, stoodStill: boolean): void {
    const { socket, connection } = this;
    if (socket === null || connection === null) return;
    if (socket.heard !== this.heard) {
      this.heard = socket.heard;
      this.quietRounds = 0;
      if (this.state === 'silent') this.become(this.hasSaidLeave || this.isRetired ? 'leaving' : 'ready');
    } else if (!stoodStill) {
      this.quietRounds++;
    }
    const fault = stoodStill ? null : socket.fault(now);
    if (fault !== null) connection.abort(fault);
    else if (this.quietRounds >= GONE_AFTER) connection.abort('it does not answer');
    else {
      if (this.quietRounds >= SILENT_AFTER && this.state !== 'silent') {
        this.warn('A replica does not answer; others are asked.');
        this.become('silent');
      }
      this.say(MESSAGE.ping, 0);
    }
  }

  /** Its name leads elsewhere now. What is under way is answered. */
  retire(): void {
    this.isRetired = true;
    if (this.socket === null) this.close();
    else this.become('leaving');
  }

  /** It was told to leave, nothing is under way, and there are others. */
  release(): void {
    if (this.state !== 'leaving' || this.pending.size > 0) return;
    if (this.isRetired) this.close();
    else this.socket?.finish();
  }

  /** Tries at once what would be tried soon: it may be back. */
  hurry(): void {
    if (this.state !== 'away' || this.connection !== null) return;
    clearTimeout(this.timer);
    this.connect();
  }

  close(): void {
    if (this.state === 'closed') return;
    clearTimeout(this.timer);
    const { connection } = this;
    this.socket?.finish();
    this.connection = this.socket = null;
    // A peer that does not close its side keeps nothing of ours open.
    const timer = setTimeout(() => connection?.abort('closed'), OPENING);
    timer.unref();
    this.become('closed');
    this.giveBack();
  }

  private connect(): void {
    this.hasSaidLeave = false;
    const connection: Connection = new Connection(this.host, this.port, this.needs.security, {
      message: (message) => {
        if (this.connection === connection) this.take(connection, message);
      },
      closed: (error) => {
        if (this.connection === connection) this.lose(error);
      },
    });
    this.connection = connection;
    connection.open(OPENING).then(
      (socket) => {
        this.timer = setTimeout(() => connection.abort('it does not answer'), OPENING);
        socket.sendMessage({ type: MESSAGE.hello, id: 0, head: '', text: GREETING } satisfies Message);
      },
      // It closes, too, and that is where it is seen to.
      () => undefined,
    );
  }

  private take(connection: Connection, message: Message): void {
    const { type, id, head } = message;
    if (this.socket === null) {
      this.welcome(connection, message);
      return;
    }
    switch (type) {
      case MESSAGE.pong:
        this.learn(Number(head));
        return;
      case MESSAGE.leave:
        this.hasSaidLeave = true;
        this.become('leaving');
        return;
      default: {
        const attempt = this.pending.get(id);
        // Taken back meanwhile.
        if (attempt === undefined) return;
        this.pending.delete(id);
        this.needs.listeners.answered(attempt, message);
      }
    }
  }

  private welcome(connection: Connection, { type, head, text }: Message): void {
    if (type !== MESSAGE.hello || text !== GREETING) {
      connection.abort('it does not greet as a service of this cluster');
      return;
    }
    clearTimeout(this.timer);
    this.socket = connection.socketOfFrames;
    this.socket.letIn();
    this.offset = Number(head) - performance.now();
    this.heard = this.quietRounds = 0;
    this.pause = FIRST_PAUSE;
    this.hasComplained = false;
    this.become(this.isRetired ? 'leaving' : 'ready');
  }

  /** Whatever delayed the word makes the difference smaller, so the greatest is the nearest. */
  private learn(itsTime: number): void {
    this.offset = Math.max(this.offset - DRIFT, itsTime - performance.now());
  }

  private lose(error: Error | null): void {
    clearTimeout(this.timer);
    const { state } = this;
    const wasThere = this.socket !== null;
    this.connection = this.socket = null;
    if (this.isRetired) {
      this.close();
      return;
    }
    if (state === 'leaving' || !wasThere) {
      if (!wasThere && !this.hasComplained) {
        this.hasComplained = true;
        this.warn('A replica cannot be reached; it is tried again.', error);
      }
      this.timer = setTimeout(() => this.connect(), this.pause * (0.75 + Math.random() / 2));
      this.pause = Math.min(this.pause * 2, LAST_PAUSE);
      this.become('away');
    } else {
      this.warn('The connection to a replica broke; it is made again.', error);
      this.connect();
      this.become('connecting');
    }
    this.giveBack();
  }

  private giveBack(): void {
    const attempts = [...this.pending.values()];
    this.pending.clear();
    if (attempts.length > 0) this.needs.listeners.broke(attempts);
  }

  private become(state: State): void {
    if (this.state === state || this.state === 'closed') return;
    this.state = state;
    this.needs.listeners.changed(this);
  }

  private say(type: number, id: number, head = '', text = ''): void {
    this.socket?.sendMessage({ type, id, head, text } satisfies Message);
  }

  private warn(sentence: string, error: Error | null = null): void {
    const because = error === null ? undefined : ((error as NodeJS.ErrnoException).code ?? error.message);
    this.needs.log.warn(sentence, { owner: this.needs.owner, replica: this.name, because });
  }
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 1_000) / 1_000;
}
