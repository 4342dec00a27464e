import { SharedReading } from './shared-reading.ts';

describe('a shared reading', () => {
  let begun: { readonly resolve: (read: number) => void; readonly reject: (error: Error) => void }[];
  let reading: SharedReading<number>;
  beforeEach(() => {
    begun = [];
    reading = new SharedReading(() => new Promise((resolve, reject) => begun.push({ resolve, reject })));
  });

  const turns = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('gives nobody what was read before they asked, and everybody who waits the same', async () => {
    const first = reading.next();
    const others = Array.from({ length: 1_000 }, async () => reading.next());
    expect(begun).toHaveLength(1);
    begun[0]!.resolve(1);
    expect(await first).toBe(1);
    await turns();
    const later = reading.next();
    expect(begun).toHaveLength(2);
    begun[1]!.resolve(2);
    expect(new Set(await Promise.all(others))).toEqual(new Set([2]));
    begun[2]!.resolve(3);
    expect(await later).toBe(3);
    const alone = reading.next();
    begun[3]!.resolve(4);
    expect(await alone).toBe(4);
  });

  it('that fails is not that of whoever came after it', async () => {
    const [first, second] = [reading.next(), reading.next()];
    begun[0]!.reject(new Error('away'));
    await expect(first).rejects.toThrow('away');
    begun[1]!.resolve(2);
    expect(await second).toBe(2);
  });
});
