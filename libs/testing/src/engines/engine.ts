/** An engine that tests started, and that they may hurt. */
export interface Engine {
  readonly name: string;
  /** The value of its setting; the same after a restart. */
  readonly address: string;
  /** Null while it does not run, or runs in a container. */
  readonly pid: number | null;
  /** It stops in the middle of everything; its connections stay open, and nobody answers on them. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** It is asked to end, and does; its data stays. */
  stop(): Promise<void>;
  /** It ends at once, wherever it is; its data stays as it is. */
  kill(): Promise<void>;
  /** On the same data and the same address; resolves when it answers. Ended first, when it still runs. */
  restart(): Promise<void>;
  /** It ends, and its data is gone. */
  close(): Promise<void>;
}

export interface EngineUser {
  readonly name: string;
  readonly password: string;
}

/** Where an engine listens, what it shows of itself, and whom it lets in; one that is told nothing of it speaks in clear to everybody. */
export interface EngineGuard {
  readonly port: number;
  /** Files in PEM; null: in clear. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | null;
  readonly users: readonly EngineUser[];
}
