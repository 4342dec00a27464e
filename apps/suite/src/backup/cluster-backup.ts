import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { DeliveryLog } from '#apps/notifications/src/webhook-deliveries/delivery-log';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { MasterKeys } from '#libs/event-sourcing/src/sealing/master-keys';
import { leaseOf } from '#libs/event-sourcing/src/views/view-runner';
import { PlatformSettings } from '#libs/platform/src/config/settings';
import { StartRefused } from '#libs/platform/src/start-refused';
import { Leases } from '#libs/read-models/src/leases';
import type { RunningApp } from '#libs/runtime/src/app';
import { RestoreMark } from '#libs/runtime/src/restore-mark';
import { destinationOf, STREAM } from './destination.ts';
import { setBackErasures } from './erasures.ts';
import { sealed, SealedFile } from './sealed-file.ts';
import {
  expectCheckpoints,
  expectNoState,
  putSmallState,
  smallState,
  someoneIsAtWork,
  summaryOf,
  unknownTables,
  type SmallStateStores,
} from './small-state.ts';

/** Below, a process is one of ours. */
const program = process;
/** Somebody who was killed holds leases for a few seconds more. */
const GONE_WITHIN = 8_000;
const GONE_POLL = 500;

type Tell = (line: string) => void;

/** Writes the small state of a cluster, which works on meanwhile, into a file that is not there yet. @throws StartRefused */
export async function backUpCluster(process: RunningApp, path: string, tell: Tell): Promise<void> {
  const destination = destinationOf(path, tell);
  await destination.write(sealed(smallState(storesOf(process)), mastersOf(process)));
}

/**
 * Puts a backup into an emptied database, beside the log and the keys that were copied after it, and has the views filled. Cut short, it is run again.
 * @throws StartRefused where any of that is not so
 */
export async function restoreCluster(process: RunningApp, path: string, tell: Tell): Promise<void> {
  if (path !== STREAM) return restoreFile(process, path, tell);
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-restore-'));
  try {
    const spooled = join(directory, 'small-state');
    await pipeline(program.stdin, createWriteStream(spooled, { mode: 0o600 }));
    await restoreFile(process, spooled, tell);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function restoreFile(process: RunningApp, path: string, tell: Tell): Promise<void> {
  const { engines, runtime } = process;
  const stores = storesOf(process);
  const file = await SealedFile.open(path, mastersOf(process));
  // To its end, before anything is changed.
  const summary = await summaryOf(file.lines());
  if (summary.log.id !== stores.log.id)
    throw new StartRefused(
      `${path} is of the log ${summary.log.id} of the installation ${summary.log.installation}, and EVENTSTORE_URL with INSTALLATION names the log ${stores.log.id} of ${stores.log.installation}.`,
    );
  if (summary.end > (await engines.events.head()))
    throw new StartRefused('The log ends before the small state of this backup: put back the log that was copied after it.');
  const mark = new RestoreMark(engines.shortLived);
  const begun = await mark.backup();
  if (begun !== null && begun !== file.header.id) throw new StartRefused('The database holds a part of another backup: empty it, and restore again.');
  await expectNobody(process);
  if (begun === null) {
    await expectNoState(stores);
    await mark.set(file.header.id);
    // Whoever looked for the mark before it was there has left something by now, or will be found at the end.
    await expectNoState(stores).catch(async (error: unknown) => {
      await mark.clear();
      throw error;
    });
  }
  for (const name of unknownTables(summary, stores)) tell(`The backup holds ${name}, which this release does not know: it is left out.`);
  await putSmallState(file.lines(), summary, stores);
  await process.get(DeliveryLog).queueWaiting();
  await expectNobody(process);
  await expectCheckpoints(summary, stores);
  await setBackErasures(engines);
  await mark.clear();
  tell(`The small state of ${file.header.created_at} is put back.`);
  // Whatever happens from here on, the first process that is started does the same.
  await runtime.projector.start();
}

/** Whoever is at work keeps these leases. @throws StartRefused */
async function expectNobody(process: RunningApp): Promise<void> {
  const leases = process.get(Leases);
  const [views, followers] = await Promise.all([process.runtime.projector.status(), process.get(LeasedFollowers).status()]);
  const names = [...views.map(({ table }) => leaseOf(table)), ...followers.map(({ name }) => name)];
  try {
    for (const deadline = performance.now() + GONE_WITHIN; ; await pause(GONE_POLL)) {
      const tokens = await Promise.all(names.map((name) => leases.acquireOrRenew(name)));
      if (!tokens.includes(null)) return;
      if (performance.now() >= deadline) throw someoneIsAtWork();
    }
  } finally {
    await Promise.all(names.map((name) => leases.forget(name)));
  }
}

function storesOf({ engines, runtime }: RunningApp): SmallStateStores {
  return { tables: runtime.tables(), shortLived: engines.shortLived, events: engines.events, log: engines.log! };
}

function mastersOf({ settings }: RunningApp): MasterKeys {
  return MasterKeys.of(settings.of(PlatformSettings).MASTER_KEYS ?? []);
}
