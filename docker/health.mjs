// The health check of the image: whether this container's process may be sent requests.
/* global fetch, AbortSignal */
const port = process.env.OPERATIONS_PORT ?? '9090';

try {
  const { ok, status } = await fetch(`http://127.0.0.1:${port}/health/ready`, { signal: AbortSignal.timeout(2_500) });
  if (!ok) throw new Error(`not ready (${status})`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
