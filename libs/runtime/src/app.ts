import type { Type } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { operations, type Operation } from '#libs/contracts/src/operation';
import type { Clock } from '#libs/platform/src/clock';
import { EngineSettings, KafkaSettings, PlatformSettings, TransportSettings } from '#libs/platform/src/config/settings';
import type { HttpFace } from '#libs/platform/src/http-face';
import type { Engines } from './engines.ts';
import type { Runtime } from './runtime.ts';
import type { Service, SettingsOfProcess } from './service.ts';

/**
 * How much of an app a process runs: less than the server, where the command line takes its place. Then nothing listens and nothing works in the background.
 * `restore` begins where everything else is refused.
 */
export type Run = 'server' | 'views' | 'nothing' | 'restore';

/** An app that a process runs, for what goes on in it beside requests. */
export interface RunningApp {
  readonly engines: Engines;
  readonly runtime: Runtime;
  readonly settings: SettingsOfProcess;
  readonly clock: Clock;
  call<Answer>(operation: Operation<Answer>): Promise<Answer>;
  get<Port>(port: abstract new (...args: never[]) => Port): Port;
  /** Stopped before what was started earlier. */
  stopLater(stop: () => Promise<unknown>): void;
}

/** The public surface of an app, over HTTP. */
export interface Api {
  /** `faceOf`: the face that a path is below. */
  adapter(settings: SettingsOfProcess, faceOf: (url: string) => HttpFace | null): AbstractHttpAdapter;
  listen(app: NestFastifyApplication, settings: SettingsOfProcess): Promise<void>;
  /** Takes nothing new and finishes what is in flight. */
  drain(process: RunningApp): Promise<void>;
}

/** `setting`: what the port is set by. `trustedProxies`: whose word of an address is believed. */
export interface FaceAddress {
  readonly host: string;
  readonly port: number;
  readonly setting: string;
  readonly trustedProxies: readonly string[];
}

/** A face of a service, and where it listens in a process that has no API. */
export interface Face {
  readonly of: Type<HttpFace>;
  /** Null: nowhere. */
  readonly address: ((settings: SettingsOfProcess) => FaceAddress) | null;
}

/** What one process runs: the gateway, a service, or all of them together. */
export interface App {
  readonly name: string;
  /** What it consists of beside the services. */
  readonly modules?: readonly Type[];
  readonly services: readonly Service[];
  /** Classes of settings that its modules want to have injected. */
  readonly settings: readonly (new () => object)[];
  /** Absent: the app is reached by other processes alone. */
  readonly api?: Api;
  /** What its services answer over HTTP beside operations. */
  readonly faces?: readonly Face[];
  /** Done before the first request is taken, with everything behind it running. */
  prepare?(process: RunningApp): Promise<void>;
}

/** The classes of settings that a process of an app uses. No other is shown to it, so it needs no other, and none of the secrets in them. */
export function settingsOfProcess({ services, settings, api }: App, run: Run = 'server'): readonly (new () => object)[] {
  const owners = services.map(({ owner }) => owner);
  const usesBus = run === 'server' && services.some(({ isForwarded }) => isForwarded);
  const isAlone = api !== undefined && operations().every(({ options: { owner } }) => owners.includes(owner));
  return [PlatformSettings, EngineSettings, ...(usesBus ? [KafkaSettings] : []), ...(isAlone ? [] : [TransportSettings]), ...settings];
}
