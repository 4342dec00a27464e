import { Kafka } from 'kafkajs';

// node consumer.mjs broker:9092 environment_01J… my-service
const [, , brokers, environment, groupId, installation = 'gatehouse'] = process.argv;
const consumer = new Kafka({ clientId: groupId, brokers: brokers.split(',') }).consumer({ groupId });
// Keep it where you keep what you do with the events, and write both in one transaction: then a restart forgets nothing.
const seen = new Set();

await consumer.connect();
await consumer.subscribe({ topic: `${installation}.${environment}.identity`, fromBeginning: true });
await consumer.run({
  eachMessage: async ({ message }) => {
    const id = message.headers.ce_id.toString();
    if (seen.has(id)) return;
    const { event, data, created_at } = JSON.parse(message.value.toString());
    console.log(created_at, event, data.id);
    seen.add(id);
  },
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void consumer.disconnect());
