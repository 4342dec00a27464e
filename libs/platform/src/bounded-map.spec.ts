import { BoundedMap } from './bounded-map.ts';

describe('a bounded map', () => {
  const HERE = 'here';
  const filled = (most: number, keys: string): BoundedMap<string> => {
    const map = new BoundedMap<string>(most);
    for (const key of keys) map.set(HERE, key, `${key}!`);
    return map;
  };
  const keptOf = (map: BoundedMap<string>, environment = HERE): string => [...'abcdefgh'].filter((key) => map.get(environment, key) !== undefined).join('');

  it('keeps what came last', () => expect(keptOf(filled(3, 'abcdefg'))).toBe('efg'));

  it('puts nobody out for one that it has', () => {
    const map = filled(3, 'abc');
    map.set(HERE, 'a', 'another');
    expect([keptOf(map), map.get(HERE, 'a')]).toEqual(['abc', 'another']);
  });

  it('keeps environments apart, and counts them together', () => {
    const map = filled(3, 'abc');
    map.set('there', 'a', 'of there');
    expect([keptOf(map), keptOf(map, 'there')]).toEqual(['bc', 'a']);
    map.delete('there', 'b');
    map.delete(HERE, 'c');
    expect([keptOf(map), keptOf(map, 'there')]).toEqual(['b', 'a']);
  });

  it('is never fuller than it may be, also where keys leave and come again', () => {
    const map = filled(3, 'abc');
    for (const key of 'abacabcabbdaebca') {
      map.delete(HERE, key);
      for (const other of [key, 'h', key]) map.set(HERE, other, other);
      expect(keptOf(map).length).toBeLessThanOrEqual(3);
      expect(map.get(HERE, key)).toBe(key);
    }
  });

  it('begins anew when it was cleared', () => {
    const map = filled(3, 'abcd');
    map.clear();
    expect(keptOf(map)).toBe('');
    for (const key of 'efgh') map.set(HERE, key, key);
    expect(keptOf(map)).toBe('fgh');
  });
});
