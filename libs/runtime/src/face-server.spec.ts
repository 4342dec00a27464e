import type { FastifyInstance } from 'fastify';
import { DomainError } from '#libs/platform/src/domain-error';
import type { HttpFace, WrittenAnswer } from '#libs/platform/src/http-face';
import { rawExchange } from '#libs/testing/src/raw-http';
import { FaceServer } from './face-server.ts';

/** Says the address of whoever asks, and in words of its own what is refused. */
class Face implements HttpFace {
  readonly prefix = '/face';

  async mount(server: FastifyInstance): Promise<void> {
    server.get('/face/*', async (request) => request.ip);
  }

  refusalOf(error: unknown, requestId: string): WrittenAnswer {
    return { status: 418, headers: { 'Content-Type': 'text/plain' }, text: `${error instanceof DomainError ? error.code : String(error)} ${requestId}` };
  }
}

describe('the server of a face', () => {
  let server: FaceServer;
  beforeAll(async () => {
    server = await FaceServer.listen(new Face(), { host: '127.0.0.1', port: 0, setting: 'PORT', trustedProxies: ['127.0.0.1'] });
  });
  afterAll(() => server.close(1_000));

  it.each([
    ['a path that there is not', 'GET /other HTTP/1.1\r\nHost: x', 'route_not_found'],
    ['an escape that means nothing', 'GET /face/%zz HTTP/1.1\r\nHost: x', 'bad_request'],
    ['a head without a host', 'GET /face/x HTTP/1.1', 'bad_request'],
    ['a path that is too long', `GET /other/${'x'.repeat(5_000)} HTTP/1.1\r\nHost: x`, 'uri_too_long'],
    ['a head that is too large', `GET /face/x HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}`, 'headers_too_large'],
    ['what is no HTTP', 'GET /face/x HTTP/9.9\r\nHost: x', 'bad_request'],
  ])('refuses %s in the words of the face', async (_, head, code) => {
    const answer = await rawExchange(server.url, `${head}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatchObject({ status: 418, headers: { 'content-type': 'text/plain', 'x-request-id': expect.any(String) } });
    expect(answer?.text).toBe(`${code} ${answer?.headers['x-request-id']}`);
  });

  it.each(['//face/x', 'http://elsewhere.test/face/x'])('takes the target %s for the path in it', async (target) => {
    expect(await rawExchange(server.url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)).toMatchObject({ status: 200, text: '127.0.0.1' });
  });

  it('believes what proxies say of an address, and nobody else', async () => {
    const address = async (url: string) => (await fetch(`${url}/face/x`, { headers: { 'X-Forwarded-For': '203.0.113.9' } })).text();
    expect(await address(server.url)).toBe('203.0.113.9');
    const open = await FaceServer.listen(new Face(), { host: '127.0.0.1', port: 0, setting: 'PORT', trustedProxies: [] });
    expect(await address(open.url)).toBe('127.0.0.1');
    await open.close(1_000);
  });
});
