/** Neither NUL nor half a surrogate pair: what every store, log and receiver gives back as it came. */
export function isPlainText(text: string): boolean {
  return !text.includes('\0') && isWellFormed(text);
}

// Node has it since 20; the compiler's library does not know it yet.
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}
