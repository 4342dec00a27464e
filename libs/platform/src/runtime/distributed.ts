import type { Engines, EngineAddresses, EnginesNeeds } from './engines.ts';

/** The engines of a cluster, which many processes share. */
export async function openDistributedEngines(_addresses: EngineAddresses, _needs: EnginesNeeds): Promise<Engines> {
  throw new Error('being built');
}
