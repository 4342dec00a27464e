import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { ErasableEnvironment } from '#libs/platform/src/storage/erasable-environment';
import { LmdbEnvironment } from '#libs/platform/src/storage/lmdb-environment';
import { byteText, byteTextKeys } from '#libs/platform/src/storage/lmdb-keys';

const opened = new Map<string, ErasableEnvironment>();
afterAll(async () => {
  for (const environment of opened.values()) await environment.close();
});

const fail = (reason = 'Another process has opened the keys.'): never => {
  throw new Error(reason);
};

/** The data keys of a directory; asked for again, they are those of another process on it. */
export async function givenKeys(path: string): Promise<LmdbKeyStore> {
  const environment = opened.get(path) ?? (await ErasableEnvironment.open({ path, onFailure: fail, onTakenOver: fail }));
  opened.set(path, environment);
  return LmdbKeyStore.open(environment, []);
}

/** Loses a key of a directory on which no process works, as a restore of older keys does. */
export async function loseKey(path: string, purpose: string): Promise<void> {
  const environment = new LmdbEnvironment({ path, onFailure: fail, onTakenOver: fail });
  environment.db('entries', byteTextKeys).remove(byteText(purpose));
  await environment.flushed();
  await environment.close();
}
