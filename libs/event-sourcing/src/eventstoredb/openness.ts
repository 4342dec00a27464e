import { newUlid } from '#libs/platform/src/ids';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import type { NewEvent } from '../log/event-store.ts';
import { Connection } from './connection.ts';
import { checkedUrl, withoutCredentials } from './connection-string.ts';
import { appendRequest, refusalOf } from './wire.ts';

/** No stream has so many events, so nothing is ever appended behind them. */
const IMPOSSIBLE_VERSION = 2 ** 52;
/** A start does not wait longer to learn it. */
const ANSWER_MS = 2_000;

/**
 * Whether the server lets whoever comes without a password append to a stream: told by what it answers to an append at a version that cannot be. Whoever may not is refused, whoever may
 * has the wrong version. Where it does not say, it is taken for closed.
 */
export async function isOpenToAnybody(url: string, stream: string): Promise<boolean> {
  const anonymous = withoutCredentials(checkedUrl(url));
  if (anonymous === null) return false;
  const connection = new Connection(anonymous);
  try {
    const answer = await connection.append(appendRequest(stream, IMPOSSIBLE_VERSION, [triedEvent()]), ANSWER_MS);
    return refusalOf(answer) === 'WrongExpectedVersion';
  } catch {
    return false;
  } finally {
    connection.close();
  }
}

function triedEvent(): NewEvent {
  const now = Date.now();
  const { environment, actor, requestId, commandId } = systemContext(SYSTEM_ENVIRONMENT, now);
  const meta = { environment, actor, requestId, commandId, at: now };
  return { id: newUlid(now), type: 'rights.tried', shape: 1, data: null, subject: null, public: [], meta };
}
