import { newUlid } from './ids.ts';
import { compareUlids, hashOfUlid, readUlid, ulidOf } from './ulid-words.ts';

const ids = [
  'thing_00000000000000000000000000',
  'thing_7ZZZZZZZZZZZZZZZZZZZZZZZZZ',
  'thing_0123456789ABCDEFGHJKMNPQRS',
  'thing_7TVWXYZ0000000000000000001',
  ...Array.from({ length: 200 }, (_, index) => `thing_${newUlid(index ** 5)}`),
];

const wordsOf = (id: string): Uint32Array => {
  const words = new Uint32Array(4);
  expect(readUlid('thing', id, words)).toBe(true);
  return words;
};

it('an id comes back from its words', () => {
  for (const id of ids) expect(`thing_${ulidOf(wordsOf(id), 0)}`).toBe(id);
});

it('words are in the order of the ids', () => {
  const sorted = ids.toSorted((one, other) => compareUlids(wordsOf(one), 0, wordsOf(other), 0));
  expect(sorted).toEqual(ids.toSorted());
});

it('hashes of ids that differ little differ', () => {
  expect(new Set(ids.map((id) => hashOfUlid(wordsOf(id), 0))).size).toBe(new Set(ids).size);
});

it.each([
  'thing_8ZZZZZZZZZZZZZZZZZZZZZZZZZ',
  'thing_0123456789ABCDEFGHJKMNPQRI',
  'thing_0123456789ABCDEFGHJKMNPQR',
  'thing_0123456789ABCDEFGHJKMNPQRST',
  'thing-0123456789ABCDEFGHJKMNPQRS',
  'thong_0123456789ABCDEFGHJKMNPQRS',
  'thing_0123456789abcdefghjkmnpqrs',
  'thing_0123456789ABCDEFGHJKMNPQR\u0130',
  'thing_0123456789ABCDEFGHJKMNPQR\u2030',
  '',
])('%j is no such id', (id) => {
  expect(readUlid('thing', id, new Uint32Array(4))).toBe(false);
});
