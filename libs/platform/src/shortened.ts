/** At most so many UTF-16 units, and where something was left out, how much there was: nobody takes a part for the whole. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const mark = `… (${text.length} characters)`;
  const end = Math.max(0, most - mark.length);
  // No half of a character is left.
  return (/[\ud800-\udbff]$/.test(text.slice(0, end)) ? text.slice(0, end - 1) : text.slice(0, end)) + mark;
}
