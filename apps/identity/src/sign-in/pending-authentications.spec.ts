import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { PendingAuthentications } from './pending-authentications.ts';

const ENVIRONMENT = 'environment_01J0000000000000000000000A';
const CLIENT = 'client_01J0000000000000000000000A';
const TEN_MINUTES = 10 * 60_000;

describe('a pending authentication', () => {
  const clock = new SettableClock();
  let directory: string;
  let storage: LmdbStorage;
  let pending: PendingAuthentications;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-pending-'));
    storage = await LmdbStorage.open({ directory });
    const secrets = new ShownSecrets(await LmdbKeyStore.open(storage.keys, []));
    pending = new PendingAuthentications(secrets, new Naming(createSecretKey(Buffer.alloc(32))), clock, new LmdbShortLived(storage, clock));
  });
  afterAll(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const context = () => systemContext(ENVIRONMENT, clock.now());
  const began = { client_id: CLIENT, session_id: 'session_1', user_id: 'user_1', chosen: null, is_challenged: true };

  it('knows all that was shown with it, however many go on with it at once', async () => {
    const token = await pending.begin(context(), began);
    await Promise.all([pending.choose(token, 'org_1'), pending.passFactor(token), pending.passChallenge(token)]);
    expect(await pending.require(context(), CLIENT, token)).toMatchObject({ chosen: 'org_1', holds_factor: true, is_challenged: false });
  });
  it('knows it also where the request that it began with comes again, and ends no later for it', async () => {
    const asked = context();
    const token = await pending.begin(asked, began);
    await pending.passFactor(token);
    clock.forward(TEN_MINUTES - 1);
    expect(await pending.begin(asked, began)).toBe(token);
    expect(await pending.require(asked, CLIENT, token)).toMatchObject({ holds_factor: true });
    clock.forward(1);
    await expect(pending.require(asked, CLIENT, token)).rejects.toMatchObject({ code: 'invalid_pending_authentication_token' });
  });
});
