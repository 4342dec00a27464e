import { foldedText } from './folded-text.decider.ts';

describe('the folded spelling of a text', () => {
  it.each([
    ['Straße', 'STRASSE', 'strasse', 'STRA\u1e9eE'],
    ['ﬁre', 'FIRE', 'fire'],
    ['ΣΊΣΥΦΟΣ', 'σίσυφος', 'Σίσυφοσ'],
    ['É', 'é', 'e\u0301', 'E\u0301'],
    ['ＡＢ', 'ab', 'AB'],
    ['Ǆ', 'ǅ', 'ǆ', 'DŽ'],
    ['ᾳ', 'αι', 'ΑΙ'],
  ])('is the same for %s and others that mean it', (...same) => expect(new Set(same.map(foldedText)).size).toBe(1));

  it.each([
    ['i', 'ı'],
    ['e', 'é'],
    ['a', 'b'],
  ])('keeps %s and %s apart', (one, other) => expect(foldedText(one)).not.toBe(foldedText(other)));

  it('is its own folded spelling, for every character', () => {
    for (let code = 0; code < 0x20000; code++) {
      if (code >= 0xd800 && code < 0xe000) continue;
      const folded = foldedText(String.fromCodePoint(code));
      if (foldedText(folded) !== folded) throw new Error(`${code.toString(16)} folds to ${folded}, and that to ${foldedText(folded)}.`);
    }
  });
});
