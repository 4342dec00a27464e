import { setTimeout as pause } from 'node:timers/promises';
import { EnsureEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { IdentitySettings, MessageSettings, PlatformSettings, PublicAddressSettings, WebhookSettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { StartRefused } from '#libs/platform/src/start-refused';
import { systemContext } from '#libs/platform/src/system-context';
import type { App } from '#libs/runtime/src/app';
import type { RunningApp } from '#libs/runtime/src/app';
import { identity } from './identity.module.ts';

/** Between two tries to make sure of the first key. */
const RETRY = 1_000;

export const identityApp: App = {
  name: 'identity',
  services: [identity],
  settings: [IdentitySettings, PublicAddressSettings, MessageSettings, WebhookSettings],
  prepare: async (process) => {
    const { GATEHOUSE_API_KEY, GATEHOUSE_CLIENT_ID } = process.settings.of(IdentitySettings);
    if (GATEHOUSE_API_KEY !== null) await ensureKey(process, GATEHOUSE_API_KEY, GATEHOUSE_CLIENT_ID);
  },
};

/**
 * Makes a key of the environment `development` work from the first request on. Where an engine is away, or a view is halted, the process starts all the same
 * and the key follows. @throws StartRefused
 */
export async function ensureKey(process: RunningApp, value: string, clientId: string | null): Promise<void> {
  const ensure = async (): Promise<boolean> => {
    const operation = Object.assign(new EnsureEnvironmentKey(), { name: 'development', value, ...(clientId !== null && { client_id: clientId }) });
    operation.context = systemContext(SYSTEM_ENVIRONMENT, process.clock.now());
    try {
      await process.call(operation);
      return true;
    } catch (error) {
      if (error instanceof DomainError && error.code === 'storage_full') throw noRoom(process);
      if (error instanceof DomainError && error.code === 'client_id_already_used')
        throw new StartRefused(`GATEHOUSE_CLIENT_ID cannot be used: ${error.message}`);
      if (!(error instanceof DomainError && error.kind === 'unavailable')) throw error;
      return false;
    }
  };
  if (await ensure()) return;
  process.get(Log).warn('The first key cannot be made sure of at the moment; that is tried until it can.');
  const trying = new AbortController();
  process.stopLater(async () => trying.abort());
  void (async () => {
    do await pause(RETRY, undefined, { signal: trying.signal });
    while (!(await ensure()));
  })().catch(() => {});
}

function noRoom(process: RunningApp): StartRefused {
  const { DATA_DIR } = process.settings.of(PlatformSettings);
  return new StartRefused(`The disk of ${DATA_DIR} has too little room for a first start: make room, or set DATA_MIN_FREE lower.`);
}
