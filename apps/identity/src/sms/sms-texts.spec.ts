import { textOf } from './sms-texts.ts';

const textFor = (fields: { readonly template?: string; readonly locale?: string; readonly name?: string }): string =>
  textOf('042042', { template: null, locale: null, name: 'Acme', ...fields });

it('a text is in the language of the user, or in English, with a name of bounded length', () => {
  expect(textFor({})).toBe('042042 is your code for Acme. Never tell it to anybody.');
  expect(textFor({ locale: 'de-AT' })).toBe('042042 ist Ihr Code für Acme. Geben Sie ihn niemandem weiter.');
  expect(textFor({ locale: 'constructor' })).toBe(textFor({}));
  expect(textFor({ name: 'Acme {{code}} $& and all its daughters' })).toBe('042042 is your code for Acme {{code}} $& an…. Never tell it to anybody.');
});

it('a text is as the caller wants it, with the code wherever it is to stand', () =>
  expect(textFor({ template: '{{code}}: for {{name}}, and again {{code}}' })).toBe('042042: for {{name}}, and again 042042'));
