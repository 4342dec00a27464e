import { StartRefused } from '../start-refused.ts';
import { readSettings, unknownSettings } from './setting.ts';
import { GatewaySettings, IdentitySettings, NotificationsSettings, PlatformSettings, SETTINGS_CLASSES } from './settings.ts';

const refusal = (read: () => unknown): string => {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(StartRefused);
    return (error as Error).message;
  }
  throw new Error('expected a refusal');
};

describe('settings', () => {
  it('have defaults that need nothing installed', () => {
    const settings = readSettings(PlatformSettings, {});
    expect(settings).toMatchObject({ GATEHOUSE_MODE: 'development', DATA_DIR: './data', DATA_MIN_FREE: 2 ** 30, MASTER_KEYS: null, SHUTDOWN_TIMEOUT: 20_000 });
    expect(readSettings(GatewaySettings, {})).toMatchObject({ HOST: '127.0.0.1', PORT: 3000, RATE_LIMITS: false, TRUSTED_PROXIES: [] });
  });

  it('are strict in production', () => {
    expect(readSettings(GatewaySettings, { GATEHOUSE_MODE: 'production' })).toMatchObject({ HOST: '0.0.0.0', RATE_LIMITS: true });
    expect(refusal(() => readSettings(PlatformSettings, { GATEHOUSE_MODE: 'production' }))).toBe(
      'MASTER_KEYS is not set, and production mode needs it: it must be a comma-separated list, each 32 bytes in base64.',
    );
  });

  it('take the place of their defaults', () => {
    expect(readSettings(GatewaySettings, { PORT: ' 8080 ', RATE_LIMITS: 'on', TRUSTED_PROXIES: '10.0.0.0/8, ::1' })).toMatchObject({
      PORT: 8080,
      RATE_LIMITS: true,
      TRUSTED_PROXIES: ['10.0.0.0/8', '::1'],
    });
    expect(readSettings(NotificationsSettings, { EVENTS_RETENTION: '7d' }).EVENTS_RETENTION).toBe(7 * 86_400_000);
    expect(readSettings(IdentitySettings, { DNS_SERVERS: '127.0.0.1:5353,[::1]:53' }).DNS_SERVERS).toEqual(['127.0.0.1:5353', '[::1]:53']);
  });

  it('are frozen', () => {
    const settings = readSettings(GatewaySettings, {}) as { PORT: number };
    expect(() => {
      settings.PORT = 1;
    }).toThrow(TypeError);
  });

  it.each([
    [GatewaySettings, 'PORT', '70000', 'PORT is "70000", but must be a whole number from 0 to 65535.'],
    [GatewaySettings, 'RATE_LIMITS', 'no', 'RATE_LIMITS is "no", but must be on or off.'],
    [
      GatewaySettings,
      'TRUSTED_PROXIES',
      '10.0.0.0/33',
      'TRUSTED_PROXIES is "10.0.0.0/33", but must be a comma-separated list, each an address or a block such as 10.0.0.0/8.',
    ],
    [PlatformSettings, 'GATEHOUSE_MODE', 'prod', 'GATEHOUSE_MODE is "prod", but must be development or production.'],
    [PlatformSettings, 'DATA_MIN_FREE', '1 gigabyte', 'DATA_MIN_FREE is "1 gigabyte", but must be a size such as 512MiB or 1GiB.'],
    [NotificationsSettings, 'EVENTS_RETENTION', '10', 'EVENTS_RETENTION is "10", but must be a time from 1h to 3650d, such as 250ms, 30s, 5m, 24h or 90d.'],
  ] as const)('%p refuses a wrong value of %s by name, value and what is allowed', (type, name, value, message) => {
    expect(refusal(() => readSettings(type as new () => object, { [name]: value }))).toBe(message);
  });

  it('never print a secret', () => {
    expect(refusal(() => readSettings(IdentitySettings, { GATEHOUSE_API_KEY: 'hunter2' }))).not.toContain('hunter2');
  });

  it('tell a misspelt name', () => {
    expect(unknownSettings(SETTINGS_CLASSES, { GATEHOUSE_APIKEY: 'x', GATEHOUSE_MODE: 'development', PATH: '/bin' })).toEqual(['GATEHOUSE_APIKEY']);
  });
});
