import { allowedDomainName, domainName } from './domain-name.ts';

describe('the name of a domain', () => {
  it.each([
    ['acme.test', 'acme.test'],
    ['ACME.Test', 'acme.test'],
    [' acme.test ', 'acme.test'],
    ['acme.test.', 'acme.test'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['BÜCHER.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
    ['a.b.c.acme-corp.test', 'a.b.c.acme-corp.test'],
    ['1.acme.test', '1.acme.test'],
    [`${'a'.repeat(63)}.test`, `${'a'.repeat(63)}.test`],
  ])('is %s → %s', (given, name) => expect(domainName(given)).toBe(name));

  it.each([
    '',
    '.',
    'localhost',
    'test',
    '.test',
    'acme..test',
    'acme.test..',
    '-acme.test',
    'acme-.test',
    'acme.test-',
    'ac_me.test',
    'acme test',
    'acme.test/path',
    'https://acme.test',
    'user@acme.test',
    'acme.test:443',
    '%61cme.test',
    'acme.test\u0000',
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '[::1]',
    '::1',
    'acme.123',
    'xn--a.test',
    '*.acme.test',
    `${'a'.repeat(64)}.test`,
    `${'a.'.repeat(126)}test`,
  ])('is not %j', (given) => expect(domainName(given)).toBeNull());

  it.each(['gmail.com', 'GMAIL.com.', 'hotmail.com', 'yahoo.com'])('is refused where everybody has addresses: %s', (given) =>
    expect(() => allowedDomainName(given)).toThrow(expect.objectContaining({ code: 'domain_not_allowed' })),
  );

  it('is allowed below a name under which companies register', () => expect(allowedDomainName('acme.net.ua')).toBe('acme.net.ua'));

  it('names the field that is refused', () =>
    expect(() => allowedDomainName('gmail', 'domain_data.3.domain')).toThrow(
      expect.objectContaining({ details: { errors: [expect.objectContaining({ code: 'malformed_domain', field: 'domain_data.3.domain' })] } }),
    ));
});
