import { operationTransportContract, startedLamps } from './operation-transport.contract.ts';

operationTransportContract('called directly', async (lamps) => {
  const { app, direct } = await startedLamps(lamps);
  return { transport: direct, close: () => app.close() };
});
