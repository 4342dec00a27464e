import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { RefreshFamilies } from './refresh-families.ts';
import { rotated } from './refresh-family.ts';

const ENVIRONMENT = 'environment_01J0000000000000000000000A';
const HOUR = 3_600_000;

describe('the tokens of a session that two began at once, each in the organization that it chose', () => {
  const clock = new SettableClock();
  let directory: string;
  let storage: LmdbStorage;
  let families: RefreshFamilies;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-families-'));
    storage = await LmdbStorage.open({ directory });
    families = new RefreshFamilies(new LmdbShortLived(storage, clock), new Vault(await LmdbKeyStore.open(storage.keys, [])));
  });
  afterAll(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const begun = async (organization_id: string) => {
    const sessionId = `session_${newUlid(clock.now())}`;
    const begin = (chosen: string) =>
      families.begin(ENVIRONMENT, sessionId, { organization_id: chosen, idle_until: clock.now() + HOUR, needs_secret: true }, clock.now() + HOUR);
    await begin(organization_id);
    return { sessionId, begin, organization: async () => (await families.read(ENVIRONMENT, sessionId))?.family.organization_id };
  };

  it('are for the one that the log has, whichever was stored first', async () => {
    const { begin, organization } = await begun('org_other');
    const settled = await families.settled(await begin('org_chosen'), 'org_chosen');
    expect([settled.family.organization_id, await organization()]).toEqual(['org_chosen', 'org_chosen']);
    expect(await families.replace(settled, rotated(settled.family, 0, { now: clock.now(), idle_until: 0, organization_id: 'org_chosen' }))).toBe(true);
  });

  it('stay for the one that somebody went on to with a refresh', async () => {
    const { begin, organization } = await begun('org_chosen');
    const read = await begin('org_chosen');
    await families.replace(read, rotated(read.family, 0, { now: clock.now(), idle_until: 0, organization_id: 'org_next' }));
    for (const each of [read, await begin('org_chosen')]) await families.settled(each, 'org_chosen');
    expect(await organization()).toBe('org_next');
  });
});
