import { hashOf } from '#libs/platform/src/text-hash';
import type { Message } from './message-bus.ts';

/** All messages of a key go to the same share. */
export function shared(messages: readonly Message[], count: number): readonly (readonly Message[])[] {
  if (count === 1) return [messages];
  const shares: Message[][] = Array.from({ length: count }, () => []);
  for (const message of messages) shares[hashOf(message.key) % count]!.push(message);
  return shares;
}
