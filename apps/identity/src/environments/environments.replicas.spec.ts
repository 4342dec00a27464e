import { createSecretKey, hash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CreateEnvironment,
  EnsureEnvironmentKey,
  FindEnvironmentKey,
  ListEnvironmentKeys,
  RevokeEnvironmentKey,
} from '#libs/contracts/src/environments/operations';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { givenKeys } from '#libs/testing/src/given-keys';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { SystemClock } from '#libs/platform/src/clock';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { FaultyRows } from '#libs/testing/src/faulty-rows';
import { environmentsView } from '../views/environments.view.ts';
import { Environments } from './environments.ts';

describe('environments in several processes', () => {
  let directory: string;
  let storage: LmdbStorage;
  let rows: FaultyRows;
  let replicas: readonly Environments[];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'environments-'));
    storage = await LmdbStorage.open({ directory });
    const events = new LmdbEventStore(storage);
    rows = new FaultyRows(new LmdbReadModels(storage));
    const clock = new SystemClock();
    const keys = await givenKeys(join(directory, 'shown'));
    const log = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });
    replicas = [0, 1, 2].map(() => {
      const repository = new LogRepository(events, rows, new Naming(createSecretKey(Buffer.alloc(32))), clock, log);
      repository.registerPrimaryView(environmentsView);
      return new Environments(repository, clock, new ShownSecrets(keys), rows);
    });
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  function operation<O extends object>(type: new () => O, fields: Partial<Omit<O, 'context'>>): O {
    return Object.assign(new type(), { context: systemContext(SYSTEM_ENVIRONMENT, Date.now()) }, fields);
  }
  const value = `sk_${'replica'.repeat(5)}`;

  it('are created once, with one key, by all that start at once', async () => {
    const starts = replicas.flatMap((replica) =>
      Array.from({ length: 4 }, () => replica.ensureKey(operation(EnsureEnvironmentKey, { name: 'development', value }))),
    );
    expect(new Set((await Promise.all(starts)).map(({ id }) => id)).size).toBe(1);
    expect(await replicas[0]!.list()).toHaveLength(1);
    expect(await replicas[0]!.listKeys(operation(ListEnvironmentKeys, {}))).toHaveLength(1);
  });

  it('have each of the keys that replicas with different settings bring', async () => {
    const starts = replicas.map((replica, index) => replica.ensureKey(operation(EnsureEnvironmentKey, { name: 'development', value: `${value}${index}` })));
    expect(new Set((await Promise.all(starts)).map(({ id }) => id)).size).toBe(1);
    for (const [index] of replicas.entries()) {
      const key = await replicas[0]!.findKey(operation(FindEnvironmentKey, { hash: hashOf(`${value}${index}`) }));
      expect(key.name).toBe('given at start');
    }
  });

  it('let in no key that was revoked, however old the row is', async () => {
    await replicas[0]!.create(operation(CreateEnvironment, { name: 'development' }));
    await replicas[0]!.ensureKey(operation(EnsureEnvironmentKey, { name: 'development', value }));
    const find = () => replicas[1]!.findKey(operation(FindEnvironmentKey, { hash: hashOf(value) }));
    const { id } = await find();
    rows.isWritable = false;
    await replicas[0]!.revokeKey(operation(RevokeEnvironmentKey, { id }));
    await expect(find()).rejects.toMatchObject({ code: 'unauthorized' });
  });
});

function hashOf(text: string): string {
  return hash('sha256', text, 'hex');
}
