import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { PinoLog } from '#libs/platform/src/pino.log';
import { openEngines } from './open-engines.ts';
import { runtimeOver } from './runtime.ts';

it('a process without services, as a gateway is, has all that its runtime is made of', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-runtime-'));
  const [clock, log] = [new SystemClock(), new PinoLog({ level: 'silent', readable: false })];
  const settings = { of: <Settings extends object>(type: new () => Settings) => readSettings(type, { DATA_DIR: directory, DATA_MIN_FREE: '0' }) };
  const onFatal = (sentence: string): never => {
    throw new Error(sentence);
  };
  const engines = await openEngines(settings.of(EngineSettings), {
    settings: settings.of(PlatformSettings),
    kafka: null,
    files: null,
    mayBegin: true,
    clock,
    log,
    onFatal,
  });
  const runtime = await runtimeOver({ engines, services: [], settings, clock, log, also: [] });
  const nest = await NestFactory.createApplicationContext(runtime.module(null), { logger: false, abortOnError: false });
  expect(nest.get(Lifecycle)).toBe(runtime.lifecycle);
  await nest.close();
  await engines.close();
  rmSync(directory, { recursive: true });
});
