import { messageBusContract } from '#libs/messaging/src/message-bus.contract';
import { KeptMessages } from './kept-messages.ts';

messageBusContract('the memory of a spec', async () => {
  const bus = new KeptMessages();
  const published = async (wanted: string) => bus.published.filter(({ topic }) => topic === wanted).map(({ key, value, headers }) => ({ key, value, headers }));
  return { bus, published, close: () => bus.close() };
});
