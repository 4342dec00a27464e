import { once } from 'node:events';
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { givenAuthority } from '#libs/testing/src/certificates';
import { PinoLog } from './pino.log.ts';
import { MongodbStorage } from './storage/mongodb-storage.ts';
import { causeAt, causeOf } from './unreachable.ts';

const authority = await givenAuthority('Authority');
const { ca } = authority;
const opened: Server[] = [];
afterAll(() => opened.forEach((server) => server.close()));

async function listening(server: Server): Promise<number> {
  opened.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const withTls = async (name: string): Promise<number> =>
  listening(createTlsServer(await authority.certify(name, [name]), (socket) => socket.on('error', () => {})));
const at = (port: number, host = 'localhost') => [{ host, port }];

describe('the cause why nothing answers', () => {
  it('is none that is known where somebody listens who is trusted', async () => {
    expect(await causeAt({ hosts: at(await withTls('localhost')), tls: { ca } })).toBe('');
    expect(await causeAt({ hosts: at(await listening(createTcpServer())), tls: null })).toBe('');
  });

  it('is the certificate, its name, the host, or that nobody listens', async () => {
    const other = (await givenAuthority('Another authority')).ca;
    expect(await causeAt({ hosts: at(await withTls('localhost')), tls: { ca: other } })).toMatch(
      /^: its certificate is not signed by an authority that is trusted \([A-Z_]+\)$/,
    );
    expect(await causeAt({ hosts: at(await withTls('elsewhere')), tls: { ca } })).toBe(': its certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)');
    expect(await causeAt({ hosts: at(2113, 'no-such-host.invalid'), tls: null })).toMatch(/^: its host name has no address \((ENOTFOUND|EAI_AGAIN)\)$/);
    expect(await causeAt({ hosts: at(1, '127.0.0.1'), tls: { ca } })).toBe(': nobody listens there (ECONNREFUSED)');
    const plain = await listening(createTcpServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n')));
    expect(await causeAt({ hosts: at(plain), tls: { ca } })).toMatch(/^: it does not speak TLS as it is asked to \(/);
  });

  it('is the one that tells most, where hosts have different ones', async () => {
    const hosts = [...at(1, '127.0.0.1'), ...at(await withTls('elsewhere'))];
    expect(await causeAt({ hosts, tls: { ca } })).toContain('another name');
  });

  it('is nothing but what is on the list', () => {
    expect(causeOf(Object.assign(new Error('hunter2'), { code: 'hunter2' }))).toBe('');
    expect(causeOf('hunter2')).toBe('');
    expect(causeOf(new Error('hunter2', { cause: Object.assign(new Error('hunter2'), { code: 'ECONNREFUSED' }) }))).toBe(
      ': nobody listens there (ECONNREFUSED)',
    );
  });

  it.each([
    ['localhost', 'its certificate is not signed by an authority that is trusted'],
    ['no-such-host.invalid', 'its host name has no address'],
  ])(
    'is told by a start for MongoDB at %s',
    async (host, cause) => {
      const url = `mongodb://gatehouse:hunter2@${host}:${await withTls('localhost')}/?tls=true`;
      const error = await MongodbStorage.connect({ url, log: new PinoLog({ level: 'silent', readable: false }), patience: 0 }).catch((thrown: Error) => thrown);
      expect((error as Error).message).toMatch(new RegExp(`^MongoDB has not answered for 0 s at the hosts of MONGODB_URL: ${cause} \\(`));
    },
    20_000,
  );
});
