/** In ASCII, which most texts are, lower case is all there is to it. */
const ASCII = /^[\0-\x7f]*$/;

/**
 * The spelling in which texts are the same whatever their letters look like: compatibility forms unified (NFKC), then full case folding (`straße` is `strasse`).
 * JavaScript has no case folding; upper case between two lower cases comes to the same, except for the dotless i, which is no i.
 */
export function foldedText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const parts = text.normalize('NFKC').split('ı');
  const folded = parts.map((part) => part.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ'));
  return folded.join('ı').normalize('NFKC');
}
