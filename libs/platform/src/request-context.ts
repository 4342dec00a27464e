/** Who acts: an environment key, or the system itself (reactions, command line). */
export interface Actor {
  readonly id: string;
  readonly source: 'api' | 'dashboard' | 'admin_portal' | 'system';
  readonly name: string | null;
}

/** Who is at the other end of a request that nobody vouches for. */
export interface Connection {
  /** The client's network address. */
  readonly address: string;
  readonly userAgent: string | null;
  /** SHA-256 of what stood as a bearer token in `Authorization`, in lower-case hex: it was not looked at. */
  readonly bearerHash: string | null;
}

/** From where something was asked for, as the gateway or the command line saw it. It is personal. */
export interface Origin {
  /** A network address; of the command line, the host. */
  readonly address: string;
  readonly userAgent: string | null;
  /** Who typed a command, as they call themselves. */
  readonly operator?: string;
}

/** What a request carried that is too long for a message: it lies among the blobs, and whoever carries the request out owns it from then on. */
export interface Upload {
  /** The name of the blob. */
  readonly blob: string;
  readonly bytes: number;
  /** SHA-256 of its content, in lower-case hex. */
  readonly hash: string;
  /** One of those that the operation takes. */
  readonly contentType: string;
}

/** A command that may have begun is handed on to another replica so long after it was sent at the earliest (milliseconds). */
export const HANDED_ON_AFTER = 1_000;

/** What every operation knows of the request that carries it. An argument, never ambient. */
export interface RequestContext {
  /** Id of the environment that the API key belongs to; every stream, row, message and topic carries it. */
  readonly environment: string;
  readonly actor: Actor;
  readonly requestId: string;
  /** Ends in four zeros; ids of whatever the command creates derive from it (`derivedId`). */
  readonly commandId: string;
  /** Milliseconds since the epoch after which nobody waits for the answer any more. */
  readonly deadline: number;
  /** How often it was asked for, this time included, unless the earlier ones certainly did not begin. Absent: for the first time. */
  readonly attempt?: number;
  /** When it was sent, on the clock of this process that never goes back (`performance.now()`). Absent: it is asked for here, and of nobody else. */
  readonly sentAt?: number;
  /** The reader has seen this log position and expects to see it again. */
  readonly readAfter?: string;
  readonly traceparent?: string;
  /** What the request came with as `Idempotency-Key`, for an operation that counts on it itself. */
  readonly idempotencyKey?: string;
  /** Whom a request without an API key came from, as the gateway saw it. */
  readonly connection?: Connection;
  /** Of a command of somebody with an API key, or at the command line: recorded with what is administration, and nowhere else. */
  readonly origin?: Origin;
  /** Of an operation that takes one. */
  readonly upload?: Upload;
  /**
   * Filled in on the way back: the log position after the last append, how many aggregates were asked (each has its own range of derived ids), and what the
   * caller should know of a command that was carried out (one line of ASCII).
   */
  readonly receipt: { position?: string; transacts?: number; warning?: string };
}

/** The id of the actor where a command was typed. */
export const COMMAND_LINE = 'command_line';

/** The scope of what belongs to no environment: the list of environments itself. */
export const SYSTEM_ENVIRONMENT = 'system';
