import type { ErrorCode } from '#libs/contracts/src/errors';
import { DomainError } from '#libs/platform/src/domain-error';
import type { NewEvent, Position, RecordedEvent } from './event-store.ts';

/**
 * What is wrong with a stream: somebody else's event lies in it (`foreign`); an event of ours was stored at another version than it was decided for, since the
 * stream had been cut (`misplaced`); data of ours cannot be read (`unreadable`); revisions are gone (`missing`); its metadata hide events (`truncated`: `$tb`, which a
 * deletion sets too, `$maxCount`, `$maxAge`); or it was deleted for good (`deleted`).
 */
export type DamageCause = (typeof DAMAGE_CAUSES)[number];

export const DAMAGE_CAUSES = ['foreign', 'misplaced', 'unreadable', 'missing', 'truncated', 'deleted'] as const;

/** Why a stream of the log cannot be taken for the whole. */
export interface Damage {
  /** As the log calls it. */
  readonly stream: string;
  /** Which event, counted from 0 as the engine does; of several that are gone, the last. Null where it is the stream as such, and there is nothing to skip. */
  readonly revision: number | null;
  /** The first of several that are gone. */
  readonly from?: number;
  /** Where in the log that lies which damaged it, or the first event behind it; null where nothing tells. */
  readonly position: Position | null;
  readonly cause: DamageCause;
}

/** One decision of an operator. */
export interface RevisionSkip {
  readonly stream: string;
  readonly revision: number;
  readonly reason: string;
}

/** A part of the log, as it was read from its beginning. */
export interface ExaminedPage {
  readonly records: readonly RecordedEvent[];
  /** Of the streams that have something in it, as they lie there now. A stream comes once. */
  readonly damages: readonly Damage[];
  /** Up to here the log has been read. */
  readonly position: Position;
  /** How much of it that is, from 0 to 1. */
  readonly portion: number;
}

/** What is wrong with single streams of a log that is there. Everybody else goes on; calls on such a stream are refused until it is repaired or skipped. */
export abstract class LogDamage {
  /** What is known and not over, the oldest first, without asking anybody. Processes tell each other, and those that start later. */
  abstract list(): readonly Damage[];

  /** What is wrong with a stream as it lies there now. */
  abstract inspect(stream: string): Promise<readonly Damage[]>;

  /**
   * Has a stream go on without what lies at a revision, or without all that is gone up to it. The revision counts: the next event has the version that it would have had.
   * Recorded for ever, with the reason and what `record` says of who decided it. Answers whether that is new: it may have been decided before.
   * @throws Error, for the operator, where nothing is damaged there, or nothing can be skipped
   */
  abstract skip(skip: RevisionSkip, record: (type: string) => NewEvent): Promise<boolean>;

  /** Reads the whole log up to its end as of the call, and looks closer at each stream in which something is not as it was written. */
  abstract examine(): AsyncIterable<ExaminedPage>;
}

/** Of a log that is whole, or is not served at all: the one in a directory, to which nobody else writes. */
export class WholeLog extends LogDamage {
  list(): readonly Damage[] {
    return [];
  }

  async inspect(): Promise<readonly Damage[]> {
    return [];
  }

  async skip(): Promise<boolean> {
    throw new Error(
      "Nothing is skipped in a log in DATA_DIR: nobody else writes there. A record that is damaged is named by 'verify', and a backup is restored.",
    );
  }

  /** Its files are looked at instead, while no process has to be able to serve them. */
  async *examine(): AsyncIterable<ExaminedPage> {}
}

/** What an operator is told of a damage. */
export function describeDamage({ stream, revision, from, position, cause }: Damage): string {
  const place = position === null ? '' : `, position ${position}`;
  switch (cause) {
    case 'foreign':
      return `${stream}, revision ${revision}${place}: an event that is none of ours`;
    case 'misplaced':
      return `${stream}, revision ${revision}${place}: an event that was decided for another version, while the stream was cut`;
    case 'unreadable':
      return `${stream}, revision ${revision}${place}: data that cannot be read`;
    case 'missing':
      return `${stream}, revisions ${from} to ${revision}: gone`;
    case 'truncated':
      return `${stream}${place}: its metadata set $tb, $maxCount or $maxAge; a deletion does so too. Events are there again once the metadata are without them`;
    case 'deleted':
      return `${stream}${place}: deleted for good`;
  }
}

/** Why a revision cannot be skipped. */
export function nothingThere(stream: string, revision: number, damages: readonly Damage[]): string {
  const known = damages.length === 0 ? 'it is whole' : damages.map(describeDamage).join('; ');
  return `Revision ${revision} of ${stream} cannot be skipped: ${known}.`;
}

/** What callers are told: they cannot help it, and trying again does not either. */
export function eventLogDamaged(stream: string, wasStored = false): DomainError {
  const stored = wasStored ? ' What was asked for was stored, and has no effect.' : '';
  const sentence = `What this is stored in was changed from outside, and an operator has to look.${stored}`;
  return Object.assign(new DomainError('unavailable', 'event_log_damaged' satisfies ErrorCode, sentence), { cause: new Error(`${stream} is damaged.`) });
}
