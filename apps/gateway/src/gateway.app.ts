import '#libs/contracts/src/all';
import { BlobSettings, GatewaySettings, ProxySettings } from '#libs/platform/src/config/settings';
import { portRefused } from '#libs/platform/src/operations/operations-surface';
import type { App } from '#libs/runtime/src/app';
import { GatewayAdapter } from './gateway.adapter.ts';
import { GatewayModule } from './gateway.module.ts';
import { Gateway } from './gateway.ts';

export const gatewayApp: App = {
  name: 'gateway',
  modules: [GatewayModule],
  services: [],
  settings: [GatewaySettings, BlobSettings, ProxySettings],
  api: {
    adapter: (settings, faceOf) => new GatewayAdapter({ ...settings.of(GatewaySettings), ...settings.of(ProxySettings) }, faceOf),
    listen: async (app, settings) => {
      const { HOST, PORT } = settings.of(GatewaySettings);
      await app.listen(PORT, HOST).catch((error: NodeJS.ErrnoException) => {
        throw portRefused(error, 'PORT', HOST, PORT);
      });
    },
    drain: (process) => process.get(Gateway).drain(),
  },
};
