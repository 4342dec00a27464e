import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { SystemClock } from '#libs/platform/src/clock';
import { Metrics } from '#libs/platform/src/metrics';
import { StartRefused } from '#libs/platform/src/start-refused';
import { givenAuthority, type Authority } from '#libs/testing/src/certificates';
import { givenReplica, givenTransport, OWNER, unproven, type GivenReplica, type GivenTransport } from '#libs/testing/src/given-replicas';
import { KeptLog } from '#libs/testing/src/kept-log';
import { eventually, mayTake, until } from '#libs/testing/src/until';
import { asked, Lamps, ListLamps, LookAtLamp, operationTransportContract, startedLamps } from './operation-transport.contract.ts';
import { TcpOperationServer } from './tcp.operation-server.ts';
import { serviceSecurity, type ServiceSecurity } from './tcp/service-security.ts';

const NONE = { SERVICE_KEY: null, SERVICE_TLS_CERT: null, SERVICE_TLS_KEY: null, SERVICE_TLS_CA: null, SERVICE_TLS_NAMES: ['gatehouse'] };
const KEY = 'a key of at least thirty-two characters';
const GREETING = 'gatehouse operations 1';
const look = ({ transport }: GivenTransport): Promise<unknown> => transport.call(asked(LookAtLamp, { id: 'lamp_1' }));

function message(type: number, id: number, head = '', text = ''): Buffer {
  const bytes = Buffer.from(head + text);
  const frame = Buffer.alloc(13 + bytes.length);
  frame.writeUInt32BE(9 + bytes.length, 0);
  frame[4] = type;
  frame.writeUInt32BE(id, 5);
  frame.writeUInt32BE(Buffer.byteLength(head), 9);
  bytes.copy(frame, 13);
  return frame;
}

