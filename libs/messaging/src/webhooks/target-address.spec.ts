import { TargetRule } from './target-address.ts';

const production = new TargetRule({ mode: 'production', allowNetworks: [] });
const development = new TargetRule({ mode: 'development', allowNetworks: [] });
const allowing = new TargetRule({ mode: 'production', allowNetworks: ['10.1.0.0/16', 'fd00::/8', '127.0.0.5', '169.254.0.0/16'] });

describe('the target rule', () => {
  const anyone = ['1.1.1.1', '2606:4700::1111', '::ffff:1.1.1.1', '64:ff9b::101:101', '2002:101:101::1'];
  it.each(anyone)('lets webhooks reach %s', (address) => expect([production.allows(address), development.allows(address)]).toEqual([true, true]));

  const neighbours = [
    '127.0.0.1',
    '127.8.9.10',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '::1',
    'fc00::1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '::7f00:1',
  ];
  it.each(neighbours)('keeps %s for development', (address) => expect([production.allows(address), development.allows(address)]).toEqual([false, true]));

  const nobody = [
    ...[
      '169.254.169.254',
      '169.254.170.2',
      'fe80::1',
      'fe80::1%eth0',
      '::ffff:169.254.169.254',
      '64:ff9b::a9fe:a9fe',
      '2002:a9fe:a9fe::',
      'fd00:ec2::254',
      '100.100.100.200',
      '168.63.129.16',
      '192.0.0.192',
    ],
    ...[
      '0.0.0.0',
      '::',
      '255.255.255.255',
      '224.0.0.1',
      'ff02::1',
      '240.0.0.1',
      '192.0.2.1',
      '2001:db8::1',
      '2001::1',
      '64:ff9b:1::7f00:1',
      '4000::1',
      'fec0::1',
      'localhost',
      'not an address',
      '',
    ],
  ];
  it.each(nobody)('never lets them reach %j', (address) => expect([production.allows(address), development.allows(address)]).toEqual([false, false]));

  it.each([
    ['10.1.2.3', true],
    ['::ffff:10.1.2.3', true],
    ['10.2.0.1', false],
    ['127.0.0.5', true],
    ['127.0.0.6', false],
    ['fd12::1', true],
    ['169.254.169.254', false],
    ['fd00:ec2::254', false],
  ])('allows %s in named networks: %s', (address, allowed) => expect(allowing.allows(address)).toBe(allowed));
});

describe('the URL of an endpoint', () => {
  it.each([
    ['https://ACME.test', 'https://acme.test/'],
    ['https://acme.test:443/a?b=c#d', 'https://acme.test/a?b=c'],
    ['https://bücher.example/x', 'https://xn--bcher-kva.example/x'],
    ['https://1.1.1.1/x', 'https://1.1.1.1/x'],
  ])('%s is %s', (given, normalised) => expect(production.url(given).normalised_url).toBe(normalised));

  it.each([
    ['https://ACME.test', 'https://acme.test/'],
    ['https://acme.test:443/a/../b?b=c#d', 'https://acme.test/b?b=c#d'],
    ['https://acme.test/ü?q=<>', 'https://acme.test/%C3%BC?q=%3C%3E'],
    ['https:acme.test', 'https://acme.test/'],
  ])('is shown for %s as %s', (given, shown) => expect(production.url(given).endpoint_url).toBe(shown));

  it.each([
    ' https://acme.test/',
    'https://acme.test/\n',
    'https://ac\tme.test/',
    'https://acme.test/a\u00a0b',
    'https://acme.test/\u0007',
    'https:\\\\acme.test\\',
  ])('misleads nobody: %j', (url) => expect(() => development.url(url)).toThrow('spaces, control characters or backslashes'));

  it('names no port 0', () => expect(() => development.url('https://acme.test:0/')).toThrow('port 0'));

  const loopback = [
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '127.1',
    '0177.0.0.1',
    '[::ffff:127.0.0.1]',
    '[::1]',
    '[::127.0.0.1]',
    'localhost',
    'LOCALHOST.',
    'api.localhost',
    '127.0.0.1.',
    '①②⑦.0.0.1',
    '127%2e0.0.1',
  ];
  it.each(loopback)('may name this machine as %s in development only', (host) => {
    expect(() => production.url(`https://${host}/`)).toThrow('may not reach');
    expect(development.url(`http://${host}:8080/`).endpoint_url).toMatch(/^http:/);
  });

  it.each(['https://0.0.0.0/', 'https://0/', 'https://169.254.169.254/', 'https://[fe80::1]/', 'https://[::ffff:169.254.169.254]/'])('is never %s', (url) => {
    expect(() => development.url(url)).toThrow('may not reach');
  });

  it.each(['', 'acme', 'acme.test/hooks', '/hooks', 'ftp://acme.test', 'file:///etc/passwd', 'https://', 'javascript:alert(1)'])('is not %j', (url) =>
    expect(() => development.url(url)).toThrow('is not an https URL'),
  );

  it('is not http in production', () => expect(() => production.url('http://acme.test/')).toThrow('https://'));
  it.each(['https://user@acme.test/', 'https://user:secret@acme.test/', 'https://:secret@acme.test/', 'https://@acme.test/', 'https:@acme.test/'])(
    'holds no credentials: %s',
    (url) => expect(() => development.url(url)).toThrow('credentials'),
  );
});
