import { randomUUID } from 'node:crypto';
import { newUlid } from '#libs/platform/src/ids';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { StartRefused } from '#libs/platform/src/start-refused';
import { systemContext } from '#libs/platform/src/system-context';
import type { NewEvent } from '../log/event-store.ts';
import type { ReadResponse } from './wire.ts';

const ID = /^[0-9a-f-]{36}$/;

/** What the stream that says which log it is holds, once. */
export function identityEvent(): NewEvent {
  const now = Date.now();
  const { environment, actor, requestId, commandId } = systemContext(SYSTEM_ENVIRONMENT, now);
  const meta = { environment, actor, requestId, commandId, at: now };
  return { id: newUlid(now), type: 'log.begun', shape: 1, data: { id: randomUUID() }, subject: null, public: [], meta };
}

/** The id in what was read of that stream, from its beginning; null where nothing was. @throws StartRefused when it begins with something else */
export function identityIn(stream: string, responses: readonly ReadResponse[]): string | null {
  const event = responses.map((response) => response.getEvent()?.getEvent()).find((each) => each !== undefined);
  if (event === undefined) return null;
  const id = event.getStreamRevision() === '0' ? identityOf(event.getData_asU8()) : null;
  if (id === null)
    throw new StartRefused(
      `The stream ${stream} in EventStoreDB does not begin with what it was begun with: it was cut, deleted, or written by somebody else. Put the log back from a backup.`,
    );
  return id;
}

function identityOf(data: Uint8Array): string | null {
  try {
    const { id } = (JSON.parse(Buffer.from(data).toString()) as { readonly data: { readonly id: unknown } }).data;
    return typeof id === 'string' && ID.test(id) ? id : null;
  } catch {
    return null;
  }
}
