import { constants, deflateRawSync, inflateRawSync } from 'node:zlib';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import { Deflater, Inflater } from './deflate.ts';

const FIRST = 'what the dictionary says at its beginning alone';
const dictionary = Buffer.from(
  FIRST + '"role":"member","status":"active"{"action":"document.shared","actor":{"id":"user_01","metadata":{},"name":null,"type":"user"}}'.repeat(12),
);
const inflater = new Inflater(dictionary, 3_800);
/** By zlib and by our own code, which have to say the same. */
function inflated(bytes: Uint8Array): string {
  const text = inflateRawSync(bytes, { dictionary, windowBits: 12 }).toString();
  expect(inflater.inflate(bytes)).toBe(text);
  return text;
}

describe('a text that was deflated', () => {
  const deflater = new Deflater(dictionary);

  it.each([
    ['nothing', ''],
    ['less than is looked for', '{"a'],
    ['the dictionary itself', dictionary.toString()],
    ['what the dictionary ends with, and more than a repeat can say at once', `"user"}}${'x'.repeat(1_000)}`],
    ['characters of every length', 'aä€𝒳'.repeat(50)],
    ['as much as there is room for', 'z'.repeat(deflater.longest)],
    ['bytes of nine bits', '\u00ff'.repeat(2) + Array.from({ length: 500 }, (_, index) => String.fromCharCode(0x80 + ((index * 37) % 0x700))).join('')],
  ])('inflates again: %s', (_what, text) => {
    expect(inflated(deflater.deflate(text)!)).toBe(text);
  });

  it('says nothing by what lies outside of the window', () => {
    const text = 'z'.repeat(deflater.longest - FIRST.length) + FIRST;
    const deflated = deflater.deflate(text)!;
    expect(inflated(deflated)).toBe(text);
    expect(deflated.length).toBeLessThan(FIRST.length);
  });

  it('is not taken where it is too long', () => {
    expect(deflater.deflate('z'.repeat(deflater.longest + 1))).toBeNull();
    expect(deflater.deflate('ä'.repeat(deflater.longest / 2 + 1))).toBeNull();
  });

  it('inflates again, whatever it and those before it say, in a window of 4 KiB', () => {
    const chosen = seededNumbers(seedOf('deflated texts'));
    const shared = dictionary.toString();
    for (let round = 0; round < 2_000; round++) {
      const [most, letters] = [chosen(deflater.longest), 1 + chosen(600)];
      let text = '';
      while (Buffer.byteLength(text) < most)
        switch (chosen(3)) {
          case 0:
            text += shared.slice(chosen(shared.length)).slice(0, 1 + chosen(300));
            break;
          case 1:
            text += text.slice(chosen(text.length + 1)).slice(0, 1 + chosen(500));
            break;
          default:
            text += String.fromCharCode(32 + chosen(letters));
        }
      const deflated = deflater.deflate(text);
      expect(deflated === null).toBe(Buffer.byteLength(text) > deflater.longest);
      if (deflated !== null) expect(inflated(deflated)).toBe(text);
    }
  });

  it('takes half the room where half of it is in the dictionary', () => {
    const text =
      '{"action":"document.viewed","actor":{"id":"user_01M83J2HJ8CFYP3SM0TM140000","metadata":{"role":"member"},"name":"Ada Lovelace","type":"user"}}';
    expect(deflater.deflate(text)!.length).toBeLessThan(Buffer.byteLength(text) * 0.55);
  });

  it('is right also after a million others, when the places of the first are counted from the beginning', () => {
    const own = new Deflater(dictionary);
    own.deflate('abcdwxyz');
    for (let times = 0; times < 2 ** 20 - 1; times++) own.deflate('{"a"');
    // What is looked for at its beginning stood further behind in the first.
    expect(inflated(own.deflate('wxyzwxyz')!)).toBe('wxyzwxyz');
  });
});

describe('what is inflated', () => {
  const content = '{"action":"document.shared","actor":{"id":"user_01M83J2HJ8CFYP3SM0TM140000"},"metadata":{"plan":"enterprise"}}'.repeat(3);
  const byZlib = (text: string, strategy: number): Buffer => deflateRawSync(text, { dictionary, windowBits: 12, memLevel: 4, strategy });

  it('may have been written by zlib, with the same codes', () => {
    const lengths = Array.from({ length: 300 }, (_, length) => `${length}${'x'.repeat(length)}`).join('');
    for (const text of ['', content, dictionary.toString(), 'aä€𝒳'.repeat(50), lengths.slice(0, 3_800)])
      expect(inflater.inflate(byZlib(text, constants.Z_FIXED))).toBe(text);
  });

  it('is left to zlib where it has other codes, as most that earlier releases have written', () => {
    const other = byZlib(Array.from({ length: 600 }, (_, index) => String.fromCharCode(97 + ((index * index) % 7))).join(''), constants.Z_HUFFMAN_ONLY);
    expect(inflater.inflate(other)).toBeNull();
    expect(inflateRawSync(other, { dictionary }).length).toBe(600);
  });

  it('is left to zlib where it is longer than there is room for', () => {
    expect(inflater.inflate(byZlib('x'.repeat(3_800), constants.Z_FIXED))).toBe('x'.repeat(3_800));
    for (const text of ['x'.repeat(3_801), `${'x'.repeat(3_799)}ä`]) expect(inflater.inflate(byZlib(text, constants.Z_FIXED))).toBeNull();
  });

  it('is nothing where it is cut short, wherever, or points before the dictionary', () => {
    const whole = Uint8Array.from(new Deflater(dictionary).deflate(content)!);
    for (let length = 0; length < whole.length; length++) expect(inflater.inflate(whole.subarray(0, length))).toBeNull();
    expect(new Inflater(Buffer.from('short'), 3_800).inflate(whole)).toBeNull();
  });

  it('is never read otherwise than zlib does, whatever it is', () => {
    const chosen = seededNumbers(seedOf('inflated noise'));
    for (let round = 0; round < 5_000; round++) {
      const noise = Uint8Array.from({ length: 1 + chosen(60) }, () => chosen(256));
      noise[0] = (noise[0]! & ~0b111) | 0b011;
      const read = inflater.inflate(noise);
      if (read !== null) expect(inflateRawSync(noise, { dictionary }).toString()).toBe(read);
    }
  });
});
