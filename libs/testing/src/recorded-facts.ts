import type { Fact } from '#libs/event-sourcing/src/deciding/decider';
import { appendBytes } from '#libs/event-sourcing/src/log/append-bytes';
import { type EventStore, MAX_APPEND_BYTES, type NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { tableOf, type View } from '#libs/event-sourcing/src/views/view';
import { ViewFold } from '#libs/event-sourcing/src/views/view-fold';
import { newUlid } from '#libs/platform/src/ids';
import type { EngineSet } from './engine-sets.ts';

/** Recorded, read and folded at a time: a machine that has other work too reads as many in time. */
const SLICE = 1_000;

interface Recording {
  readonly environment: string;
  readonly stream: string;
  readonly facts: readonly Fact[];
}

/** Records facts as if decisions had yielded them one by one, and brings the rows of a view along. */
export async function recordAndFold<Row>({ events, readModels }: EngineSet, view: View<Row>, { environment, stream, facts }: Recording): Promise<void> {
  const fold = new ViewFold(view, readModels.table(tableOf(view)));
  for (let start = 0; start < facts.length; start += SLICE) {
    await record(events, { environment, stream, facts: facts.slice(start, start + SLICE) });
    await fold.apply(await events.read(stream, start + 1));
  }
}

async function record(events: EventStore, { environment, stream, facts }: Recording): Promise<void> {
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
