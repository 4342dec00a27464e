import type { Blobs } from '#libs/blobs/src/blobs';
import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import type { LogDamage } from '#libs/event-sourcing/src/log/log-damage';
import type { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import type { MessageBus } from '#libs/messaging/src/message-bus';
import type { Clock } from '#libs/platform/src/clock';
import type { BlobSettings, EngineSettings, KafkaSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import type { Log } from '#libs/platform/src/log';
import type { Replicas } from '#libs/platform/src/replicas';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import type { LogIdentity } from '#libs/platform/src/storage/log-note';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { ShortLived } from '#libs/read-models/src/short-lived';

/** The adapters behind the ports, opened. */
export interface Engines {
  readonly events: EventStore;
  /** What is wrong with single streams of it. */
  readonly damage: LogDamage;
  readonly readModels: ReadModels;
  readonly shortLived: ShortLived;
  readonly bus: MessageBus;
  readonly keys: KeyStore;
  readonly blobs: Blobs;
  /** The directory that holds everything, and that no other process may open meanwhile; null where engines that many share hold it. */
  readonly directory: LmdbStorage | null;
  /** Which log it is; null where the directory holds it. */
  readonly log: LogIdentity | null;
  /** Who else may be working on what is stored there. */
  readonly replicas: Replicas;
  /** After everything that uses them has stopped. */
  close(): Promise<void>;
}

export interface EnginesNeeds {
  readonly settings: PlatformSettings;
  /** How Kafka is spoken to; null: by this process it is not. */
  readonly kafka: KafkaSettings | null;
  /** Where files are stored; null: by this process they are not. */
  readonly files: BlobSettings | null;
  /** Whether a log may be begun where there is none. */
  readonly mayBegin: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** What is stored is damaged, or cannot be stored any more: the process has to stop, with this sentence. */
  readonly onFatal: (sentence: string) => void;
}

const STORES = ['EVENTSTORE_URL', 'MONGODB_URL'] as const;
const ADDRESSES = [...STORES, 'KAFKA_BROKERS'] as const;

/** Engines that are named by their addresses. */
export type EngineAddresses = EngineSettings & { readonly [Name in (typeof STORES)[number]]: NonNullable<EngineSettings[Name]> };

/** Whether many processes share what is stored: then none of them is the one to ask. */
export function areShared(addresses: EngineSettings): boolean {
  return ADDRESSES.some((name) => addresses[name] !== null);
}

/** Whether engines are named. @throws StartRefused when only some of them are */
export function requireAllOrNone(isNamed: (name: keyof EngineSettings) => boolean, kafka: KafkaSettings | null): boolean {
  const named = [...ADDRESSES, 'KEYS_URL' as const].filter(isNamed);
  if (named.length === 0) return false;
  const missing = (kafka === null ? STORES : ADDRESSES).filter((name) => !isNamed(name));
  if (missing.length === 0) return true;
  throw new StartRefused(
    `${missing.join(' and ')} must be set too, since ${named.join(' and ')} ${named.length > 1 ? 'are' : 'is'}: a cluster stores nothing in DATA_DIR.`,
  );
}
