import { join } from 'node:path';
import { LmdbEnvironment } from './lmdb-environment.ts';

/** What the log asks of the storage that it lies in. */
export interface LogStorage {
  readonly log: LmdbEnvironment;
  /** The last process ended without closing the log. */
  readonly afterCrash: boolean;
  /** @throws DomainError while nothing may be written */
  assertWritable(): void;
  /** Before the first change that releases of an earlier format could not read: until then they may go on. */
  leaveReleasesBefore(format: number): void;
  /** Nothing that lies here is trusted after this. */
  fail(reason: string, wayOut?: string): void;
}

/** The log of a directory that another process may be writing, or that is too damaged to be served: for looking, without the lock, changing nothing. */
export class LogForReading implements LogStorage {
  readonly afterCrash = false;
  readonly log: LmdbEnvironment;

  constructor(directory: string) {
    this.log = new LmdbEnvironment({ path: join(directory, 'log'), readOnly: true, onFailure: () => {}, onTakenOver: () => {} });
  }

  assertWritable(): void {
    throw new Error('This log was opened for reading.');
  }

  /** Nothing is changed here. */
  leaveReleasesBefore(): void {}

  /** Whoever looks goes on past what is damaged. */
  fail(): void {}
}
