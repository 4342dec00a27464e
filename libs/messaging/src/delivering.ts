import { setTimeout as pause } from 'node:timers/promises';
import type { Delivery, Message, Subscription } from './message-bus.ts';

/** Messages handed to a handler at once. */
export const DELIVERY = 500;
export const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 10_000;
const MAX_ATTEMPTS = 5;
const DEAD_LETTERS = '.dead';

/** How messages of a topic are brought to a member of a group. */
interface Delivering {
  readonly topic: string;
  readonly member: Subscription;
  readonly firstRetryMs: number;
  /** Keeps what failed every time. */
  readonly setAside: (message: Message) => Promise<void>;
  /** Ends the pauses between attempts; a handler in flight finishes. */
  readonly signal: AbortSignal;
}

/** How many of the messages, from the first on, were handled or set aside: all of them, unless the signal said to stop. */
export async function deliver(messages: readonly Message[], delivering: Delivering): Promise<number> {
  const { topic, member, signal } = delivering;
  const delivery = (message: Message, attempt: number): Delivery => ({ ...message, topic, attempt });
  const together = messages.map((message) => delivery(message, 1));
  const failedTogether = await failure(member, together);
  if (failedTogether === null) return messages.length;
  const isAlone = messages.length === 1;
  const attempts = Math.max(member.maxAttempts ?? MAX_ATTEMPTS, isAlone ? 1 : 2);
  // One of them is at fault: from here on one by one, so that it does not take the others with it.
  for (const [index, message] of messages.entries()) {
    let failed: Error | null = failedTogether;
    for (let attempt = 2; failed && attempt <= attempts; attempt++) {
      if (isAlone || attempt > 2) await pauseBefore(attempt, delivering);
      if (signal.aborted) return index;
      failed = await failure(member, [delivery(message, attempt)]);
    }
    if (failed && !(await isSetAside({ ...message, headers: { ...message.headers, error: failed.message } }, delivering))) return index;
  }
  return messages.length;
}

/** False when it was told to stop before that succeeded. */
async function isSetAside(message: Message, delivering: Delivering): Promise<boolean> {
  for (let attempt = 2; ; attempt++) {
    try {
      await delivering.setAside(message);
      return true;
    } catch {
      // Going on without it would lose it.
      await pauseBefore(attempt, delivering);
      if (delivering.signal.aborted) return false;
    }
  }
}

async function pauseBefore(attempt: number, { firstRetryMs, signal }: Delivering): Promise<void> {
  await pause(Math.min(firstRetryMs * 2 ** (attempt - 2), LAST_RETRY_MS), undefined, { signal }).catch(() => undefined);
}

async function failure(member: Subscription, deliveries: readonly Delivery[]): Promise<Error | null> {
  try {
    await member.handle(deliveries);
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Dead letters are for whoever names their topic. */
export function matches({ topics }: Pick<Subscription, 'topics'>, topic: string): boolean {
  return topics.some((name) => (name.endsWith('*') ? topic.startsWith(name.slice(0, -1)) && !topic.endsWith(DEAD_LETTERS) : topic === name));
}

export function deadLetterTopic(topic: string, group: string): string {
  return `${topic}.${group}${DEAD_LETTERS}`;
}