describe('who may ask', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const byKey = (key: string): Promise<ServiceSecurity> => serviceSecurity({ ...NONE, SERVICE_KEY: key });
  let certificates = 0;
  const byCertificate = async (
    authority: Authority,
    {
      commonName = 'a process',
      dnsNames = ['gatehouse'],
      names = ['gatehouse'],
    }: { commonName?: string; dnsNames?: readonly string[]; names?: readonly string[] } = {},
  ): Promise<ServiceSecurity> => {
    const { cert, key } = await authority.certify(commonName, dnsNames);
    const name = `certificate-${++certificates}`;
    const file = async (kind: string, text: string): Promise<string> => {
      const path = join(directory, `${name}.${kind}`);
      await writeFile(path, text);
      return path;
    };
    return serviceSecurity({
      SERVICE_KEY: null,
      SERVICE_TLS_CERT: await file('cert', cert),
      SERVICE_TLS_KEY: await file('key', key),
      SERVICE_TLS_CA: await file('ca', authority.ca),
      SERVICE_TLS_NAMES: names,
    });
  };
  const isLetIn = async (server: ServiceSecurity, client: ServiceSecurity): Promise<boolean> => {
    const replica = await givenReplica({ security: server });
    const from = await givenTransport([replica.address], { security: client });
    const answered = await look(from).then(
      () => true,
      () => false,
    );
    for (let again = 0; again < 3; again++) await look(from).catch(() => undefined);
    await from.transport.close();
    await replica.stop();
    const lines = [...replica.log.lines, ...from.log.lines];
    expect(JSON.stringify(lines)).not.toContain(KEY);
    if (!answered) {
      expect(replica.lamps.begun).toEqual([]);
      expect(from.log.lines.map(({ sentence }) => sentence)).toEqual(['A replica cannot be reached; it is tried again.']);
    }
    return answered;
  };

  it('is whoever holds the same key', async () => {
    const [key, other] = [await byKey(KEY), await byKey(`${KEY}.`)];
    expect(await isLetIn(key, await byKey(KEY))).toBe(true);
    expect(await isLetIn(key, other)).toBe(false);
    expect(await isLetIn(key, unproven)).toBe(false);
    expect(await isLetIn(unproven, key)).toBe(false);
  });

  it('is whoever has a certificate of the same authority', async () => {
    const [ours, theirs] = [await givenAuthority('ours'), await givenAuthority('theirs')];
    const server = await byCertificate(ours);
    expect(await isLetIn(server, await byCertificate(ours))).toBe(true);
    expect(await isLetIn(server, await byCertificate(theirs))).toBe(false);
    expect(await isLetIn(await byCertificate(theirs), await byCertificate(ours))).toBe(false);
    expect(await isLetIn(server, await byKey(KEY))).toBe(false);
    expect(await isLetIn(server, { server: null, client: { ca: ours.ca, checkServerIdentity: () => undefined }, refusalOf: () => null })).toBe(false);
  });

  it('has a certificate with a name of this cluster: the authority may sign for others too', async () => {
    const ours = await givenAuthority('ours');
    const server = await byCertificate(ours);
    // What it would take of others does not matter here: it is refused for its own.
    const named = (commonName: string, dnsNames: readonly string[]): Promise<ServiceSecurity> =>
      byCertificate(ours, { commonName, dnsNames, names: ['gatehouse', commonName, ...dnsNames.filter((name) => !name.includes('*'))] });
    expect(await isLetIn(server, await named('gatehouse', []))).toBe(true);
    expect(await isLetIn(server, await named('a process', ['other.internal', 'Gatehouse']))).toBe(true);
    for (const [commonName, dnsNames] of [
      ['payroll', []],
      // A common name counts for nothing beside DNS names.
      ['gatehouse', ['payroll.internal']],
      ['a process', ['gatehouse.payroll.internal']],
    ] as const) {
      const stranger = await named(commonName, dnsNames);
      expect(await isLetIn(server, stranger)).toBe(false);
      expect(await isLetIn(stranger, server)).toBe(false);
    }
    const several = { dnsNames: ['gateway.internal'], names: ['identity.internal', 'gateway.internal'] };
    expect(await isLetIn(await byCertificate(ours, several), await byCertificate(ours, { ...several, dnsNames: ['identity.internal'] }))).toBe(true);
  });

  it('starts with no certificate that others would refuse', async () => {
    const ours = await givenAuthority('ours');
    for (const dnsNames of [['payroll.internal'], ['*.internal'], ['gatehouse.internal']])
      await expect(byCertificate(ours, { dnsNames, names: ['gatehouse', 'identity.internal'] })).rejects.toThrow(
        /^The certificate in SERVICE_TLS_CERT is not for gatehouse or identity\.internal: .* SERVICE_TLS_NAMES\.$/,
      );
    await expect(byCertificate({ ...ours, certify: async () => ({ cert: 'nonsense', key: 'nonsense' }) })).rejects.toThrow(StartRefused);
  });

  it('is told in the log by what was wrong with its certificate', async () => {
    const ours = await givenAuthority('ours');
    const replica = await givenReplica({ security: await byCertificate(ours) });
    const from = await givenTransport([replica.address], { security: await byCertificate(ours, { dnsNames: ['payroll'], names: ['payroll', 'gatehouse'] }) });
    await until(() => replica.log.lines.length > 0);
    expect(replica.log.lines[0]).toMatchObject({
      sentence: 'A peer could not prove that it is a service of this cluster.',
      fields: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    });
    await from.transport.close();
    await replica.stop();
  });

  it('is told in the log once, without what was shown', async () => {
    const replica = await givenReplica({ security: await byKey(KEY) });
    const from = await givenTransport([replica.address], { security: await byKey(`${KEY}.`) });
    await until(() => replica.log.lines.length > 0);
    await pause(500);
    expect(replica.log.lines).toEqual([
      {
        level: 'warn',
        sentence: 'A peer could not prove that it is a service of this cluster.',
        fields: { from: expect.stringMatching(/^127\.0\.0\.1:\d+$/), code: 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC' },
      },
    ]);
    await from.transport.close();
    await replica.stop();
  });

  it('uses a key with forward secrecy', async () => {
    const security = await byKey(KEY);
    const replica = await givenReplica({ security });
    const socket = connectTls({ host: '127.0.0.1', port: replica.port, ...security.client });
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    expect(socket.getCipher().standardName).toBe('TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256');
    socket.destroy();
    await replica.stop();
  });

  it('must be known, or be on this machine', async () => {
    const { app, direct } = await startedLamps(new Lamps());
    const server = (security: ServiceSecurity): TcpOperationServer =>
      new TcpOperationServer({ transport: direct, owners: [OWNER], security, clock: new SystemClock(), log: new KeptLog(), metrics: new Metrics() });
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'identity.internal', '::ffff:10.0.0.1']) {
      const refused = server(unproven).listen(host, 0);
      await expect(refused).rejects.toThrow(StartRefused);
      await expect(refused).rejects.toThrow(/SERVICE_HOST is .* set SERVICE_KEY .* SERVICE_TLS_CERT, SERVICE_TLS_KEY and SERVICE_TLS_CA/);
    }
    for (const host of ['127.0.0.1', 'localhost', '127.8.8.8']) {
      const open = server(unproven);
      await open.listen(host, 0);
      await open.close();
    }
    const everywhere = server(await byKey(KEY));
    const { port } = await everywhere.listen('0.0.0.0', 0);
    await expect(server(await byKey(KEY)).listen('0.0.0.0', port)).rejects.toThrow(
      `SERVICE_HOST 0.0.0.0 with SERVICE_PORT ${port} cannot be listened on (EADDRINUSE).`,
    );
    await everywhere.close();
    await app.close();
  });

  it('needs settings that go together', async () => {
    await expect(serviceSecurity({ ...NONE, SERVICE_TLS_CERT: 'a', SERVICE_TLS_CA: 'b' })).rejects.toThrow('without SERVICE_TLS_KEY');
    await expect(
      serviceSecurity({ SERVICE_KEY: KEY, SERVICE_TLS_CERT: 'a', SERVICE_TLS_KEY: 'b', SERVICE_TLS_CA: 'c', SERVICE_TLS_NAMES: [] }),
    ).rejects.toThrow('both set');
    await expect(serviceSecurity({ ...NONE, SERVICE_TLS_CERT: '/no/a', SERVICE_TLS_KEY: '/no/b', SERVICE_TLS_CA: '/no/c' })).rejects.toThrow(
      'SERVICE_TLS_CERT: /no/a cannot be read (ENOENT).',
    );
  });
});

