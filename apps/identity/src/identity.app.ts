import { EnsureEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { IdentitySettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import type { App } from '#libs/platform/src/runtime/app';
import type { AppProcess } from '#libs/platform/src/runtime/app-process';
import { StartRefused } from '#libs/platform/src/start-refused';
import { systemContext } from '#libs/platform/src/system-context';
import { identity, IdentityModule } from './identity.module.ts';

export const identityApp: App = {
  name: 'identity',
  modules: [IdentityModule],
  services: [identity],
  settings: [IdentitySettings],
  prepare: async (process) => {
    const { GATEHOUSE_API_KEY, GATEHOUSE_CLIENT_ID } = process.settings.of(IdentitySettings);
    if (GATEHOUSE_API_KEY !== null) await ensureKey(process, GATEHOUSE_API_KEY, GATEHOUSE_CLIENT_ID);
  },
};

/** Makes a key of the environment `development` work from the first request on. @throws StartRefused */
export async function ensureKey(process: AppProcess, value: string, clientId: string | null): Promise<void> {
  const operation = Object.assign(new EnsureEnvironmentKey(), { name: 'development', value, ...(clientId !== null && { client_id: clientId }) });
  operation.context = systemContext(SYSTEM_ENVIRONMENT, process.clock.now());
  await process.call(operation).catch((error: unknown) => {
    if (!(error instanceof DomainError && error.code === 'storage_full')) throw error;
    const { DATA_DIR } = process.settings.of(PlatformSettings);
    throw new StartRefused(`The disk of ${DATA_DIR} has too little room for a first start: make room, or set DATA_MIN_FREE lower.`);
  });
}
