import { newCommandId, newUlid } from './ids.ts';
import type { RequestContext } from './request-context.ts';

/** How long the system waits for its own work; nobody else waits for it. */
const SYSTEM_TIMEOUT_MS = 30_000;

/** What the system does by itself in an environment: reactions, look-ups, bootstrap. */
export function systemContext(environment: string, now: number): RequestContext {
  return {
    environment,
    actor: { id: 'system', source: 'system', name: null },
    requestId: newUlid(now),
    commandId: newCommandId(now),
    deadline: now + SYSTEM_TIMEOUT_MS,
    receipt: {},
  };
}
