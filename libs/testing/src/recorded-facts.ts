import { appendBytes } from '#libs/event-sourcing/src/append-bytes';
import { type EventStore, MAX_APPEND_BYTES, type NewEvent } from '#libs/event-sourcing/src/event-store';
import type { Fact } from '#libs/event-sourcing/src/decider';
import { newUlid } from '#libs/platform/src/ids';

/** Records facts of one environment as if decisions had yielded them one by one, in as few appends as the log takes. */
export async function recordFacts(events: EventStore, stream: string, environment: string, facts: readonly Fact[]): Promise<void> {
  let version = (await events.last(stream))?.version ?? 0;
  let [together, bytes]: [NewEvent[], number] = [[], 0];
  const append = async (): Promise<void> => {
    if (together.length > 0) ({ version } = await events.append(stream, version, together));
    [together, bytes] = [[], 0];
  };
  for (const { type, data } of facts) {
    const id = newUlid(Date.now());
    const meta = { environment, actor: { id: 'test', source: 'system' as const, name: null }, requestId: id, commandId: id, at: Date.now() };
    const event: NewEvent = { id, type, shape: 1, data, subject: null, public: [], meta };
    const size = appendBytes([event]);
    if (bytes + size > MAX_APPEND_BYTES) await append();
    together.push(event);
    bytes += size;
  }
  await append();
}
