/** By language; English is what all others fall back on. */
const LANGUAGES: { readonly en: string } & Readonly<Record<string, string>> = {
  en: '{{code}} is your code for {{name}}. Never tell it to anybody.',
  de: '{{code}} ist Ihr Code für {{name}}. Geben Sie ihn niemandem weiter.',
};
/** A text of 70 characters and more that are not of the alphabet of GSM costs as much as two. */
const LONGEST_NAME = 20;

/** What is written around a code. `template`: of the caller; null: our own words, in the language of the `locale` (a BCP 47 tag, or null). */
export function textOf(
  code: string,
  { template, locale, name }: { readonly template: string | null; readonly locale: string | null; readonly name: string },
): string {
  if (template !== null) return template.replaceAll('{{code}}', code);
  const wanted = locale?.split('-')[0]?.toLowerCase() ?? 'en';
  const words = Object.hasOwn(LANGUAGES, wanted) ? LANGUAGES[wanted]! : LANGUAGES.en;
  const shown = [...name].length <= LONGEST_NAME ? name : `${[...name].slice(0, LONGEST_NAME - 1).join('')}…`;
  return words.replace('{{code}}', code).replace('{{name}}', () => shown);
}
