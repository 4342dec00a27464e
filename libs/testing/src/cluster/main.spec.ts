import { randomBytes } from 'node:crypto';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { givenKafka } from '../engines/given.ts';
import { kafka } from '../engines/kafka.ts';
import { Program } from '../process.ts';

const described = (await givenKafka()) === null ? describe.skip : describe;
const { PATH, HOME } = environmentVariables();
const machine = { PATH: PATH!, HOME: HOME! };
const key = `sk_${randomBytes(20).toString('hex')}`;

/** Six processes start, on a machine that may be busy with more. */
const START_MS = 120_000;

described('the programs `engines` and `cluster`', () => {
  let engines: Program;
  let addresses: Record<string, string>;
  let cluster: Program;

  afterAll(async () => {
    for (const program of [cluster, engines]) await program?.kill('SIGKILL');
  });

  it(
    'start engines, and print what to export',
    async () => {
      engines = Program.start('libs/testing/src/engines/main', [], machine);
      const printed = (await engines.printed(/(?:export .*\n){3}/))![0];
      addresses = Object.fromEntries([...printed.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, setting, address]) => [setting!, address!]));
      expect(addresses).toEqual({
        KAFKA_BROKERS: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        MONGODB_URL: expect.stringMatching(/^mongodb:\/\/127\.0\.0\.1:\d+$/),
        EVENTSTORE_URL: expect.stringMatching(/^esdb:\/\//),
      });
      expect(await kafka.answers(addresses['KAFKA_BROKERS']!)).toBe(true);
    },
    START_MS,
  );

  it('refuse engines of others without the key that encrypts what is stored there', async () => {
    const { code, stderr } = await Program.start('libs/testing/src/cluster/main', [], { ...machine, ...addresses }).ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^gatehouse: MASTER_KEYS must be set too/)]);
  });

  it('start as in production on engines of their own alone, and take no other option', async () => {
    const refusalOf = async (...words: readonly string[]) => {
      const { code, stderr } = await Program.start('libs/testing/src/cluster/main', words, { ...machine, ...addresses }).ended;
      return [code, stderr];
    };
    expect(await refusalOf('--secure')).toEqual([1, 'gatehouse: --secure starts engines of its own: leave out EVENTSTORE_URL, MONGODB_URL, KAFKA_BROKERS.\n']);
    expect(await refusalOf('--safe')).toEqual([1, expect.stringMatching(/^gatehouse: Unknown option '--safe'\..* The one option is --secure\.\n$/)]);
  });

  it('start nothing where a gateway could not listen', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    for (const [PORT, refused] of [
      [port, port],
      [65_535, 65_536],
    ] as const) {
      const { code, stderr } = await Program.start('libs/testing/src/cluster/main', [], { ...machine, PORT: String(PORT) }).ended;
      expect([code, stderr]).toEqual([
        1,
        `gatehouse: Port ${refused} on 127.0.0.1 cannot be had, and the gateways listen on PORT and the port after it: set PORT to another one.\n`,
      ]);
    }
    taken.close();
  });

  it(
    'start two gateways over them, which take the same key',
    async () => {
      const variables = { ...machine, ...addresses, PORT: '0', GATEHOUSE_API_KEY: key, MASTER_KEYS: randomBytes(32).toString('base64') };
      cluster = Program.start('libs/testing/src/cluster/main', [], variables);
      const { one, other } = (await cluster.printed(/ready at (?<one>\S+) and (?<other>\S+)\.\n/))!.groups!;
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
      const created = await fetch(`${one}/organizations`, { method: 'POST', headers, body: '{"name":"Acme"}' });
      expect(created.status).toBe(201);
      const { id } = (await created.json()) as { readonly id: string };
      expect((await fetch(`${other}/organizations/${id}`, { headers })).status).toBe(200);
      // Which needs a store of files.
      const range = { range_start: '2026-01-01T00:00:00Z', range_end: '2026-01-02T00:00:00Z' };
      const exported = await fetch(`${one}/audit_logs/exports`, { method: 'POST', headers, body: JSON.stringify({ organization_id: id, ...range }) });
      expect(exported.status).toBe(201);
    },
    START_MS,
  );

  it('end with what they started, and with nothing else', async () => {
    const { code, stdout } = await cluster.kill('SIGINT');
    expect([code, stdout]).toEqual([0, expect.not.stringContaining('first key')]);
    expect(await kafka.answers(addresses['KAFKA_BROKERS']!)).toBe(true);
    expect((await engines.kill('SIGINT')).code).toBe(0);
    expect(await kafka.answers(addresses['KAFKA_BROKERS']!)).toBe(false);
  });
});
