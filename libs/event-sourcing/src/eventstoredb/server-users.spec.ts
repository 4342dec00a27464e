import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EventStoreDBClient } from '@eventstore/db-client';
import { ServerCredentials } from '@grpc/grpc-js';
import { StartRefused } from '#libs/platform/src/start-refused';
import { givenAuthority } from '#libs/testing/src/certificates';
import type { Engine } from '#libs/testing/src/engines/engine';
import { Access } from '#libs/testing/src/engines/eventstore-server/access';
import type { Streams } from '#libs/testing/src/engines/eventstore-server/streams';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { givenOwnServer, givenServer, givenStore, log, opened, printed } from '#libs/testing/src/given-event-store';
import { ROOT } from '#libs/testing/src/process';
import { newEvent, take } from '../log/event-store.contract.ts';
import { START } from '../log/event-store.ts';
import { EventstoredbEventStore } from './eventstoredb.event-store.ts';

describe('a server with users', () => {
  const userOf = (name: string, ...groups: string[]) => ({ name, password: `password of ${name}`, groups });
  const admin = userOf('admin', '$admins');
  const users = [admin, userOf('service', 'gatehouse'), userOf('reader', 'gatehouse-readers'), userOf('other', 'others')];
  let url: string;
  let streams: Streams;
  const as = (name: string): string => url.replace('//', `//${name}:${encodeURIComponent(`password of ${name}`)}@`);
  const warnings = (): readonly string[] =>
    printed
      .map((line) => JSON.parse(line) as { readonly level: string; readonly message: string })
      .flatMap(({ level, message }) => (level === 'warn' ? message : []));
  const OPEN = 'EventStoreDB lets whoever comes without a password append to the log: set its access lists as docs/operations.md says.';
  const setRights = (name = 'admin') =>
    promisify(execFile)(process.execPath, ['docker/eventstore-rights.mjs'], { env: { EVENTSTORE_URL: as(name) }, cwd: ROOT });
  const folder = WatchedDirectory.create('eventstore-users');
  let credentials: ServerCredentials;
  beforeAll(async () => {
    const authority = await givenAuthority('Authority');
    const { cert, key } = await authority.certify('localhost', ['localhost']);
    writeFileSync(join(folder.path, 'ca'), authority.ca);
    credentials = ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }]);
  });
  afterAll(() => folder.remove());
  const given = async (letsInAnybody: boolean): Promise<void> => {
    const server = await givenOwnServer({ access: new Access(users, letsInAnybody), credentials });
    ({ streams } = server);
    // Without TLS the driver sends no password.
    url = `esdb://localhost:${new URL(server.url).port}?tlsCAFile=${encodeURIComponent(join(folder.path, 'ca'))}`;
    printed.length = 0;
  };

  it('is told to be open where it takes appends without a password; nothing is appended', async () => {
    await given(true);
    await givenStore(as('admin'));
    expect(warnings()).toEqual([OPEN]);
    expect(await streams.log.head()).toBe(START);
    // Who comes without a password knows that it takes those.
    printed.length = 0;
    await streams.log.append('$$$all', 0, [newEvent({ data: '{"$acl":{"$r":"$all"}}', metadata: '', contentType: 'application/json' })]);
    await givenStore(url);
    expect(warnings()).toEqual([]);
  });

  it('is not, where it refuses them by default', async () => {
    await given(false);
    await givenStore(as('admin'));
    expect(warnings()).toEqual([]);
  });

  it.each([
    ['22.10', true],
    ['24.10', false],
  ])('lets in who has to be let in, and nobody else, once its lists are set as documented: %s', async (_version, letsInAnybody) => {
    await given(letsInAnybody);
    const { stdout } = await setRights();
    expect(stdout).toBe(
      '$$$all {"$acl":{"$r":["gatehouse","gatehouse-readers","$admins"]}}\n' +
        '$settings {"$userStreamAcl":{"$r":["gatehouse","gatehouse-readers","$admins"],"$w":["gatehouse","$admins"],"$d":"$admins","$mr":["gatehouse","gatehouse-readers","$admins"],"$mw":"$admins"}}\n',
    );
    const service = await givenStore(as('service'));
    expect(warnings()).toEqual([]);
    expect(await service.append('thing-1', 0, [newEvent('one')])).toMatchObject({ version: 1 });
    const identity = await service.identity();
    const reader = await givenStore(as('reader'));
    expect([await reader.identity(), await reader.head(), (await take(reader, 1)).length]).toEqual([identity, await service.head(), 1]);
    await expect(reader.append('thing-1', 1, [newEvent('two')])).rejects.toThrow('The event store refuses this server.');
    for (const others of [as('other'), url, as('reader').replace('password', 'passwort')])
      await expect(givenStore(others)).rejects.toThrow('EventStoreDB refuses the name and password in EVENTSTORE_URL, or does not let them read $all.');
    expect(await service.read('thing-1')).toHaveLength(1);
  });

  it('lets services see in metadata what hides events, so that these are not taken for gone, and nobody but administrators write them', async () => {
    await given(false);
    await setRights();
    const service = await givenStore(as('service'));
    for (const version of [0, 1]) await service.append('thing-1', version, [newEvent('one')]);
    const asService = EventStoreDBClient.connectionString(as('service'));
    const asAdmin = EventStoreDBClient.connectionString(as('admin'));
    try {
      await expect(asService.setStreamMetadata('gatehouse.thing-1', { truncateBefore: 1 })).rejects.toMatchObject({ type: 'access-denied' });
      await asAdmin.setStreamMetadata('gatehouse.thing-1', { truncateBefore: 1 });
    } finally {
      await asService.dispose();
      await asAdmin.dispose();
    }
    const next = await givenStore(as('service'));
    expect((await next.damage.inspect('thing-1')).map(({ cause }) => cause)).toContain('truncated');
  });

  it('keeps what else is in its lists, also where they are set again, which only an administrator may', async () => {
    await given(true);
    const before = newEvent({ data: '{"$maxAge":1,"$acl":{"$mr":"ops","$r":"ops"}}', metadata: '', contentType: 'application/json' });
    await streams.log.append('$$$all', 0, [before]);
    await setRights();
    const { stdout } = await setRights();
    expect(stdout).toContain('$$$all {"$maxAge":1,"$acl":{"$mr":"ops","$r":["gatehouse","gatehouse-readers","$admins"]}}\n');
    await expect(setRights('service')).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^The access lists cannot be set: /) });
  });
});

