import { bytes, dnsServer, duration, flag, integer, listOf, network, oneOf, text } from './kinds.ts';
import { Setting, type Mode } from './setting.ts';

const port = integer({ minimum: 0, maximum: 65_535 });
const masterKey = text('32 bytes in base64', /^[A-Za-z0-9+/_-]{43}=?$/);
const hostName = text('an address or a host name', /^[A-Za-z0-9.:_-]{1,253}$/);
const retention = duration({ minimum: '1h', maximum: '3650d' });

/** What every process has: where it stores, how it logs, how it stops. */
export class PlatformSettings {
  @Setting(oneOf('development', 'production'), {
    doc: '`development` prints a first key, listens on this machine only and allows http webhooks; `production` is strict.',
    default: 'development',
  })
  readonly GATEHOUSE_MODE!: Mode;

  @Setting(text('a path', /^[^\0]+$/), { doc: 'Directory of everything that is stored.', default: './data' })
  readonly DATA_DIR!: string;

  @Setting(bytes, { doc: 'Below this much free disk, writes answer 503 `storage_full`; reads and sweeps go on.', default: '1GiB' })
  readonly DATA_MIN_FREE!: number;

  @Setting(listOf(masterKey), {
    doc: 'Keys that wrap the data keys; the first writes, all read. Without them, development mode makes one in `DATA_DIR/keys`.',
    requiredIn: 'production',
    secret: true,
  })
  readonly MASTER_KEYS!: readonly string[] | null;

  @Setting(oneOf('debug', 'info', 'warn', 'error', 'silent'), { doc: 'The least important lines that are logged.', default: 'info' })
  readonly LOG_LEVEL!: 'debug' | 'info' | 'warn' | 'error' | 'silent';

  @Setting(duration({ minimum: '1s', maximum: '10m' }), { doc: 'How long a stop waits for requests and deliveries in flight.', default: '20s' })
  readonly SHUTDOWN_TIMEOUT!: number;

  @Setting(duration({ minimum: '1s', maximum: '24h' }), { doc: 'Pause between two rounds of the sweepers.', default: '60s' })
  readonly SWEEP_INTERVAL!: number;
}

export class GatewaySettings {
  @Setting(hostName, { doc: 'Address to listen on.', default: { development: '127.0.0.1', production: '0.0.0.0' } })
  readonly HOST!: string;

  @Setting(port, { doc: 'Port of the API.', default: '3000' })
  readonly PORT!: number;

  @Setting(port, { doc: 'Port of health and metrics; unset in development mode: on the port of the API.', default: { development: '', production: '9090' } })
  readonly OPERATIONS_PORT!: number | null;

  @Setting(flag, { doc: 'The general rate limit. Limits that protect people are always on.', default: { development: 'off', production: 'on' } })
  readonly RATE_LIMITS!: boolean;

  @Setting(integer({ minimum: 1, maximum: 10_000_000 }), { doc: 'Requests per second and API key.', default: '6000' })
  readonly RATE_LIMIT_PER_SECOND!: number;

  @Setting(listOf(network), { doc: 'Proxies whose `X-Forwarded-For` is believed.', default: '' })
  readonly TRUSTED_PROXIES!: readonly string[];

  @Setting(duration({ minimum: '100ms', maximum: '10m' }), { doc: 'After this, a request is answered 503 (or 408, while it still arrives).', default: '10s' })
  readonly REQUEST_TIMEOUT!: number;

  @Setting(flag, { doc: 'One log line per request; never bodies or keys.', default: { development: 'off', production: 'on' } })
  readonly ACCESS_LOG!: boolean;

  @Setting(retention, { doc: 'How long an `Idempotency-Key` is remembered.', default: '24h' })
  readonly IDEMPOTENCY_RETENTION!: number;
}

export class IdentitySettings {
  @Setting(text('20 to 255 visible characters that begin with sk_', /^sk_[\x21-\x7e]{17,252}$/), {
    doc: 'A secret key that is added to the environment `development` at start if it is not there.',
    secret: true,
  })
  readonly GATEHOUSE_API_KEY!: string | null;

  @Setting(text('client_ and 1 to 100 letters or digits', /^client_[A-Za-z0-9]{1,100}$/), { doc: 'The client id that goes with `GATEHOUSE_API_KEY`.' })
  readonly GATEHOUSE_CLIENT_ID!: string | null;

  @Setting(listOf(dnsServer), { doc: 'DNS servers that domain verification asks; empty: those of the machine.', default: '' })
  readonly DNS_SERVERS!: readonly string[];

  @Setting(integer({ minimum: 1, maximum: 10_000 }), { doc: 'Domains that one organization may have.', default: '100' })
  readonly DOMAINS_PER_ORGANIZATION!: number;
}

export class NotificationsSettings {
  @Setting(listOf(network), { doc: 'Private networks that webhooks may reach in production mode.', default: '' })
  readonly WEBHOOK_ALLOW_NETWORKS!: readonly string[];

  @Setting(integer({ minimum: 1, maximum: 10_000 }), { doc: 'Webhook endpoints that one environment may have.', default: '100' })
  readonly WEBHOOK_ENDPOINTS_PER_ENVIRONMENT!: number;

  @Setting(duration({ minimum: '100ms', maximum: '60s' }), { doc: 'How long a webhook receiver may take to answer.', default: '10s' })
  readonly WEBHOOK_TIMEOUT!: number;

  @Setting(text('1 to 40 letters', /^[A-Za-z]{1,40}$/), { doc: 'The word before `-Signature` in the header that existing SDKs verify.', default: 'WorkOS' })
  readonly VENDOR_WORD!: string;

  @Setting(retention, { doc: 'How long the events feed goes back.', default: '90d' })
  readonly EVENTS_RETENTION!: number;

  @Setting(retention, { doc: 'How long webhook deliveries are kept.', default: '30d' })
  readonly DELIVERIES_RETENTION!: number;
}

/** Every class above; the generated table and the check for misspelt names go through it. */
export const SETTINGS_CLASSES = [PlatformSettings, GatewaySettings, IdentitySettings, NotificationsSettings] as const;
