import { freePort } from '#libs/testing/src/engines/free-port';
import { Program } from './program.ts';
import { KEY } from './suite.ts';
import { unique } from './table.ts';
import { load, type LoadResult } from './wrk.ts';

/** What a plain Fastify POST with a schema does here and now. */
export function reference(seconds: number): Promise<LoadResult> {
  return withServer((url) => load({ url: `${url}/organizations`, script: 'create', arguments: [KEY, unique()], connections: 32, seconds }));
}

/** What a plain Fastify does that sends a text as long as a key set. */
export function referenceOfText(seconds: number, file: string): Promise<LoadResult> {
  return withServer((url) => load({ url, script: 'get', arguments: [KEY, file], connections: 32, seconds }));
}

async function withServer(measure: (url: string) => Promise<LoadResult>): Promise<LoadResult> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = new Program('bench/reference-server.js', {}, [`${port}`]);
  try {
    await server.answers(`${url}/health/ready`);
    return await measure(url);
  } finally {
    await server.stop();
  }
}
