import { BlobSettings, DirectorySyncSettings, ProxySettings, PublicAddressSettings } from '#libs/platform/src/config/settings';
import type { App } from '#libs/runtime/src/app';
import { directorySync } from './directory-sync.module.ts';
import { ScimFace } from './scim/scim-face.ts';

export const directorySyncApp: App = {
  name: 'directory-sync',
  services: [directorySync],
  settings: [DirectorySyncSettings, BlobSettings, ProxySettings, PublicAddressSettings],
  faces: [
    {
      of: ScimFace,
      address: (settings) => {
        const { SCIM_HOST: host, SCIM_PORT: port } = settings.of(DirectorySyncSettings);
        return { host, port, setting: 'SCIM_PORT', trustedProxies: settings.of(ProxySettings).TRUSTED_PROXIES };
      },
    },
  ],
};
