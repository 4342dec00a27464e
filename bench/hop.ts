import '#libs/contracts/src/all';
import { GetOrganization } from '#libs/contracts/src/organizations/operations';
import type { RemoteOperations } from '#libs/messaging/src/routed.operation-transport';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { TransportSettings } from '#libs/platform/src/config/settings';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { systemContext } from '#libs/platform/src/system-context';
import { openRemoteOperations } from '#libs/runtime/src/transport';

/** Calls before the first that counts: by then the code is compiled at both ends. */
const WARM_UP = 5_000;

/** Milliseconds of one call from this process to a service, one after another for so many seconds: the median. */
export async function medianHop(variables: Readonly<Record<string, string>>, duration: number): Promise<number> {
  const log = new PinoLog({ level: 'warn', readable: false, destination: process.stderr });
  const settings = readSettings(TransportSettings, variables);
  const remote = (await openRemoteOperations([], { settings, clock: new SystemClock(), log, metrics: new Metrics() }))!;
  try {
    for (let call = 0; call < WARM_UP; call += 1) await hop(remote);
    const times: number[] = [];
    for (const end = performance.now() + duration * 1_000; performance.now() < end;) {
      const began = performance.now();
      await hop(remote);
      times.push(performance.now() - began);
    }
    return times.toSorted((one, other) => one - other)[times.length >> 1]!;
  } finally {
    await remote.close();
  }
}

function hop(remote: RemoteOperations): Promise<unknown> {
  const context = systemContext('environment_01J00000000000000000000000', Date.now());
  return remote.call(Object.assign(new GetOrganization(), { id: 'org_01J00000000000000000000000', context }));
}
