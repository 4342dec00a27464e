import { bytes, dnsServer, duration, flag, hostAndPort, integer, listOf, network, oneOf, size, text } from './kinds.ts';
import { DEFAULT_MODE, MODES, Setting, type Mode } from './setting.ts';

const port = integer({ minimum: 0, maximum: 65_535 });
const masterKey = text('32 bytes in base64', /^[A-Za-z0-9+/_-]{43}=?$/);
const hostName = text('an address or a host name', /^[A-Za-z0-9.:_-]{1,253}$/);
const requests = integer({ minimum: 1, maximum: 10_000_000 });
const retention = duration({ minimum: '1h', maximum: '3650d' });
const file = text('a path', /^[^\0]+$/);
const addresses = listOf(hostAndPort);
const httpAddress = text('a URL that begins with http:// or https://, without query and fragment', /^https?:\/\/[^\s?#]{1,1000}$/);
/** Part of names at every engine. The last three are MongoDB's own databases. */
const installation = text(
  '1 to 32 of a to z, 0 to 9 and -, of which the first is a letter, and not admin, local or config',
  /^(?!(?:admin|local|config)$)[a-z][a-z0-9-]{0,31}$/,
);

/** Of two services, which are told the same. */
const MULTIPLE_ROLES = { doc: 'Whether a membership may have several roles; the same for identity and authorization.', default: 'on' } as const;

/** What every process has: where it stores, how it logs, how it stops. */
export class PlatformSettings {
  @Setting(MODES, {
    doc: '`development` prints a first key, listens on this machine only and allows http webhooks; `production` is strict.',
    default: DEFAULT_MODE,
  })
  readonly GATEHOUSE_MODE!: Mode;

  @Setting(port, {
    doc: 'Port of health and metrics; unset in development mode: the suite and the gateway answer on the port of the API.',
    default: { development: '', production: '9090' },
  })
  readonly OPERATIONS_PORT!: number | null;

  @Setting(file, { doc: 'Directory of everything that is stored, while no engines are named.', default: './data' })
  readonly DATA_DIR!: string;

  @Setting(duration({ minimum: '0s', maximum: '10m' }), {
    doc: 'How long a start waits for another process that works on `DATA_DIR` to end, before it is refused.',
    default: '30s',
  })
  readonly DATA_DIR_WAIT!: number;

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

/** The engines of a cluster. With all three of them named everything is stored there, with none in `DATA_DIR`. */
export class EngineSettings {
  @Setting(installation, {
    doc: 'What this installation is called on engines that it shares with others: its streams, topics and groups begin with it and a dot, and its database is called so. It never changes. Without engines it has no meaning.',
    default: 'gatehouse',
  })
  readonly INSTALLATION!: string;

  @Setting(text('a connection string that begins with esdb:// or esdb+discover://', /^esdb(\+discover)?:\/\/[^\s]+$/), {
    doc: 'EventStoreDB; TLS (`tls`, `tlsCAFile`) and credentials are part of the connection string. It may have every option of the driver but `keepAliveInterval` and `keepAliveTimeout`.',
    secret: true,
  })
  readonly EVENTSTORE_URL!: string | null;

  @Setting(text('a connection string that begins with mongodb:// or mongodb+srv://', /^mongodb(\+srv)?:\/\/[^\s]+$/), {
    doc: 'MongoDB; TLS and credentials are part of the connection string, its path names the database (that of `INSTALLATION` where it has none), its `authSource` the one where the user was made (that of the path, or `admin`). It may have every option of the driver but those that say what acknowledged means and how long somebody waits. Of connections a process opens 32 to each server, or `maxPoolSize`.',
    secret: true,
  })
  readonly MONGODB_URL!: string | null;

  @Setting(text('a connection string that begins with mongodb:// or mongodb+srv://', /^mongodb(\+srv)?:\/\/[^\s]+$/), {
    doc: 'MongoDB for the data keys alone, so that they are backed up apart from the rest; unset: the database of `MONGODB_URL`.',
    secret: true,
  })
  readonly KEYS_URL!: string | null;

  @Setting(listOf(text('a host and a port such as broker:9092', /^[A-Za-z0-9._-]{1,253}:\d{1,5}$/)), {
    doc: 'Kafka brokers to begin with; its driver knows no IPv6 literals.',
  })
  readonly KAFKA_BROKERS!: readonly string[] | null;
}

/** How Kafka is spoken to, by the processes that do. */
export class KafkaSettings {
  @Setting(flag, { doc: 'Whether Kafka is spoken to over TLS.', default: 'off' })
  readonly KAFKA_TLS!: boolean;

  @Setting(file, { doc: 'Certificates that Kafka must be signed by; unset: those that Node trusts.' })
  readonly KAFKA_TLS_CA!: string | null;

  @Setting(oneOf('plain', 'scram-sha-256', 'scram-sha-512'), { doc: 'How Kafka is told name and password.', default: 'scram-sha-512' })
  readonly KAFKA_SASL_MECHANISM!: 'plain' | 'scram-sha-256' | 'scram-sha-512';

  @Setting(text('1 to 255 visible characters', /^[\x21-\x7e]{1,255}$/), { doc: 'Name at Kafka; unset: none is told.' })
  readonly KAFKA_USERNAME!: string | null;

  @Setting(text('1 to 255 characters', /^.{1,255}$/), { doc: 'Password at Kafka.', secret: true })
  readonly KAFKA_PASSWORD!: string | null;

  @Setting(integer({ minimum: 1, maximum: 1_000 }), {
    doc: 'Partitions of a topic when it is created; they never change, since a key would change its partition.',
    default: '12',
  })
  readonly KAFKA_PARTITIONS!: number;

  @Setting(integer({ minimum: 1, maximum: 9 }), { doc: 'Copies of a topic when it is created.', default: { development: '1', production: '3' } })
  readonly KAFKA_REPLICATION!: number;

  @Setting(retention, { doc: 'How long topics keep messages when they are created; the feed goes back further.', default: '7d' })
  readonly KAFKA_RETENTION!: number;
}

/** Where files go that no row holds, such as listings of directories: below `DATA_DIR`, unless a bucket is named. A cluster has no `DATA_DIR`, so what needs files is refused there without. */
export class BlobSettings {
  @Setting(text('3 to 63 of a to z, 0 to 9, . and -', /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/), {
    doc: 'Bucket of S3, or of a store that speaks its protocol, for files; what lies there begins with `INSTALLATION`. A cluster without one refuses what needs files.',
  })
  readonly S3_BUCKET!: string | null;

  @Setting(text('1 to 40 of a to z, 0 to 9 and -', /^[a-z0-9-]{1,40}$/), { doc: 'Region of the bucket.', default: 'us-east-1' })
  readonly S3_REGION!: string;

  @Setting(httpAddress, { doc: 'Address of a store of your own, where the bucket is part of the path; unset: that of AWS.' })
  readonly S3_ENDPOINT!: string | null;

  @Setting(httpAddress, { doc: 'Address of the same store for those who download from it; unset: `S3_ENDPOINT`.' })
  readonly S3_PUBLIC_ENDPOINT!: string | null;

  @Setting(text('1 to 255 visible characters', /^[\x21-\x7e]{1,255}$/), {
    doc: 'Id of the key for the bucket; unset: what the SDK of AWS finds around the process, such as the role of a pod.',
  })
  readonly S3_ACCESS_KEY_ID!: string | null;

  @Setting(text('1 to 255 visible characters', /^[\x21-\x7e]{1,255}$/), { doc: 'The secret of that key.', secret: true })
  readonly S3_SECRET_ACCESS_KEY!: string | null;

  @Setting(oneOf('AES256', 'aws:kms', 'none'), {
    doc: 'How the store is asked to encrypt files; `none` leaves it to the bucket.',
    default: { development: 'none', production: 'AES256' },
  })
  readonly S3_ENCRYPTION!: 'AES256' | 'aws:kms' | 'none';

  @Setting(text('1 to 2048 visible characters', /^[\x21-\x7e]{1,2048}$/), { doc: 'The key of `aws:kms`; unset: that of the bucket.' })
  readonly S3_KMS_KEY!: string | null;
}

/** How the processes of a cluster find and trust each other. */
export class TransportSettings {
  @Setting(hostName, {
    doc: 'Address where a service listens for the gateway and other services; others than this machine need `SERVICE_KEY` or certificates.',
    default: '127.0.0.1',
  })
  readonly SERVICE_HOST!: string;

  @Setting(port, { doc: 'Port where a service listens for the gateway and other services.', default: '7400' })
  readonly SERVICE_PORT!: number;

  @Setting(text('32 to 255 visible characters', /^[\x21-\x7e]{32,255}$/), {
    doc: 'The key that all processes of a cluster share; traffic between them is encrypted under it.',
    secret: true,
  })
  readonly SERVICE_KEY!: string | null;

  @Setting(file, { doc: 'Certificate that this process shows to others, instead of `SERVICE_KEY`.' })
  readonly SERVICE_TLS_CERT!: string | null;

  @Setting(file, { doc: 'Private key of that certificate.' })
  readonly SERVICE_TLS_KEY!: string | null;

  @Setting(file, { doc: 'Certificates that others must be signed by.' })
  readonly SERVICE_TLS_CA!: string | null;

  @Setting(listOf(text('a host name', /^[A-Za-z0-9._-]{1,253}$/)), {
    doc: 'DNS names, one of which the certificate of every process carries, exactly (its common name where it has no DNS name); others that the same authority signed for are refused.',
    default: 'gatehouse',
  })
  readonly SERVICE_TLS_NAMES!: readonly string[];

  @Setting(addresses, { doc: 'Where identity listens; a name stands for all of its addresses, and is looked up again every 2 s.', default: '127.0.0.1:7401' })
  readonly IDENTITY_ADDRESS!: readonly string[];

  @Setting(addresses, { doc: 'Where notifications listens.', default: '127.0.0.1:7402' })
  readonly NOTIFICATIONS_ADDRESS!: readonly string[];

  @Setting(addresses, { doc: 'Where authorization listens.', default: '127.0.0.1:7403' })
  readonly AUTHORIZATION_ADDRESS!: readonly string[];

  @Setting(addresses, { doc: 'Where directory-sync listens.', default: '127.0.0.1:7404' })
  readonly DIRECTORY_SYNC_ADDRESS!: readonly string[];

  @Setting(addresses, { doc: 'Where audit-logs listens.', default: '127.0.0.1:7405' })
  readonly AUDIT_LOGS_ADDRESS!: readonly string[];
}

export class GatewaySettings {
  @Setting(hostName, { doc: 'Address to listen on.', default: { development: '127.0.0.1', production: '0.0.0.0' } })
  readonly HOST!: string;

  @Setting(port, { doc: 'Port of the API.', default: '3000' })
  readonly PORT!: number;

  @Setting(flag, {
    doc: 'Whether requests are counted against the limits below and those that the API document names. Limits that protect people are always on.',
    default: { development: 'off', production: 'on' },
  })
  readonly RATE_LIMITS!: boolean;

  @Setting(requests, { doc: 'Requests per second and API key; without a key, per environment and address (of IPv6, its first 64 bits).', default: '6000' })
  readonly RATE_LIMIT_PER_SECOND!: number;

  @Setting(size({ minimum: '64KiB' }), {
    doc: 'Bytes in the bodies of requests per second and API key, without a key per address: what is read takes time from everybody.',
    default: '4MiB',
  })
  readonly RATE_LIMIT_BODY_BYTES!: number;

  @Setting(requests, {
    doc: 'Reads under `/user_management` in 10 seconds, of all keys of an environment together. Not limited where it is unset.',
    default: '',
  })
  readonly RATE_LIMIT_USER_MANAGEMENT_READS!: number | null;

  @Setting(requests, {
    doc: 'Writes under `/user_management` in 10 seconds, of all keys of an environment together. Not limited where it is unset.',
    default: '',
  })
  readonly RATE_LIMIT_USER_MANAGEMENT_WRITES!: number | null;

  @Setting(duration({ minimum: '2s', maximum: '10m' }), { doc: 'After this, a request is answered 503 (or 408, while it still arrives).', default: '10s' })
  readonly REQUEST_TIMEOUT!: number;

  @Setting(flag, { doc: 'One log line per request; never bodies or keys.', default: { development: 'off', production: 'on' } })
  readonly ACCESS_LOG!: boolean;

  @Setting(retention, { doc: 'How long an `Idempotency-Key` is remembered.', default: '24h' })
  readonly IDEMPOTENCY_RETENTION!: number;
}

/** Of processes that proxies stand before. */
export class ProxySettings {
  @Setting(listOf(network), { doc: 'Proxies whose `X-Forwarded-For` is believed, by gateway and by directory-sync.', default: '' })
  readonly TRUSTED_PROXIES!: readonly string[];
}

/** Of processes whose answers say where the API is. */
export class PublicAddressSettings {
  @Setting(httpAddress, {
    doc: 'Address of this API as applications know it: tokens name it as their issuer, unless the settings of the environment name another, and answers of SCIM and of exports say by it where resources are. In development the one-process form takes its own `PORT`.',
    default: { development: 'http://localhost:3000', production: '' },
    requiredIn: 'production',
  })
  readonly PUBLIC_URL!: string;
}

export class IdentitySettings {
  @Setting(text('20 to 255 visible characters that begin with sk_', /^sk_[\x21-\x7e]{17,252}$/), {
    doc: 'A secret key that is added to the environment `development` at start if it is not there.',
    secret: true,
  })
  readonly GATEHOUSE_API_KEY!: string | null;

  @Setting(text('client_ and 1 to 100 letters or digits', /^client_[A-Za-z0-9]{1,100}$/), { doc: 'The client id that goes with `GATEHOUSE_API_KEY`.' })
  readonly GATEHOUSE_CLIENT_ID!: string | null;

  // At 14 a hash takes about a second, which is as long as an imported one may take. Below 10 whoever gets hold of hashes tries too many passwords a second.
  @Setting(
    { development: integer({ minimum: 4, maximum: 14 }), production: integer({ minimum: 10, maximum: 14 }) },
    { doc: 'The cost of bcrypt at which new passwords are hashed: one more doubles the work. Passwords that were hashed before keep theirs.', default: '12' },
  )
  readonly PASSWORD_HASH_COST!: number;

  @Setting(listOf(dnsServer), { doc: 'DNS servers that are asked about domains of organizations and of addresses; empty: those of the machine.', default: '' })
  readonly DNS_SERVERS!: readonly string[];

  @Setting(flag, {
    doc: 'Whether invitations and codes to sign in with are refused to addresses whose domain takes no mail, as far as DNS says so. Addresses that were verified are not asked about.',
    default: { development: 'off', production: 'on' },
  })
  readonly CHECK_MAIL_DOMAINS!: boolean;

  // Each event of an organization shows them all, and is less than the log takes at once.
  @Setting(integer({ minimum: 1, maximum: 1_000 }), { doc: 'Domains that one organization may have.', default: '100' })
  readonly DOMAINS_PER_ORGANIZATION!: number;

  @Setting(flag, MULTIPLE_ROLES)
  readonly MULTIPLE_ROLES!: boolean;

  @Setting(integer({ minimum: 1, maximum: 5_000 }), { doc: 'Memberships that one group may hold.', default: '5000' })
  readonly MEMBERS_PER_GROUP!: number;

  @Setting(text('1 to 32 letters', /^[A-Za-z]{1,32}$/), {
    doc: 'The word behind `urn:` in the grant types of sign-in that existing SDKs send; `gatehouse` is accepted as well.',
    default: 'workos',
  })
  readonly GRANT_TYPE_VENDOR!: string;

  @Setting(retention, { doc: 'How long it is kept who was signed in, once that is over. No answer shows it then; the log tells.', default: '30d' })
  readonly SESSIONS_RETENTION!: number;
}

/** What is sent to people. */
export class MessageSettings {
  @Setting(flag, {
    doc: 'Whether codes and links are sent by mail, of the kinds that an environment has switched on. It needs `SMTP_URL`; without it, development mode shows messages at `/dev/mailbox`.',
    default: { development: 'on', production: 'off' },
  })
  readonly MAIL!: boolean;

  @Setting(text('a URL that begins with smtp:// or smtps://', /^smtps?:\/\/[^\s]+$/), {
    doc: 'The mail server, with credentials where it wants them. In production mode `smtp://` goes on under TLS, unless it ends in `?ignoreTLS=true`.',
    secret: true,
  })
  readonly SMTP_URL!: string | null;

  @Setting(text('an email address', /^[^\s@<>,;]{1,64}@[^\s@<>,;]{1,253}$/), {
    doc: 'Whom mail is from; it is shown with the name of the environment.',
    default: 'no-reply@localhost',
  })
  readonly MAIL_FROM!: string;

  @Setting(httpAddress, {
    doc: 'Where your application is: links in answers and mail lead to its pages, `/reset-password?token=…` and `/invite?invitation_token=…`. Unset, they are paths alone.',
    default: { development: 'http://localhost:3000', production: '' },
  })
  readonly APPLICATION_URL!: string | null;
}

/** Of whatever is posted to receivers of others: events, and text messages to be delivered. */
export class WebhookSettings {
  @Setting(listOf(network), { doc: 'Private networks that webhooks may reach in production mode.', default: '' })
  readonly WEBHOOK_ALLOW_NETWORKS!: readonly string[];

  @Setting(duration({ minimum: '100ms', maximum: '60s' }), { doc: 'How long a webhook receiver may take to answer.', default: '10s' })
  readonly WEBHOOK_TIMEOUT!: number;

  @Setting(text('1 to 40 letters', /^[A-Za-z]{1,40}$/), { doc: 'The word before `-Signature` in the header that existing SDKs verify.', default: 'WorkOS' })
  readonly VENDOR_WORD!: string;
}

export class NotificationsSettings {
  @Setting(integer({ minimum: 1, maximum: 10_000 }), { doc: 'Webhook endpoints that one environment may have.', default: '100' })
  readonly WEBHOOK_ENDPOINTS_PER_ENVIRONMENT!: number;

  @Setting(retention, { doc: 'How long the events feed goes back.', default: '90d' })
  readonly EVENTS_RETENTION!: number;

  @Setting(retention, { doc: 'How long webhook deliveries are kept.', default: '30d' })
  readonly DELIVERIES_RETENTION!: number;
}

export class AuthorizationSettings {
  @Setting(flag, MULTIPLE_ROLES)
  readonly MULTIPLE_ROLES!: boolean;

  @Setting(bytes, {
    doc: 'Memory for what access checks are answered from; what was not asked for longest leaves first, and an organization larger than this answers 503.',
    default: '1GiB',
  })
  readonly ACCESS_INDEX_MEMORY!: number;

  @Setting(integer({ minimum: 1, maximum: 1_000_000_000 }), {
    doc: 'Resources of one type that an organization should have; more are created all the same, with a warning header and a metric.',
    default: '5000',
  })
  readonly RESOURCES_PER_TYPE!: number;
}

export class DirectorySyncSettings {
  @Setting(hostName, {
    doc: 'Address where directory-sync listens for SCIM, where it is a process of its own; in the suite it answers on the port of the API.',
    default: { development: '127.0.0.1', production: '0.0.0.0' },
  })
  readonly SCIM_HOST!: string;

  @Setting(port, { doc: 'Port where directory-sync listens for SCIM, where it is a process of its own.', default: '3001' })
  readonly SCIM_PORT!: number;

  // Providers give up on a directory that takes less.
  @Setting(integer({ minimum: 25, maximum: 100_000 }), {
    doc: 'SCIM requests per second and directory, and, of those that no directory lets in, per second and address (of IPv6, its first 64 bits). Not limited where it is unset.',
    default: { development: '', production: '100' },
  })
  readonly SCIM_RATE_LIMIT!: number | null;

  @Setting(requests, {
    doc: 'Requests of `GET /directory_users` per second and directory; those that name neither a directory nor a group count together. Not limited where it is unset.',
    default: { development: '', production: '4' },
  })
  readonly DIRECTORY_USERS_RATE_LIMIT!: number | null;
}

/** Every class above; the generated table and the check for misspelt names go through it. */
export const SETTINGS_CLASSES = [
  PlatformSettings,
  EngineSettings,
  KafkaSettings,
  BlobSettings,
  TransportSettings,
  GatewaySettings,
  ProxySettings,
  PublicAddressSettings,
  IdentitySettings,
  MessageSettings,
  WebhookSettings,
  NotificationsSettings,
  AuthorizationSettings,
  DirectorySyncSettings,
] as const;
