import { credentials } from '@grpc/grpc-js';
import { givenOwnServer, givenStore } from '#libs/testing/src/given-event-store';
import { until } from '#libs/testing/src/until';
import { newEvent } from '../log/event-store.contract.ts';
import { START } from '../log/event-store.ts';
import { StreamsClient } from './driver.ts';
import { BATCH, LogSubscription } from './log-subscription.ts';
import { StreamNames } from './stream-names.ts';
import { allFollowing, eventOf } from './wire.ts';

describe('a subscription that is left', () => {
  it.each([
    ['after everything was taken', 10],
    ['with as many events waiting as it takes at once, and more to come', 2 * BATCH],
  ])('is over for the connection too, %s', async (_when, events) => {
    const { url } = await givenOwnServer();
    const store = await givenStore(url);
    for (let version = 0; version < events; version += 100)
      await store.append(
        'thing-1',
        version,
        Array.from({ length: Math.min(100, events) }, () => newEvent()),
      );
    const client = new StreamsClient(new URL(url).host, credentials.createInsecure());
    const names = new StreamNames('gatehouse');
    let arrived = 0;
    try {
      const call = client.read(allFollowing(null));
      const receive: ConstructorParameters<typeof LogSubscription>[2] = (response) => {
        const event = eventOf(response, names);
        if (event?.record != null) arrived++;
        return event;
      };
      const subscription = new LogSubscription(Promise.resolve(call), START, receive, () => {});
      await until(() => arrived >= Math.min(events, BATCH));
      let isOver = false;
      call.on('close', () => (isOver = true));
      subscription.close();
      await until(() => isOver);
      expect(arrived).toBeLessThan(2 * BATCH);
    } finally {
      client.close();
    }
  });
});
