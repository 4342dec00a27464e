import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import type { Positions } from '#libs/platform/src/positions';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { Reaction } from '../../following/reaction.ts';
import type { EventStore, Position, RecordedEvent } from '../../log/event-store.ts';
import type { Fact, Recorded } from '../decider.ts';
import { changesClosings, closingIn, isAbandoned } from './closings.decider.ts';

/** Declares what begins to hang on other things, and how it ends where it may not. */
export interface Hanging<Event extends Fact = Fact> {
  /** The facts by which it begins. */
  readonly begins: readonly Event['type'][];
  /** What it hangs on, by rows that show at least the event: the id, and whether it is there and allows it. */
  hangsOn(event: Recorded<Event>): Promise<readonly { readonly id: string; readonly allows: boolean }[]>;
  /** Takes back what the event recorded; nothing where that was done. */
  undo(event: Recorded<Event>): Promise<unknown>;
}

interface Needs {
  readonly events: EventStore;
  readonly readModels: ReadModels;
  readonly positions: Positions;
  readonly clock: Clock;
}

/** How long the rows may take to show what the log tells of. */
const ROWS_TIMEOUT_MS = 10_000;
/** How long an intent is looked at before everything else waits for it, and how often. */
const [BRIEFLY, LOOK_AGAIN] = [500, 25];

/**
 * The cascade of what is gone, for what is recorded behind it: looks, for each beginning, whether everything that it hangs on was there and open at its position,
 * and takes it back otherwise. Whoever records it does the same before it is answered (`mayHang`); this stands in for those that died between the two.
 *
 * `closed`: the kinds of things that intents close. The log tells of them in the order of positions, so what is open when a beginning comes by was open there.
 */
export function undoWhatMayNotHang(name: string, closed: readonly string[], hangings: readonly Hanging[], needs: Needs): Reaction {
  const { events, readModels, positions, clock } = needs;
  const table = readModels.table<never>({ name: `closings-${name}`, indexes: [], rebuildable: false });
  const begins = hangings.flatMap((hanging) => hanging.begins);
  /** Up to here the rows show the log: one look at its end serves all events before it. */
  let shown: Position = '';
  return {
    name,
    from: 'head',
    handles: [...begins, ...closed.flatMap((thing) => [`${thing}.closing`, `${thing}.reopened`, `${thing}.deleted`])],
    react: async (event) => {
      const { type, position, meta } = event;
      const { environment } = meta;
      if (!begins.includes(type)) {
        const { id, intent } = closingIn(event);
        const text = type.endsWith('.closing') ? JSON.stringify({ intent }) : null;
        return table.write([{ environment, id, position, revision: 0, text }]);
      }
      if (position > shown) {
        const head = await events.head();
        await positions.reached(head, clock.now() + ROWS_TIMEOUT_MS);
        shown = head;
      }
      const hanging = hangings.find(({ begins }) => begins.includes(type))!;
      const above = await hanging.hangsOn(event);
      const open = await table.getMany(
        environment,
        above.map(({ id }) => id),
      );
      if (open.some((row) => row !== null) || above.some(({ allows }) => !allows)) await hanging.undo(event);
    },
  };
}

/** Ends the intents whose owners died, where nobody else comes across them. */
export function reopenWhatWasLeftClosed(
  name: string,
  reopenings: Readonly<Record<string, (event: RecordedEvent) => Promise<unknown>>>,
  { events, clock }: Pick<Needs, 'events' | 'clock'>,
): Reaction {
  return {
    name,
    handles: Object.keys(reopenings).map((thing) => `${thing}.closing`),
    react: async (event) => {
      const { type, stream, version, meta } = event;
      const { id } = closingIn(event);
      for (const until = clock.now() + BRIEFLY; ; await pause(LOOK_AGAIN)) {
        const later = await events.read(stream, version + 1);
        if (later.some((record) => changesClosings(record.type) && closingIn(record).id === id)) return;
        const now = clock.now();
        if (isAbandoned({ intent: '', at: new Date(meta.at).toISOString() }, now)) return void (await reopenings[type.slice(0, -'.closing'.length)]!(event));
        // Asked again after a pause that ends with the process.
        if (now > until) throw unavailable('An intent is still open.');
      }
    },
  };
}
