import { StartRefused } from '../start-refused.ts';
import { readSettings, settingsOf, unknownSettings } from './setting.ts';
import {
  EngineSettings,
  GatewaySettings,
  IdentitySettings,
  NotificationsSettings,
  PlatformSettings,
  ProxySettings,
  PublicAddressSettings,
  SETTINGS_CLASSES,
} from './settings.ts';

/** What production mode does not start without. */
const REQUIRED = { MASTER_KEYS: Buffer.alloc(32, 1).toString('base64'), PUBLIC_URL: 'https://id.acme.test' };
const TYPES: readonly (new () => object)[] = SETTINGS_CLASSES;

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
    expect(readSettings(GatewaySettings, {})).toMatchObject({ HOST: '127.0.0.1', PORT: 3000, RATE_LIMITS: false });
    expect(readSettings(ProxySettings, {})).toMatchObject({ TRUSTED_PROXIES: [] });
  });

  it('call an installation by what every engine takes as the beginning of a name, and MongoDB as a database of ours', () => {
    expect(readSettings(EngineSettings, {}).INSTALLATION).toBe('gatehouse');
    for (const INSTALLATION of ['a', 'staging-2', 'administration', 'x'.repeat(32)])
      expect(readSettings(EngineSettings, { INSTALLATION })).toMatchObject({ INSTALLATION });
    for (const INSTALLATION of ['admin', 'local', 'config', 'x'.repeat(33), 'Staging', '2', '-a', 'a.b', 'a_b', 'a b', '$a', 'ä'])
      expect(refusal(() => readSettings(EngineSettings, { INSTALLATION }))).toMatch(/^INSTALLATION is .*, but must be 1 to 32 of a to z, 0 to 9 and -, /);
  });

  it('are strict in production', () => {
    expect(readSettings(GatewaySettings, { GATEHOUSE_MODE: 'production' })).toMatchObject({ HOST: '0.0.0.0', RATE_LIMITS: true });
    expect(refusal(() => readSettings(PlatformSettings, { GATEHOUSE_MODE: 'production' }))).toBe(
      'MASTER_KEYS is not set, and production mode needs it: it must be a comma-separated list, each 32 bytes in base64.',
    );
    expect(refusal(() => readSettings(PublicAddressSettings, { GATEHOUSE_MODE: 'production' }))).toBe(
      'PUBLIC_URL is not set, and production mode needs it: it must be a URL that begins with http:// or https://, without query and fragment.',
    );
  });

  describe.each(TYPES.map((type) => [type.name, type] as const))('of %s', (_, type) => {
    it.each(['production\r', ' production', 'production \n', '\tproduction\r\n', '\uFEFFproduction'])('are those of production for the mode %j', (mode) => {
      expect(readSettings(type, { ...REQUIRED, GATEHOUSE_MODE: mode })).toEqual(readSettings(type, { ...REQUIRED, GATEHOUSE_MODE: 'production' }));
    });

    it.each(['prod', 'Production', 'PRODUCTION', '"production"', 'production,', 'production\r\nx', 'staging'])('refuse the mode %j', (mode) => {
      expect(refusal(() => readSettings(type, { ...REQUIRED, GATEHOUSE_MODE: mode }))).toBe(
        `GATEHOUSE_MODE is ${JSON.stringify(mode)}, but must be development or production.`,
      );
    });

    it.each(['', ' ', '\r'])('are those of development for the mode %j, which is none', (mode) => {
      expect(readSettings(type, { GATEHOUSE_MODE: mode })).toEqual(readSettings(type, {}));
    });
  });

  /** Every setting whose default depends on the mode, or that one mode demands. Who adds one adds it here. */
  const byMode: Readonly<Record<string, { readonly development: unknown; readonly production: unknown }>> = {
    OPERATIONS_PORT: { development: null, production: 9090 },
    MASTER_KEYS: { development: null, production: 'refused' },
    PUBLIC_URL: { development: 'http://localhost:3000', production: 'refused' },
    KAFKA_REPLICATION: { development: 1, production: 3 },
    CHECK_MAIL_DOMAINS: { development: false, production: true },
    S3_ENCRYPTION: { development: 'none', production: 'AES256' },
    HOST: { development: '127.0.0.1', production: '0.0.0.0' },
    RATE_LIMITS: { development: false, production: true },
    ACCESS_LOG: { development: false, production: true },
    MAIL: { development: true, production: false },
    SCIM_HOST: { development: '127.0.0.1', production: '0.0.0.0' },
    SCIM_RATE_LIMIT: { development: null, production: 100 },
    DIRECTORY_USERS_RATE_LIMIT: { development: null, production: 4 },
    APPLICATION_URL: { development: 'http://localhost:3000', production: null },
  };
  const fields = TYPES.flatMap((type) => settingsOf(type).map((field) => ({ type, field })));

  it('that depend on the mode are all known here', () => {
    const found = fields.filter(({ field }) => typeof field.default === 'object' || field.requiredIn !== undefined).map(({ field }) => field.name);
    expect(found.sort()).toEqual(Object.keys(byMode).sort());
  });

  it.each(Object.keys(byMode).flatMap((name) => ['development', 'development\r', 'production', 'production\r'].map((mode) => [name, mode] as const)))(
    'have for %s in the mode %j what the mode says',
    (name, mode) => {
      const { type } = fields.find(({ field }) => field.name === name)!;
      const { [mode.trim() as 'production']: expected } = byMode[name]!;
      if (expected === 'refused') expect(refusal(() => readSettings(type, { GATEHOUSE_MODE: mode }))).toContain(`${name} is not set`);
      else {
        const variables: Readonly<Record<string, string | undefined>> = { ...REQUIRED, GATEHOUSE_MODE: mode, [name]: undefined };
        expect((readSettings(type, variables) as Record<string, unknown>)[name]).toEqual(expected);
      }
    },
  );

  it.each(fields.map(({ type, field }) => [field.name, type, field] as const))('read %s as if nothing stood around its value', (name, type, field) => {
    // What a file of variables with Windows line ends leaves behind.
    const text = typeof field.default === 'object' ? field.default.production : field.default;
    const given = (REQUIRED as Readonly<Record<string, string>>)[name] ?? text ?? '';
    const read = (value: string): unknown => (readSettings(type, { ...REQUIRED, [name]: value }) as Record<string, unknown>)[name];
    expect(read(`\t${given}\r`)).toEqual(read(given));
  });

  it('hash passwords at a cost of 12, in production of 10 at least', () => {
    for (const GATEHOUSE_MODE of ['development', 'production'])
      expect(readSettings(IdentitySettings, { ...REQUIRED, GATEHOUSE_MODE })).toMatchObject({ PASSWORD_HASH_COST: 12 });
    const cost = (GATEHOUSE_MODE: string, PASSWORD_HASH_COST: string) => () =>
      readSettings(IdentitySettings, { ...REQUIRED, GATEHOUSE_MODE, PASSWORD_HASH_COST });
    expect(cost('production', '10')()).toMatchObject({ PASSWORD_HASH_COST: 10 });
    expect(cost('development', '4')()).toMatchObject({ PASSWORD_HASH_COST: 4 });
    expect(refusal(cost('production', '9'))).toBe('PASSWORD_HASH_COST is "9", but must be a whole number from 10 to 14.');
    expect(refusal(cost('development', '3'))).toBe('PASSWORD_HASH_COST is "3", but must be a whole number from 4 to 14.');
    for (const mode of ['development', 'production']) expect(refusal(cost(mode, '15'))).toContain('to 14.');
  });

  it('take the place of their defaults', () => {
    expect(readSettings(GatewaySettings, { PORT: ' 8080 ', RATE_LIMITS: 'on' })).toMatchObject({ PORT: 8080, RATE_LIMITS: true });
    expect(readSettings(ProxySettings, { TRUSTED_PROXIES: '10.0.0.0/8, ::1' }).TRUSTED_PROXIES).toEqual(['10.0.0.0/8', '::1']);
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
      ProxySettings,
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
