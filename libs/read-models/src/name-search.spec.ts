import { searchKeys, searchWords } from './name-search.ts';

describe('the keys under which a name is found', () => {
  it('are the beginnings of its words, each once', () => expect(searchKeys('  Abc  ab ')).toEqual(['a', 'ab', 'abc']));

  it('are the same for every spelling of a letter', () => {
    expect(searchKeys('ＡＢ')).toEqual(searchKeys('ab'));
    expect(searchKeys('E\u0301')).toEqual(searchKeys('É'));
    expect(searchKeys('ÉCOLE')).toEqual(expect.arrayContaining([...searchWords('éco')]));
    expect(searchKeys('Straße')).toEqual(searchKeys('STRASSE'));
  });

  it('never cut a character in two', () => expect(searchKeys('🏢🏭')).toEqual(['🏢', '🏢🏭']));

  it('are those of 8 words', () => expect(searchKeys('1 2 3 4 5 6 7 8 9')).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']));

  it('are at most 256, whatever a letter stands for', () => {
    expect(searchKeys('x'.repeat(256))).toHaveLength(256);
    expect(searchKeys('ﷺ'.repeat(255)).length).toBeLessThanOrEqual(256);
  });

  it('are none for a name without words', () => expect(searchKeys('   ')).toEqual([]));
});

describe('the words of a search', () => {
  it('are each taken once, the longest first', () => expect(searchWords(' a  CORP\ta ac\u00a0')).toEqual(['corp', 'ac', 'a']));
  it('are none for white space', () => expect(searchWords(' \n ')).toEqual([]));
});
