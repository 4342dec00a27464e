import type { EngineSettings } from '#libs/platform/src/config/settings';
import { requireAllOrNone, type EngineAddresses, type Engines, type EnginesNeeds } from './engines.ts';

/**
 * Opens what the settings name: the engines of a cluster, or a directory. Nowhere else does anything depend on which of the two it is.
 * @throws StartRefused when only some of the engines are named, or one of them cannot be opened
 */
export async function openEngines(addresses: EngineSettings, needs: EnginesNeeds): Promise<Engines> {
  const isNamed = (name: keyof EngineSettings): boolean => addresses[name] !== null;
  if (!requireAllOrNone(isNamed, needs.kafka)) return (await import('./embedded.ts')).openEmbeddedEngines(addresses, needs);
  return (await import('./distributed.ts')).openDistributedEngines(addresses as EngineAddresses, needs);
}
