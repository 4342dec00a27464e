import { join } from 'node:path';
import { FilesBlobs } from '#libs/blobs/src/files.blobs';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { WholeLog } from '#libs/event-sourcing/src/log/log-damage';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { isRebuilt } from '#libs/event-sourcing/src/views/rebuild';
import { AbsentMessageBus } from '#libs/messaging/src/absent.message-bus';
import type { EngineSettings } from '#libs/platform/src/config/settings';
import { OnlyReplica } from '#libs/platform/src/replicas';
import { StartRefused } from '#libs/platform/src/start-refused';
import { FORMATS, LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import type { Engines, EnginesNeeds } from './engines.ts';
import { openBlobs } from './open-blobs.ts';

/** Every announcement lay here once more, in releases in which webhooks were made from it. */
const FORMER_BUS = ['bus', 'bus-topics', 'bus-groups'];

/**
 * Opens the engines of one process that holds everything: LMDB in `DATA_DIR`. Its driver is loaded with this file, which is loaded where it is needed.
 * @throws StartRefused when the directory is held, unwritable, open to others, damaged or of a newer release
 */
export async function openEmbeddedEngines(
  { INSTALLATION: installation }: EngineSettings,
  { settings, files, clock, log, onFatal }: EnginesNeeds,
): Promise<Engines> {
  const directory = settings.DATA_DIR;
  const { DATA_MIN_FREE: minFree, DATA_DIR_WAIT: wait } = settings;
  const storage = await LmdbStorage.open({ directory, minFree, wait, log, onFatal }).catch((error: unknown) => {
    throw directoryRefused(directory, error);
  });
  const onTakeOver = (files: number): void => {
    storage.leaveReleasesBefore(FORMATS.keysTogether);
    log.info('The data keys are moved out of their files, once. Let it go on; cut short, the next start goes on with it.', { files });
  };
  const keys = await LmdbKeyStore.open(storage.keys, settings.MASTER_KEYS ?? [], clock, onTakeOver).catch(async (error: unknown) => {
    await storage.close();
    throw error;
  });
  storage.leaveReleasesBefore(FORMATS.keysTogether);
  for (const tree of FORMER_BUS) storage.log.dropWhereThere(tree);
  const instead = () => FilesBlobs.open({ directory: join(directory, 'blobs'), assertWritable: () => storage.assertWritable() });
  const blobs = await openBlobs(files, { installation, log, instead }).catch(async (error: unknown) => {
    await storage.close();
    throw error;
  });
  const readModels = new LmdbReadModels(storage);
  // A check that was cut short: nothing makes it forget what is erased.
  await readModels.dropWhere(isRebuilt);
  return {
    directory: storage,
    log: null,
    replicas: new OnlyReplica(),
    bus: new AbsentMessageBus('nobody'),
    keys,
    blobs,
    events: new LmdbEventStore(storage),
    // What is damaged here ends the process.
    damage: new WholeLog(),
    readModels,
    shortLived: new LmdbShortLived(storage, clock),
    close: async () => {
      await blobs.close();
      await storage.close();
    },
  };
}

const OBSTACLES: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENOTDIR: 'part of the path is a file',
  EEXIST: 'it is a file',
};

function directoryRefused(directory: string, error: unknown): Error {
  const obstacle = OBSTACLES[(error as NodeJS.ErrnoException).code ?? ''];
  if (error instanceof StartRefused || obstacle === undefined) return error as Error;
  return new StartRefused(`DATA_DIR ${directory} cannot be used: ${obstacle}. Set DATA_DIR to a directory that this user may write to.`);
}
