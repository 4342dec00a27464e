import type { Members } from '#libs/testing/src/engines/eventstore-server/members';
import { REFUSALS } from '#libs/testing/src/engines/eventstore-server/members';
import type { Streams } from '#libs/testing/src/engines/eventstore-server/streams';
import { givenOwnServer, givenStore, refusedWithin, printed } from '#libs/testing/src/given-event-store';
import { mayTake } from '#libs/testing/src/until';
import { newEvent, take } from '../log/event-store.contract.ts';
import type { EventstoredbEventStore } from './eventstoredb.event-store.ts';

describe('an event store in EventStoreDB', () => {
  describe('that does not do what it is asked', () => {
    let members: Members;
    let streams: Streams;
    let url: string;
    let store: EventstoredbEventStore;

    beforeEach(async () => {
      ({ url, members, streams } = await givenOwnServer());
      store = await givenStore(url);
      await store.append('thing-1', 0, [newEvent()]);
      printed.length = 0;
    });

    /** At once: it is not asked again. */
    const refusedAtOnce = (ask: () => Promise<unknown>): Promise<void> => refusedWithin(2_000, ask);
    const told = (): readonly string[] => printed.map((line) => (JSON.parse(line) as { readonly message: string }).message);

    it.each(['notReady', 'tooBusy', 'noLeader', 'timedOut', 'brokenStream'] as const)(
      'is asked again: %s',
      async (refusal) => {
        const refused = (count = 2): void => void members.refusals.push(...Array.from({ length: count }, () => REFUSALS[refusal]));
        refused();
        expect(await store.read('thing-1')).toHaveLength(1);
        refused();
        expect(await store.append('thing-2', 0, [newEvent()])).toMatchObject({ version: 1 });
        refused();
        const head = await store.head();
        expect((await store.last('thing-2'))!.position).toBe(head);
        expect(await take(store, 2)).toHaveLength(2);
        expect(told()).toEqual([]);
      },
      20_000,
    );

    it('is away in the end, with the cause in the log: no mistake of ours, for which an event would be passed over', async () => {
      // Also where the time is over in the middle of a try.
      members.refusals.push(...Array.from({ length: 3 }, () => REFUSALS.brokenStream));
      streams.isSilent = true;
      await refusedWithin(5_000, () => store.read('thing-1'));
      expect(told()).toEqual(['EventStoreDB does not do what it is asked.']);
      expect(printed.join()).toContain('RST_STREAM');
    }, 10_000);

    it('is waited for at the start while it is not ready', async () => {
      members.refusals.push(REFUSALS.notReady, REFUSALS.noLeader);
      expect(await (await givenStore(url)).read('thing-1')).toHaveLength(1);
    });

    it('has appended once what it says timed out', async () => {
      streams.answers.push('Timeout');
      const events = [newEvent(), newEvent()];
      const appended = await store.append('thing-1', 1, events);
      expect(appended).toMatchObject({ version: 3 });
      expect((await store.read('thing-1', 2)).map(({ id }) => id)).toEqual(events.map(({ id }) => id));
      expect((await store.last('thing-1'))!.position).toBe(appended.position);
    });

    it.each(['denied', 'deniedByProxy', 'unknownUser'] as const)(
      'because it does not let us is not asked again, and says once what to allow: %s',
      async (refusal) => {
        for (const ask of [() => store.read('thing-1'), () => store.head(), () => take(store, 1)]) {
          members.refusals.push(REFUSALS[refusal]);
          await refusedAtOnce(ask);
        }
        expect(members.refusals).toEqual([]);
        expect(told()).toEqual([
          'EventStoreDB does not let the user in EVENTSTORE_URL do what was asked of it. What a user has to be allowed stands in docs/operations.md.',
        ]);
        expect(await store.read('thing-1')).toHaveLength(1);
        // A start reads what is noted of damage, which it may do without, and looks for the end of the log.
        members.refusals.push(REFUSALS[refusal], REFUSALS[refusal]);
        await expect(givenStore(url)).rejects.toThrow('EventStoreDB refuses the name and password in EVENTSTORE_URL, or does not let them read $all.');
      },
    );

    it('because it lets us read, and not append, says so at once too', async () => {
      streams.answers.push('AccessDenied');
      await refusedAtOnce(() => store.append('thing-1', 1, [newEvent()]));
      expect(told()).toHaveLength(1);
      expect(printed.join()).toContain('EventStoreDB does not let the user append to thing-1.');
      expect(await store.append('thing-1', 1, [newEvent()])).toMatchObject({ version: 2 });
    });

    it('because of a mistake of ours tells of that, and is not asked again', async () => {
      const askedAt = Date.now();
      await expect(store.append('thing-1', 1, [newEvent({ count: 1n })])).rejects.toThrow(TypeError);
      expect(Date.now() - askedAt).toBeLessThan(mayTake(2_000));
    });
  });
});
