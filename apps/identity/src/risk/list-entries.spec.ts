import { listableValues, listedValue } from './list-entries.ts';

describe('an entry of a list', () => {
  it.each([
    ['ip_address', ' 192.0.2.1 ', '192.0.2.1'],
    ['ip_address', '::ffff:192.0.2.1', '192.0.2.1'],
    ['ip_address', '2001:DB8::1', '2001:db8::/64'],
    ['domain', 'Acme.TEST.', 'acme.test'],
    ['email', ' Ada@Acme.Test ', 'ada@acme.test'],
    ['country', 'de', 'DE'],
    ['user_agent', ' curl/8 ', 'curl/8'],
    ['device', 'd-1', 'd-1'],
    ['device_fingerprint', 'd-1', 'd-1'],
  ] as const)('has one spelling: %s %s', (type, given, value) => expect(listedValue(type, given)).toBe(value));
  it.each([
    ['ip_address', '192.0.2.1.5'],
    ['ip_address', '192.0.2.0/24'],
    ['domain', 'not a domain'],
    ['email', 'acme.test'],
    ['country', 'DEU'],
    ['device', '  '],
  ] as const)('is refused where it is nothing of the kind: %s %s', (type, given) =>
    expect(() => listedValue(type, given)).toThrow(expect.objectContaining({ code: 'invalid_radar_list_entry' })),
  );
  it('is compared with all that is known of an attempt', () =>
    expect(listableValues({ email: 'Ada@Acme.test', ipAddress: '2001:db8::9', userAgent: 'Firefox', deviceId: 'd-1' })).toEqual([
      ['ip_address', '2001:db8::/64'],
      ['domain', 'acme.test'],
      ['email', 'ada@acme.test'],
      ['device', 'd-1'],
      ['user_agent', 'Firefox'],
      ['device_fingerprint', 'd-1'],
    ]));
  it('is not compared with what nobody knows', () =>
    expect(listableValues({ email: 'no address', ipAddress: null, userAgent: '', deviceId: null })).toEqual([]));
});
