import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import type { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';

/** Beyond the end of the log that was put back, the checkpoint of erasures would pass over those that are recorded from now on. */
export async function setBackErasures({ events, keys }: { readonly events: EventStore; readonly keys: KeyStore }): Promise<void> {
  const head = await events.head();
  if ((await keys.erasedUpTo()) > head) await keys.setErasedUpTo(head);
}
