import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PinoLog } from '#libs/platform/src/pino.log';
import { givenS3 } from '#libs/testing/src/engines/given';
import { KMS_KEY } from '#libs/testing/src/engines/s3-server';
import { until } from '#libs/testing/src/until';
import { blobsContract, expectUnavailable, leftUnfinished, partsOf, textOf } from './blobs.contract.ts';
import type { S3Options } from './s3-options.ts';
import { S3Blobs } from './s3.blobs.ts';

const s3 = await givenS3();
const log = new PinoLog({ level: 'silent', readable: false });
const opened: S3Blobs[] = [];

function blobsWith(options: Partial<S3Options>): S3Blobs {
  const { S3_BUCKET, S3_ENDPOINT, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = s3?.settings ?? {};
  const blobs = new S3Blobs({
    bucket: S3_BUCKET!,
    prefix: 'gatehouse/',
    region: 'us-east-1',
    endpoint: S3_ENDPOINT!,
    publicEndpoint: null,
    credentials: { accessKeyId: S3_ACCESS_KEY_ID!, secretAccessKey: S3_SECRET_ACCESS_KEY! },
    encryption: { by: 'none' },
    log,
    ...options,
  });
  opened.push(blobs);
  return blobs;
}

afterAll(() => Promise.all(opened.map((blobs) => blobs.close())));

(s3 === null ? describe.skip : describe)('with a store that speaks S3', () => {
  blobsContract('S3', async () => blobsWith({ prefix: 'contract/' }));

  it('keeps installations in one bucket apart', async () => {
    const [one, other] = [blobsWith({ prefix: 'one/' }), blobsWith({ prefix: 'other/' })];
    await one.put('exports/e1/a', partsOf('of one'));
    expect(await other.get('exports/e1/a')).toBeNull();
    await other.put('exports/e1/a', partsOf('of the other'));
    expect(await textOf(one, 'exports/e1/a')).toBe('of one');
  });

  it.each([{ by: 'AES256' } as const, { by: 'aws:kms', key: KMS_KEY } as const])('asks the store to encrypt: %j', async (encryption) => {
    const blobs = blobsWith({ encryption, prefix: 'encrypted/' });
    await blobs.put('exports/e1/a', partsOf('a secret'));
    const { S3_ENDPOINT, S3_BUCKET } = s3!.settings;
    const { headers } = await fetch(`${S3_ENDPOINT}/${S3_BUCKET}/encrypted/exports/e1/a`, { method: 'HEAD' });
    expect(headers.get('x-amz-server-side-encryption')).toBe(encryption.by);
    expect(await textOf(blobs, 'exports/e1/a')).toBe('a secret');
  });

  it('gives out addresses that anybody may download from, for a time', async () => {
    const blobs = blobsWith({});
    await blobs.put('exports/e1/a', partsOf('for you'));
    const address = await blobs.downloadAddress('exports/e1/a', { until: Date.now() + 600_000, fileName: 'a "b".csv', contentType: 'text/csv' });
    const answer = await fetch(address);
    expect(await answer.text()).toBe('for you');
    expect(answer.headers.get('content-type')).toBe('text/csv');
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="a__b_.csv"');
    const { searchParams } = new URL(address);
    expect(Number(searchParams.get('X-Amz-Expires'))).toBeLessThanOrEqual(600);
    expect(address).not.toContain(s3!.settings['S3_SECRET_ACCESS_KEY']);
    const outside = blobsWith({ publicEndpoint: 'https://files.example.test' });
    expect(await outside.downloadAddress('exports/e1/a', { until: Date.now() + 1_000, fileName: 'a', contentType: 'text/csv' })).toMatch(
      /^https:\/\/files\.example\.test\/gatehouse-files\/gatehouse\/exports\/e1\/a\?/,
    );
  });

  it('ends uploads that the end of a process left, when they are old, with the next that is stored', async () => {
    const { S3_ENDPOINT, S3_BUCKET } = s3!.settings;
    const isLeft = async (): Promise<boolean> => (await (await fetch(`${S3_ENDPOINT}/${S3_BUCKET}?uploads`)).text()).includes('left/exports/e1/a');
    const end = await leftUnfinished(blobsWith({ prefix: 'left/' }), 'exports/e1/a');
    await until(isLeft);
    const young = blobsWith({ prefix: 'left/' });
    await young.put('exports/e1/b', partsOf('b'));
    await young.close();
    expect(await isLeft()).toBe(true);
    await blobsWith({ prefix: 'left/', unfinishedMs: -60_000 }).put('exports/e1/b', partsOf('b'));
    await until(async () => !(await isLeft()));
    await end();
  });

  it('says that it does not know a bucket', async () => {
    const blobs = blobsWith({ bucket: 'nobodys' });
    await expectUnavailable(blobs.put('exports/e1/a', partsOf('a')));
    await expectUnavailable(blobs.get('exports/e1/a'));
    // Without a body, an answer does not say whether it is the bucket or the object that is not there.
    expect(await blobs.stat('exports/e1/a')).toBeNull();
  });

  it('gives up on a store that is silent', async () => {
    const blobs = blobsWith({ timeoutMs: 200 });
    await blobs.put('exports/e1/a', partsOf('a'));
    await s3!.pause();
    try {
      await Promise.all([
        expectUnavailable(blobs.put('exports/e1/b', partsOf('b'))),
        expectUnavailable(blobs.get('exports/e1/a')),
        expectUnavailable(blobs.stat('exports/e1/a')),
      ]);
    } finally {
      await s3!.resume();
    }
    expect(await textOf(blobs, 'exports/e1/a')).toBe('a');
  });
});

describe('a store that is not what it says', () => {
  let server: Server;
  let answer: RequestListener;
  const blobs = (): S3Blobs => {
    const { port } = server.address() as AddressInfo;
    return blobsWith({ bucket: 'b', endpoint: `http://127.0.0.1:${port}`, credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, timeoutMs: 300 });
  };
  beforeAll(async () => {
    server = createServer((request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  it('is not believed that it keeps what it was given', async () => {
    const methods: (string | undefined)[] = [];
    answer = (request, response) => {
      // It is asked as well what was left of uploads.
      if (request.method !== 'GET') methods.push(request.method);
      request
        .resume()
        .on('end', () => response.writeHead(200, { 'content-length': request.method === 'HEAD' ? 3 : 0, 'last-modified': new Date().toUTCString() }).end());
    };
    await expectUnavailable(blobs().put('exports/e1/a', partsOf('four')));
    expect(methods).toEqual(['PUT', 'HEAD', 'DELETE']);
  });

  it('is not believed where content ends too early, or stops', async () => {
    for (const stops of [true, false]) {
      answer = (_request, response) => {
        response.writeHead(200, { 'content-length': 100, 'last-modified': new Date().toUTCString() }).write('only this');
        if (!stops) setTimeout(() => response.destroy(), 20);
      };
      await expectUnavailable(textOf(blobs(), 'exports/e1/a'));
    }
  });

  it('is told from one that is full', async () => {
    answer = (request, response) => {
      const body =
        '<?xml version="1.0"?><Error><Code>XMinioStorageFull</Code><Message>Storage backend has reached its minimum free drive threshold.</Message></Error>';
      request.resume().on('end', () => response.writeHead(507, { 'content-type': 'application/xml' }).end(body));
    };
    await expect(blobs().put('exports/e1/a', partsOf('a'))).rejects.toMatchObject({ code: 'storage_full', kind: 'unavailable' });
  });
});
