import { join } from 'node:path';
import { ROOT } from '../process.ts';
import { freePort } from './free-port.ts';
import { JavaLibraries } from './java.ts';
import type { WatchedDirectory } from './watched-directory.ts';
import { WatchedProcess } from './watched-process.ts';

/** Where the program is named. */
export const S3_SOURCES = join(ROOT, 'libs/testing/engines/s3');
const BUCKET = 'gatehouse-files';
/** The only one of its keys to encrypt by. */
export const KMS_KEY = 'of-specs';

/** S3Mock as a plain process on loopback, with one bucket. It lets everybody in. */
export class S3Server {
  private constructor(
    private readonly process: WatchedProcess,
    readonly endpoint: string,
  ) {}

  /** @throws EngineMissing */
  static async start(directory: WatchedDirectory): Promise<S3Server> {
    const libraries = await JavaLibraries.get(S3_SOURCES);
    const port = await freePort();
    const endpoint = `http://127.0.0.1:${port}`;
    const process = await WatchedProcess.start(directory, {
      name: 's3',
      command: libraries.commandOfJar(
        '-Xmx256m',
        '-XX:TieredStopAtLevel=1',
        ...Object.entries(propertiesFor(port)).map(([name, value]) => `-D${name}=${value}`),
      ),
      isReady: async () => (await fetch(`${endpoint}/${BUCKET}`).catch(() => null))?.ok === true,
    });
    return new S3Server(process, endpoint);
  }

  /** Of a process that is to store there. */
  get settings(): Readonly<Record<string, string>> {
    return {
      S3_BUCKET: BUCKET,
      S3_ENDPOINT: this.endpoint,
      S3_PUBLIC_ENDPOINT: this.endpoint,
      S3_ACCESS_KEY_ID: 'specs',
      S3_SECRET_ACCESS_KEY: 'shown-to-nobody',
    };
  }

  /** It stops in the middle of everything, and its connections stay open. */
  pause(): Promise<void> {
    return this.process.pause();
  }

  resume(): Promise<void> {
    return this.process.resume();
  }

  kill(): Promise<void> {
    return this.process.kill();
  }
}

/** The port of TLS, which it insists on, is any. */
function propertiesFor(port: number): Readonly<Record<string, string>> {
  return {
    'server.port': '0',
    'com.adobe.testing.s3mock.httpPort': String(port),
    'com.adobe.testing.s3mock.store.initial-buckets': BUCKET,
    'com.adobe.testing.s3mock.store.valid-kms-keys': `arn:aws:kms:us-east-1:1234567890:key/${KMS_KEY}`,
  };
}
