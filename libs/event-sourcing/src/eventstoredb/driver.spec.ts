import { createRequire } from 'node:module';
import { driverFor, shared, streams, StreamsClient } from './driver.ts';

describe('the driver of EventStoreDB', () => {
  it('is the one whose privates are known: who takes another release reads its client first', () => {
    const { version } = createRequire(import.meta.url)('@eventstore/db-client/package.json') as { readonly version: string };
    expect(version).toBe('6.2.1');
  });

  it('keeps what our calls need', () => {
    const driver = driverFor('esdb://admin:changeit@127.0.0.1:1?tls=false');
    expect([typeof driver.getGRPCClient, typeof driver.handleError]).toEqual(['function', 'function']);
    const [metadata, options] = driver.callArguments({ requiresLeader: true, deadline: 1_000 });
    expect(metadata.getMap()).toMatchObject({ 'requires-leader': 'true' });
    expect(options.deadline).toBeInstanceOf(Date);
    expect(driver.callArguments({ requiresLeader: false }, { deadline: Infinity })[1]).toMatchObject({ deadline: Infinity });
  });

  it('has the messages of a read and of a batch append', () => {
    const id = new shared.UUID().setString('0190a2b0-0000-7000-8000-000000000000');
    expect(new streams.BatchAppendReq().setCorrelationId(id).getCorrelationId()?.getString()).toBe(id.getString());
    expect(new streams.ReadReq().serializeBinary()).toHaveLength(0);
    expect(typeof StreamsClient.prototype.batchAppend).toBe('function');
  });
});
