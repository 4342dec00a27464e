import { Kafka, logLevel } from 'kafkajs';
import { unavailable, type DomainError } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';

const CONNECT_MS = 3_000;
/** An answer that takes longer is asked for again. */
const REQUEST_MS = 5_000;

export interface KafkaOptions {
  /** `host:port` of some of the brokers; the others are found through them. */
  readonly brokers: readonly string[];
  /** Whose topics these are; the brokers may have those of others. */
  readonly installation: string;
  /** Null: in clear. `ca` is the text of certificates to trust in place of those of the system. */
  readonly tls: { readonly ca: string | null } | null;
  readonly sasl: { readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; readonly username: string; readonly password: string } | null;
  /** Of topics that are created here; those of a topic that exists stay as they are. */
  readonly partitions: number;
  readonly replication: number;
  readonly retentionMs: number;
  readonly clientId: string;
  readonly log: Log;
}

/** What a topic is called at the brokers, where rights are granted on a prefix. */
export function storedName(name: string, { installation }: Pick<KafkaOptions, 'installation'>): string {
  return `${installation}.${name}`;
}

/** A client of its own for each producer: one that failed is thrown away with its connections. */
export function newClient({ brokers, tls, sasl, clientId, log }: KafkaOptions): Kafka {
  return new Kafka({
    brokers: [...brokers],
    clientId,
    ssl: tls === null ? false : tls.ca === null ? true : { ca: [tls.ca] },
    // Made anew, since the client keeps notes in it.
    ...(sasl !== null && { sasl: { ...sasl } as never }),
    connectionTimeout: CONNECT_MS,
    requestTimeout: REQUEST_MS,
    // Short: whoever uses a client begins anew with another one.
    retry: { retries: 2, initialRetryTime: 100, maxRetryTime: 1_000 },
    logLevel: logLevel.ERROR,
    // The sentence alone: beside it stands what was sent and received.
    logCreator: () => (entry) => log.debug('The Kafka client has a complaint.', { namespace: entry.namespace, complaint: entry.log.message }),
  });
}

/** What a driver says may name hosts; it never holds credentials, and neither does this. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

export function busUnavailable(): DomainError {
  return unavailable('The message bus does not answer.');
}
