import { readSettings } from '#libs/platform/src/config/setting';
import { GatewaySettings, PlatformSettings, SETTINGS_CLASSES, TransportSettings } from '#libs/platform/src/config/settings';
import { runProgram } from '#libs/runtime/src/program';
import { requireSettings } from '#libs/runtime/src/required-settings';
import type { FirstKey } from './first-key.ts';
import { withOwnAddress } from './own-address.ts';

const LOCAL = new Set(['127.0.0.1', '::1', 'localhost']);

await runProgram(async (options) => {
  // Most of the time to the start goes into loading, so a wrong setting is told before.
  await requireSettings(
    SETTINGS_CLASSES.filter((type) => type !== TransportSettings),
    options.variables,
  );
  const { GATEHOUSE_MODE } = readSettings(PlatformSettings, options.variables);
  const { HOST } = readSettings(GatewaySettings, options.variables);
  if (GATEHOUSE_MODE === 'development' && !LOCAL.has(HOST))
    options.log.warn(`Development mode listens on ${HOST}: others can reach it, and its key manages everything.`);

  const { Suite } = await import('./suite.ts');
  const { process, firstKey } = await Suite.start({ ...options, variables: withOwnAddress(options.variables) });
  return { process, introduction: firstKey === null ? undefined : introduction(process.url, firstKey) };
});

function introduction(url: string, { value, path, isNew }: FirstKey): string {
  return [`  API docs   ${url}/docs`, ...(isNew ? [`  first key  ${value}`] : []), `  key file   ${path}`].join('\n');
}
