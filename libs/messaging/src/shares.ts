import type { Message } from './message-bus.ts';

/** All messages of a key go to the same share. */
export function shared(messages: readonly Message[], count: number): readonly (readonly Message[])[] {
  if (count === 1) return [messages];
  const shares: Message[][] = Array.from({ length: count }, () => []);
  for (const message of messages) shares[hash(message.key) % count]!.push(message);
  return shares;
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}
