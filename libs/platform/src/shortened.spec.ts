import { shortened } from './shortened.ts';

describe('a text that is too long', () => {
  it('says that it was cut, and holds no half of a character', () => {
    expect(shortened('a'.repeat(50), 50)).toBe('a'.repeat(50));
    expect(shortened('a'.repeat(51), 50)).toBe(`${'a'.repeat(33)}… (51 characters)`);
    const cut = shortened('𝒳'.repeat(40), 50);
    expect(cut).toBe(`${'𝒳'.repeat(16)}… (80 characters)`);
    // It throws where a half is left.
    expect(() => encodeURIComponent(cut)).not.toThrow();
  });
});