describe('an event store in EventStoreDB', () => {
  describe('with TLS and a password', () => {
    const password = 'pa%3Ass-canary';
    let server: Engine;
    let ca: string;
    const warned: unknown[][] = [];
    const { warn } = console;

    beforeEach(async () => {
      const folder = WatchedDirectory.create('eventstore-tls');
      opened.push(() => folder.remove());
      const authority = await givenAuthority('Authority');
      const { cert, key } = await authority.certify('localhost');
      const authorities = join(folder.path, 'authorities');
      mkdirSync(authorities);
      const files = { 'authorities/ca.crt': authority.ca, cert, key };
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
      ca = encodeURIComponent(join(authorities, 'ca.crt'));
      server = await givenServer({
        secured: {
          certificate: join(folder.path, 'cert'),
          key: join(folder.path, 'key'),
          authorities,
          user: { name: 'admin', password: 'pa:ss-canary' },
          addressAt: (port) => `esdb://admin:${password}@localhost:${port}?tlsCAFile=${ca}`,
        },
      });
      printed.length = 0;
      warned.length = 0;
      console.warn = (...words) => void warned.push(words);
    });
    afterEach(() => {
      console.warn = warn;
    });

    const expectNothingTold = (error: unknown): void => {
      expect(error).toBeInstanceOf(StartRefused);
      const told = JSON.stringify([printed, warned, (error as Error).message, (error as Error).stack, (error as Error).cause]);
      for (const part of ['ss-canary', 'wrong-canary', Buffer.from('admin:pa:ss-canary').toString('base64')]) expect(told).not.toContain(part);
    };

    it('is used', async () => {
      const store = await givenStore(server.address);
      await store.append('thing-1', 0, [newEvent()]);
      expect(await store.read('thing-1')).toHaveLength(1);
      expect(await take(store, 1)).toHaveLength(1);
    });

    it('says that a password is wrong, and never which', async () => {
      const refused = await givenStore(server.address.replace(password, 'wrong-canary')).catch((error: unknown) => error);
      expect((refused as Error).message).toContain('refuses the name and password');
      expectNothingTold(refused);
    });

    it('does not tell a connection string that it cannot use', async () => {
      const { address } = server;
      const cannot = [
        `${address}&keepAliveInterval=5`,
        `${address}&unknown=1`,
        `${address}&tlsVerifyCert=false`,
        `${address}&tls=maybe`,
        `${address}&defaultDeadline=soon`,
        address.replace('ca.crt', 'nowhere'),
        address.replace('esdb:', 'http:'),
        address.replace('pa%3Ass', 'pa@ss'),
        address.replace('pa%3Ass', 'pa?ss'),
        address.replace('pa%3Ass', 'pa:ss'),
        'wrong-canary',
        '',
      ];
      for (const url of cannot) expectNothingTold(await givenStore(url).catch((error: unknown) => error));
      expect(warned).toEqual([]);
    });

    const connectAt = (url: string): Promise<unknown> =>
      EventstoredbEventStore.connect({ url, installation: 'gatehouse', log, timeoutMs: 100 }).catch((error: unknown) => error);

    it('does not tell it either when nobody answers, or who answers is not trusted', async () => {
      const { address } = server;
      const untrusted = await connectAt(address.replace(/\?.*/, ''));
      expectNothingTold(untrusted);
      expect((untrusted as Error).message).toContain(': its certificate is not signed by an authority that is trusted (');
      await server.kill();
      const away = await connectAt(address);
      expectNothingTold(away);
      expect((away as Error).message).toContain(': nobody listens there (ECONNREFUSED).');
      expect(printed.join('')).toContain('EventStoreDB does not answer yet');
    }, 30_000);
  });
});
