/** A month of UTC, counted from January 1970. */
export type Month = number;

export function monthOf(time: number): Month {
  const date = new Date(time);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}
