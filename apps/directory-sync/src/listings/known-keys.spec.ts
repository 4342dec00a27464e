import { FixedTexts, KnownKeys, Numbers } from './known-keys.ts';

it('numbers texts in the order of their coming, each once, however many there are', () => {
  const keys = new KnownKeys();
  const texts = Array.from({ length: 70_000 }, (_, index) => `key ${index}`);
  for (const [ordinal, text] of texts.entries()) expect(keys.add(text)).toEqual({ ordinal, isNew: true });
  for (const ordinal of [0, 511, 512, 65_535, 65_536, 69_999]) {
    expect(keys.find(texts[ordinal]!)).toBe(ordinal);
    expect(keys.add(texts[ordinal]!)).toEqual({ ordinal, isNew: false });
  }
  expect([keys.find('key 70000'), keys.size]).toEqual([null, 70_000]);
});

it('keeps texts of one length by number', () => {
  const texts = new FixedTexts(3);
  for (const [ordinal, text] of [
    [0, 'abc'],
    [65_535, 'xyz'],
    [65_536, '123'],
  ] as const)
    texts.set(ordinal, text);
  expect([0, 65_535, 65_536].map((ordinal) => texts.get(ordinal))).toEqual(['abc', 'xyz', '123']);
});

it('holds numbers, each once', () => {
  const numbers = new Numbers();
  for (const number of [0, 7, 8, 9_000, 7]) numbers.add(number);
  expect([0, 1, 7, 8, 9_000, 9_001, 1_000_000].map((number) => numbers.has(number))).toEqual([true, false, true, true, true, false, false]);
});
