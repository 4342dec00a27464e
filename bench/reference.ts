import { freePort } from '#libs/testing/src/engines/free-port';
import { Program } from './program.ts';
import { KEY } from './suite.ts';
import { unique } from './table.ts';
import { load, type LoadResult } from './wrk.ts';

/** What a plain Fastify POST with a schema does here and now. */
export async function reference(seconds: number): Promise<LoadResult> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = new Program('bench/reference-server.js', {}, [`${port}`]);
  try {
    await server.answers(`${url}/health/ready`);
    return await load({ url: `${url}/organizations`, script: 'create', arguments: [KEY, unique()], connections: 32, seconds });
  } finally {
    await server.stop();
  }
}
