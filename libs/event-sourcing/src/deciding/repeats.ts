import type { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { timeOfId } from '#libs/platform/src/ids';
import { HANDED_ON_AFTER, type RequestContext } from '#libs/platform/src/request-context';
import type { EventStore, RecordedEvent } from '../log/event-store.ts';
import { EARLIER } from './records.ts';

const PAGE = 100;
/** So many records are read: where none of them is the command's, nobody can tell whether an older one is. */
const MOST = 10_000;

/** What a command does to one stream, by the id that its first record there has whenever it is carried out. */
export interface Call {
  readonly context: RequestContext;
  readonly firstId: string;
}

interface StreamSearch {
  readonly calls: readonly Call[];
  /** Versions up to this one hold none of them. */
  readonly after?: number;
  /** Where to begin: unset, the end of the stream. */
  readonly upTo?: number;
}

interface Found {
  /** What is recorded of each call that was carried out, by its first id; the newest first. */
  readonly records: ReadonlyMap<string, readonly RecordedEvent[]>;
  /** Nobody can tell of these, by their first ids. */
  readonly unknown: ReadonlySet<string>;
}

/**
 * Whether a command may have been carried out already, by whoever was asked before or instead. To be asked after the state was read: while a command is young nobody
 * else has been asked for it, and whatever anybody appends later is met by the version of the stream.
 */
export function mayHaveRun({ attempt = 1, sentAt = Infinity }: RequestContext): boolean {
  return attempt > 1 || performance.now() - sentAt > HANDED_ON_AFTER;
}

/**
 * Looks for calls in what a stream has recorded, backwards, until it meets a record that is older than the command.
 * @throws DomainError `service_unavailable` past all of their deadlines
 */
export async function recordedCalls(
  { events, clock }: { readonly events: EventStore; readonly clock: Clock },
  stream: string,
  { calls, after = 0, upTo }: StreamSearch,
): Promise<Found> {
  const open = new Map(calls.map((call) => [call.firstId, call]));
  const records = new Map<string, RecordedEvent[]>();
  const commands = new Map<string, RecordedEvent[]>(calls.map(({ context }) => [context.commandId, []]));
  let read = 0;
  for (let from = upTo; open.size > 0 && (from === undefined || from > after);) {
    if (read >= MOST) return { records, unknown: new Set(open.keys()) };
    if ([...open.values()].every(({ context }) => clock.now() > context.deadline))
      throw unavailable('It cannot be told in time whether this was done already.');
    const page = await events.readBackwards(stream, PAGE, from);
    if (page.length === 0) break;
    read += page.length;
    let oldest = Infinity;
    for (const record of page) {
      oldest = Math.min(oldest, record.meta.at);
      commands.get(record.meta.commandId)?.push(record);
      const call = open.get(record.id);
      if (call === undefined) continue;
      records.set(record.id, commands.get(call.context.commandId)!);
      open.delete(record.id);
    }
    for (const { context, firstId } of open.values()) if (oldest < timeOfId(context.commandId) - EARLIER) open.delete(firstId);
    from = page.at(-1)!.version - 1;
  }
  return { records, unknown: new Set() };
}

export function outcomeUnknown(): DomainError {
  const message = 'Nobody can tell any more whether this command was carried out: look, and ask under another key where it was not.';
  return new DomainError('conflict', 'idempotency_outcome_unknown', message);
}
