import type { IncomingMessage } from 'node:http';
import { newUlid } from './ids.ts';

const ACCEPTED = /^[A-Za-z0-9_-]{1,64}$/;

/** The caller's own request id where it is harmless in logs and headers, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && ACCEPTED.test(given) ? given : `req_${newUlid(Date.now())}`;
}
