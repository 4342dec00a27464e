import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client';
import { StartRefused } from '#libs/platform/src/start-refused';
import { ROOT } from '../process.ts';
import { eventstore, SMALL_SERVER } from './eventstore.ts';
import { isForClusters, startByCommand, wordsOf } from './eventstore-command.ts';
import { freePort } from './free-port.ts';
import { WatchedDirectory } from './watched-directory.ts';

describe('a command that starts EventStoreDB', () => {
  const values = { data: '/somewhere/data', port: '2113', insecure: 'true', certificate: undefined, password: undefined };

  it('gets what it asks for, and no word for what there is not', () => {
    const command = ' env SECRET={password} eventstored --db={data}  --node-port {port} --insecure={insecure} --certificate-file={certificate} ';
    expect(wordsOf(command, values)).toEqual(['env', 'eventstored', '--db=/somewhere/data', '--node-port', '2113', '--insecure=true']);
    const secured = { ...values, insecure: 'false', certificate: '/a/b', password: '{port} $&' };
    expect(wordsOf(command, secured).slice(1)).toEqual([
      'SECRET={port} $&',
      'eventstored',
      '--db=/somewhere/data',
      '--node-port',
      '2113',
      '--insecure=false',
      '--certificate-file=/a/b',
    ]);
  });

  it.each([
    ['eventstored {data}', '{port} is not in it'],
    ['eventstored {port}', '{data} is not in it'],
    ['eventstored {data} {port} {prot}', 'EVENTSTORE_COMMAND has {prot}; there is {data}, {port}'],
  ])('is refused where it cannot work: %s', (command, message) => {
    expect(() => wordsOf(command, values)).toThrow(StartRefused);
    expect(() => wordsOf(command, values)).toThrow(message);
  });

  it('can be what the README says', () => {
    const [, command] = /EVENTSTORE_COMMAND="([^"]+)"/.exec(readFileSync(join(ROOT, 'libs/testing/README.md'), 'utf8'))!;
    const given = { ...values, replication_port: '1113', certificate_key: undefined, authorities: undefined, cluster_size: '1', gossip_seeds: undefined };
    expect(wordsOf(command!, given).join(' ')).toMatch(
      /^env EVENTSTORE_TELEMETRY_OPTOUT=true \S+eventstored --db=\/somewhere\/data [^{}]+ --cluster-size=1 --discover-via-dns=false$/,
    );
    expect(isForClusters(command!)).toBe(true);
  });

  // The small server takes the place of the real one, as a program of its own.
  it('starts a server that can be killed, paused and started again on its data', async () => {
    const directory = WatchedDirectory.create('eventstore-command');
    const port = await freePort();
    const address = eventstore.addressAt(port);
    const isReady = (): Promise<boolean> => eventstore.answers(address);
    const command = `${process.execPath} ${SMALL_SERVER} {data} {port} --tls={certificate},{certificate_key}`;
    const server = await startByCommand(command, directory, { name: 'commanded', port, address, isReady });
    const client = EventStoreDBClient.connectionString(`${address}&defaultDeadline=2000`);
    try {
      await client.appendToStream('letters', jsonEvent({ type: 'letter', data: {} }), { expectedRevision: NO_STREAM });
      const { pid } = server;
      await server.kill();
      expect(server.pid).toBeNull();
      await server.restart();
      expect(server.pid).not.toBe(pid);
      await server.pause();
      const asked = isReady();
      expect(await Promise.race([asked, pause(1_000, 'silent')])).toBe('silent');
      await server.resume();
      expect(await asked).toBe(true);
      const types: unknown[] = [];
      for await (const { event } of client.readStream('letters')) types.push(event?.type);
      expect(types).toEqual(['letter']);
    } finally {
      await client.dispose();
      await server.close();
      directory.remove();
    }
  });
});
