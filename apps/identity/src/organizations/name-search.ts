const WORDS = 8;
/** What a name of 255 characters can have; compatibility forms may be longer than what they stand for. */
const MAX_KEYS = 255;

/** The spelling in which names are compared: compatibility forms unified, then lower case. */
function folded(text: string): string {
  return text.normalize('NFKC').toLowerCase().trim();
}

/** Every beginning of each of the first 8 words: what `search` finds a name under. */
export function searchKeys(name: string): readonly string[] {
  const keys = new Set<string>();
  for (const word of folded(name).split(/\s+/u, WORDS)) {
    let prefix = '';
    for (const character of word) {
      if (keys.size === MAX_KEYS) return [...keys];
      keys.add((prefix += character));
    }
  }
  return [...keys];
}

/** The key that a search looks under. Words are found one at a time, so one with a space in it finds nothing. */
export function searchKey(search: string): string {
  return folded(search);
}
