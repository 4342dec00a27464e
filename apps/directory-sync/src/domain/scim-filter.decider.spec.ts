import { parseFilter } from '../scim/parse-filter.ts';
import { comparesTimes, fits } from './scim-filter.decider.ts';

const user = {
  id: 'directory_user_1',
  userName: 'Ada@acme.test',
  externalId: 'E-1',
  active: true,
  name: { familyName: 'O\'Hara "the" \\ great' },
  emails: [
    { value: 'ada@acme.test', type: 'work', primary: true },
    { value: 'ada@home.test', type: 'home' },
  ],
  meta: { lastModified: '2026-01-15T12:00:00.000Z' },
};

describe('a filter', () => {
  it.each([
    ['userName eq "ada@ACME.test"', true],
    ['USERNAME EQ "ada@acme.test"', true],
    ['urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ada@acme.test"', true],
    ['externalId eq "e-1"', false],
    ['externalId eq "E-1"', true],
    ['userName sw "ADA" and not (userName ew ".com")', true],
    ['userName co "acme" and (active eq false or active eq "True")', true],
    ['userName ne "ada@acme.test"', false],
    ['title pr', false],
    ['emails pr', true],
    ['emails.value eq "ada@home.test"', true],
    ['emails eq "ada@home.test"', true],
    ['emails[type eq "work"].value eq "ada@home.test"', false],
    ['emails[type eq "work" and value co "acme"]', true],
    ['meta.lastModified gt "2026-01-15T13:00:00+02:00"', true],
    ['meta.lastModified le "2026-01-15T12:00:00Z"', true],
    ['name.familyName eq "O\'Hara \\"the\\" \\\\ great"', true],
    ['title eq null', true],
  ])('%s', (text, expected) => expect(fits(user, parseFilter(text))).toBe(expected));

  it.each([
    ['Straße', 'STRASSE'],
    ['Σίσυφος', 'ΣΊΣΥΦΟΣ'],
    ['\u0130stanbul', 'i\u0307stanbul'],
    ['ﬁona', 'FIONA'],
    ['Andre\u0301', 'ANDR\u00c9'],
    [' Ada ', 'ada'],
  ])('finds %s by %s: case is no difference, and nobody else can have that name', (userName, asked) => {
    for (const op of ['eq', 'sw']) expect(fits({ userName }, parseFilter(`userName ${op} "${asked}"`))).toBe(true);
    expect(fits({ userName }, parseFilter(`userName ne "${asked}"`))).toBe(false);
    expect(fits({ externalId: userName }, parseFilter(`externalId eq "${asked}"`))).toBe(false);
  });

  it.each([
    ['meta.lastModified gt "yesterday"', false],
    ['not (meta.created le 5)', false],
    ['userName sw "a" and meta.lastModified eq null', false],
    ['urn:ietf:params:scim:schemas:core:2.0:User:meta.lastModified ge ""', false],
    ['meta.lastModified sw "2026" or meta.created pr', true],
    ['meta.lastModified lt "2026-01-15"', true],
  ])('compares times with times: %s', (text, expected) => expect(comparesTimes(parseFilter(text))).toBe(expected));

  it.each([
    'userName',
    'userName eq',
    'userName is "x"',
    '(userName eq "x"',
    'userName eq "x" and',
    `${'('.repeat(40)}userName eq "x"${')'.repeat(40)}`,
    `userName eq "${'x'.repeat(3_000)}"`,
    // What the parser would take for ever over.
    `userName eq "${'\n'.repeat(60)}`,
    Array.from({ length: 101 }, () => 'a pr').join(' or '),
  ])('is refused that cannot be read, or is too much: %#', (text) => expect(() => parseFilter(text)).toThrow('The filter cannot be read'));
});
