import { canonicalJson, NoCanonicalJson } from './canonical-json.ts';

describe('canonical JSON', () => {
  it('is that of the example of RFC 8785', () => {
    const value = {
      numbers: JSON.parse('[333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001]') as unknown,
      string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    };
    expect(canonicalJson(value)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it('orders names by UTF-16 code units, as the RFC has them', () => {
    const names = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6'];
    const ordered = Object.keys(JSON.parse(canonicalJson(Object.fromEntries(names.map((name, at) => [`_${name}`, at])))) as object);
    expect(ordered).toEqual(['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'].map((name) => `_${name}`));
  });

  it('does not depend on the order of writing, and leaves out what is undefined', () => {
    expect(canonicalJson({ b: [{ d: 1, c: -0 }], a: undefined })).toBe('{"b":[{"c":0,"d":1}]}');
  });

  it('is the same whether its names are in order already or not', () => {
    const ordered = { '-': 'a\\ud800', '1': [{ '10': 1, '9': 2 }], a: { b: null, c: [true, 'x"y', -0, 1e21] } };
    const text = '{"-":"a\\\\ud800","1":[{"10":1,"9":2}],"a":{"b":null,"c":[true,"x\\"y",0,1e+21]}}';
    expect(canonicalJson(ordered)).toBe(text);
    const { '-': first, '1': second, a: third } = ordered;
    expect(canonicalJson({ a: { c: third.c, b: third.b }, '1': second, '-': first })).toBe(text);
    expect(canonicalJson({ a: { b: '😀', c: 'é' } })).toBe('{"a":{"b":"😀","c":"é"}}');
    expect(canonicalJson({ a: new Date(0), b: undefined })).toBe('{"a":"1970-01-01T00:00:00.000Z"}');
  });

  it('refuses what has no one form', () => {
    for (const lone of ['\ud800', 'a\udc00', '\ud800\ud800\udc00', '\udc00\ud800']) {
      expect(() => canonicalJson({ text: lone })).toThrow(NoCanonicalJson);
      expect(() => canonicalJson({ [lone]: 1 })).toThrow(NoCanonicalJson);
    }
    expect(canonicalJson('\ud83d\ude00')).toBe('"😀"');
    for (const value of [Number.NaN, Infinity, 1n]) expect(() => canonicalJson([value])).toThrow(NoCanonicalJson);
    expect(() => canonicalJson(undefined)).toThrow(NoCanonicalJson);
  });
});
