import { RandomStock } from './random-stock.ts';

/** More than the system is asked for at once. */
const MANY = 1_000;

describe('random bytes in stock', () => {
  const stock = new RandomStock(12);

  it('are other ones each time', () => {
    const seen = new Set(Array.from({ length: MANY }, (_, index) => (index % 2 === 0 ? stock.next() : stock.look()).toString('hex')));
    expect(seen.size).toBe(MANY);
    expect([...seen].every((bytes) => bytes.length === 24)).toBe(true);
  });

  it('are in memory of their own where they are kept, and in the stock no more', () => {
    const kept = Array.from({ length: MANY }, () => stock.next());
    const texts = kept.map((bytes) => bytes.toString('hex'));
    expect(new Set(kept.map(({ buffer }) => buffer)).size).toBe(MANY);
    expect(kept.every(({ buffer }) => buffer.byteLength === 12)).toBe(true);
    const memory = Buffer.from(stock.look().buffer).toString('hex');
    expect(texts.filter((text) => memory.includes(text))).toEqual([]);
    expect(kept.map((bytes) => bytes.toString('hex'))).toEqual(texts);
  });
});
