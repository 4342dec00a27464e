import { StartRefused } from '#libs/platform/src/start-refused';
import type { EngineProcess } from './engine-process.ts';
import type { WatchedDirectory } from './watched-directory.ts';

interface ImageMembers {
  readonly count: number;
  readonly command: (ports: readonly number[]) => string[];
  /** Makes one of them, also where they are one already. @throws Error where they do not answer yet */
  readonly join: (ports: readonly number[]) => Promise<void>;
}

/** How one of the engines is started. */
export interface EngineDefinition {
  readonly name: string;
  readonly title: string;
  /** What a plain process of it is. */
  readonly process: string;
  /** The setting that holds its address. */
  readonly setting: 'KAFKA_BROKERS' | 'MONGODB_URL' | 'EVENTSTORE_URL';
  readonly addressAt: (port: number) => string;
  /** Whether it can be used at its address. Never throws. */
  readonly answers: (address: string) => Promise<boolean>;
  /** Whether somebody has said how a process of it is started: then it is no container. */
  readonly isNamed?: () => boolean;
  /** @throws EngineMissing where something is not installed that it needs */
  readonly startProcess: (directory: WatchedDirectory) => Promise<EngineProcess>;
  /** Its own server, where Docker is at hand; it listens on the same port inside and outside. */
  readonly image: string;
  readonly imageVariables: (port: number) => Record<string, string>;
  /** Where several members of it run in one container, each on a port of its own, the first of which is the one of its address. */
  readonly imageMembers?: ImageMembers;
}

/** What a plain process needs is not installed; the message says what is missing. */
export class EngineMissing extends StartRefused {}