operationTransportContract('over TCP with a key', async (lamps) => {
  const security = await serviceSecurity({ ...NONE, SERVICE_KEY: KEY });
  const replica = await givenReplica({ security, lamps });
  const { transport } = await givenTransport([replica.address], { security });
  return {
    transport,
    close: async () => {
      await transport.close();
      await replica.stop();
    },
  };
});

describe('a hostile peer', () => {
  let replica: GivenReplica;
  let friend: GivenTransport;
  const sockets: Socket[] = [];
  beforeAll(async () => {
    replica = await givenReplica();
    friend = await givenTransport([replica.address]);
    await look(friend);
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    // Whatever it was, those that may ask are answered.
    await look(friend);
  });
  afterAll(async () => {
    await friend.transport.close();
    await replica.stop();
  });

  const peer = async (): Promise<Socket> => {
    const socket = connect(replica.port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('connect', resolve));
    return socket;
  };
  const greeted = async (): Promise<Socket> => {
    const socket = await peer();
    const answer = new Promise((resolve) => socket.once('data', resolve));
    socket.write(message(1, 0, '', GREETING));
    await answer;
    return socket;
  };
  /** How long until the other side has closed. */
  const cutAfter = async (socket: Socket): Promise<number> => {
    const began = Date.now();
    if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
    return Date.now() - began;
  };
  const head = (changes: object = {}): string =>
    JSON.stringify({
      operation: 'LookAtLamp',
      sent: performance.now(),
      left: 5_000,
      patience: 5_000,
      context: { environment: 'environment_1', actor: { id: 'a', source: 'api', name: null }, requestId: 'r', commandId: 'c' },
      ...changes,
    });

  it.each([
    ['garbage', Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')],
    ['a greeting that is none', message(1, 0, '', 'gatehouse operations 0')],
    ['a request before the greeting', message(3, 1, '{}', '{}')],
    ['a huge length', Buffer.from('7fffffff', 'hex')],
    ['a length above what a stranger may send', Buffer.from('00000401', 'hex')],
    ['a message that says that it goes on', Buffer.from('8010000000', 'hex')],
    ['an empty frame', Buffer.from('00000000', 'hex')],
    ['a head that is longer than the message', Buffer.from('00000009010000000000000001', 'hex')],
  ])('is cut off at once for %s', async (_, bytes) => {
    const socket = await peer();
    socket.resume().write(bytes);
    expect(await cutAfter(socket)).toBeLessThan(3_000);
  });

  it.each([
    ['a frame of more than a megabyte', Buffer.from('00100001', 'hex')],
    ['a part of a message that is no whole frame', Buffer.from('8000ffff', 'hex')],
    ['a message of no known type', message(99, 1)],
    ['what only a server says', message(6, 1, '', '{}')],
    ['a head that is no JSON', message(3, 1, '{', '{}')],
    ['a head that is null', message(3, 1, 'null', '{}')],
    ['fields that are no JSON', message(3, 1, head(), '{"id":')],
    ['a context that is none', message(3, 1, head({ context: { environment: 7 } }), '{}')],
    ['a context without actor', message(3, 1, head({ context: { environment: 'e', requestId: 'r', commandId: 'c', actor: null } }), '{}')],
    ['times that are none', message(3, 1, head({ left: 'for ever' }), '{}')],
    ['JSON of great depth', message(3, 1, head(), '['.repeat(500_000))],
  ])('is cut off at once for %s, also where it was let in', async (_, bytes) => {
    const socket = await greeted();
    socket.resume().write(bytes);
    expect(await cutAfter(socket)).toBeLessThan(3_000);
  });

  it('is cut off for the second use of an id that is under way', async () => {
    replica.lamps.gate = new Promise(() => {});
    const socket = await greeted();
    const request = message(3, 1, head(), JSON.stringify({ id: 'lamp_1', mode: 'wait' }));
    socket.resume().write(Buffer.concat([request, request]));
    expect(await cutAfter(socket)).toBeLessThan(3_000);
  });

  it('is told that an operation is unknown, also by names that every object has', async () => {
    for (const operation of ['NoSuchOperation', 'constructor', '__proto__', 'toString', '']) {
      const socket = await greeted();
      const answer = new Promise<Buffer>((resolve) => socket.once('data', resolve));
      socket.write(message(3, 1, head({ operation }), '{}'));
      expect((await answer).subarray(13).toString()).toBe('unknown');
    }
  });

  it('pollutes no prototype', async () => {
    const socket = await greeted();
    const answer = new Promise<Buffer>((resolve) => socket.once('data', resolve));
    const polluting = '{"id":"lamp_1","__proto__":{"polluted":1,"mode":"never"},"constructor":{"prototype":{"polluted":1}}}';
    socket.write(message(3, 1, head().replace('"operation"', '"__proto__":{"polluted":1},"operation"'), polluting));
    expect(JSON.parse((await answer).subarray(13).toString())).toEqual({ id: 'lamp_1', colour: 'red', seen: '' });
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(Object.getPrototypeOf(replica.lamps.contexts.at(-1))).toBe(Object.prototype);
    expect(replica.lamps.contexts.at(-1)).not.toHaveProperty('polluted');
  });

  it('that says nothing is closed after five seconds', async () => {
    const socket = await peer();
    expect(await cutAfter(socket.resume())).toBeLessThan(mayTake(9_000));
  });

  it('that drips is closed after five seconds, and after ten where it was let in', async () => {
    const [stranger, known] = [await peer(), await greeted()];
    const drip = setInterval(() => {
      for (const socket of [stranger, known]) if (socket.writable) socket.write(Buffer.of(0));
    }, 100);
    known.write(Buffer.from('000fffff', 'hex'));
    expect(await cutAfter(stranger.resume())).toBeLessThan(mayTake(9_000));
    expect(await cutAfter(known.resume())).toBeLessThan(mayTake(16_000));
    clearInterval(drip);
  });

  it('that does not read is not read from, and is cut off', async () => {
    const socket = await greeted();
    socket.pause();
    const request = (id: number): Buffer => message(3, id, head({ operation: 'ListLamps' }), JSON.stringify({ count: 10, length: 32_000 }));
    const answered = (): number => replica.lamps.begun.filter((mode) => mode === 'list').length;
    for (let id = 1; id <= 20; id++) socket.write(request(id));
    await until(() => answered() === 20);
    await pause(300);
    for (let id = 21; id <= 40; id++) socket.write(request(id));
    const began = Date.now();
    const peers = async (): Promise<string | undefined> => /operation_peers (\d+)/.exec(await replica.metrics.text())?.[1];
    expect(await peers()).toBe('2');
    while ((await peers()) !== '1') await pause(100);
    expect(Date.now() - began).toBeLessThan(mayTake(18_000));
    expect(answered()).toBe(20);
    expect(await friend.transport.call(asked(ListLamps, { count: 1, length: 1 }))).toMatchObject({ object: 'list' });
  });

  it('that opens thousands of connections keeps nobody out', async () => {
    // Not all at once: the kernel would forget some of them.
    while (sockets.length < 2_000) await Promise.all(Array.from({ length: 100 }, async () => (await peer()).resume()));
    const newcomer = await givenTransport([replica.address]);
    // Each try to connect has two seconds, which a busy machine may take from the first.
    await eventually(() => look(newcomer));
    await newcomer.transport.close();
    await until(() => sockets.filter((socket) => !socket.closed).length <= 256);
  });

  it('fills no log', () => {
    expect(replica.log.lines.length).toBeLessThan(5);
  });
});
