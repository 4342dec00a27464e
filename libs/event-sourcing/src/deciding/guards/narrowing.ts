import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#libs/platform/src/clock';
import { unavailable, type DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { Position } from '../../log/event-store.ts';
import { StillClosing } from './closings.decider.ts';

/** How long to wait before another's intent is looked at again. */
const LOOK_AGAIN = 50;
/** A repeated command may meet its own earlier records at this many steps. */
const MOST_STEPS = 1_000;

/** The steps of whoever narrows a thing that others may hang on: takes it away, or takes away what they rely on. */
export interface Narrowing<Done> {
  /**
   * Records the intent. Answers where the stream stands with it open; null where this very command recorded it before, and it is over.
   * @throws StillClosing while another's intent is open
   */
  close(intent: string): Promise<Position | null>;
  /** Resolves once whatever `isUsed` looks at shows everything up to the position. */
  reached(position: Position): Promise<void>;
  isUsed(): Promise<boolean>;
  /** What is answered where it is used. */
  refusal(): DomainError;
  /** Decides again, and only while the intent is open; null where this very command recorded something else at this place before. */
  change(intent: string): Promise<Done | null>;
  reopen(intent: string): Promise<void>;
}

/**
 * Narrows a thing unless something hangs on it, in every order of steps of all who begin to hang on it meanwhile (`mayHang`): positions are one order. What was
 * recorded before the intent is seen here, since the look is at the intent's position or later; what is recorded behind it meets it.
 * @throws DomainError as `refusal` and as the steps do; `service_unavailable` past the deadline of the context
 */
export async function narrow<Done>(context: RequestContext, clock: Clock, steps: Narrowing<Done>): Promise<Done> {
  const { intent, position } = await closed(context, clock, steps);
  try {
    await steps.reached(position);
    if (await steps.isUsed()) throw steps.refusal();
    for (let step = 0; step < MOST_STEPS; step++) {
      const done = await steps.change(intent);
      if (done !== null) return done;
    }
    throw unavailable('What this command recorded before stands in its way.');
  } catch (error) {
    // Where it cannot be done now, whoever meets the intent does it later.
    await steps.reopen(intent).catch(() => {});
    throw error;
  }
}

async function closed(
  context: RequestContext,
  clock: Clock,
  steps: Pick<Narrowing<never>, 'close'>,
): Promise<{ readonly intent: string; readonly position: Position }> {
  for (;;) {
    // Derived: one who carries out the same command shares it, as long as it is open.
    const intent = `${context.commandId}.${context.receipt.transacts ?? 0}`;
    try {
      const position = await steps.close(intent);
      if (position !== null) return { intent, position };
    } catch (error) {
      if (!(error instanceof StillClosing)) throw error;
      if (clock.now() + LOOK_AGAIN > context.deadline) throw unavailable('Another is about to change this: try again.');
      await pause(LOOK_AGAIN);
    }
  }
}
