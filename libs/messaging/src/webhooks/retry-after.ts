const SECOND = 1000;

/** Milliseconds that a `Retry-After` header asks for, as seconds or as a date; null when it is absent or makes no sense. */
export function retryAfterOf(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header)) return Number(header) * SECOND;
  const until = Date.parse(header);
  return Number.isNaN(until) || until <= now ? null : until - now;
}
