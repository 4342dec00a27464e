import { setTimeout as pause } from 'node:timers/promises';
import { ok, Operation } from '#libs/contracts/src/operation';
import { BASE_32, newCommandId, newUlid } from '#libs/platform/src/ids';
import { givenReplica, givenTransport, OWNER, Way, type GivenReplica, type GivenTransport } from '#libs/testing/src/given-replicas';
import { mayTake, until } from '#libs/testing/src/until';
import { asked, Lamp, LightLamp, LookAtLamp, operationTransportContract, type Lamps } from './operation-transport.contract.ts';

const UNAVAILABLE = { kind: 'unavailable', code: 'service_unavailable', details: { retryAfter: 1 } };
const LAMP = 'lamp_01J00000000000000000000000';
const YEAR = 365 * 24 * 60 * 60_000;

/** As ids begin. */
function timeText(time: number): string {
  return Array.from({ length: 10 }, (_, place) => BASE_32[Math.floor(time / 32 ** (9 - place)) % 32]).join('');
}

operationTransportContract('over TCP', async (lamps) => {
  const replica = await givenReplica({ lamps });
  const { transport } = await givenTransport([replica.address]);
  return {
    transport,
    close: async () => {
      await transport.close();
      await replica.stop();
    },
  };
});

describe('the transport over TCP', () => {
  const closing: (() => Promise<unknown>)[] = [];
  const replica = async (options?: Parameters<typeof givenReplica>[0]): Promise<GivenReplica> => {
    const given = await givenReplica(options);
    closing.push(() => given.stop());
    return given;
  };
  const opened = async (...parameters: Parameters<typeof givenTransport>): Promise<GivenTransport> => {
    const given = await givenTransport(...parameters);
    closing.push(() => given.transport.close());
    return given;
  };
  const way = async (to: GivenReplica): Promise<{ readonly way: Way; readonly address: string }> => {
    const given = new Way(to.port);
    closing.push(() => given.close());
    return { way: given, address: await given.open() };
  };
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  const look = ({ transport }: GivenTransport, mode: string, { id = LAMP, left = 10_000 } = {}): Promise<Lamp> =>
    transport.call(asked(LookAtLamp, { id, mode }, { deadline: Date.now() + left }));
  const begun = (...lamps: readonly { readonly lamps: Lamps }[]): number => lamps.reduce((sum, each) => sum + each.lamps.begun.length, 0);
  /** Ids that a process sends to this replica while all is well. */
  const idsOf = async (from: GivenTransport, to: GivenReplica, count: number): Promise<readonly string[]> => {
    const ids: string[] = [];
    while (ids.length < count) {
      const id = `lamp_${newUlid(Date.now())}`;
      const before = begun(to);
      await look(from, 'probe', { id });
      if (begun(to) > before) ids.push(id);
    }
    return ids;
  };
  it('is refused commands that are more than 5 s ahead of the clock of whoever carries them out, and nothing else', async () => {
    const server = await replica();
    const from = await opened([server.address]);
    // Ids of one process never go back: those of every spec after this one would be ahead too.
    const idAt = (time: number): string => timeText(time) + newCommandId(Date.now()).slice(10);
    const light = (ahead: number): Promise<Lamp> => from.transport.call(asked(LightLamp, { id: LAMP, colour: 'red' }, { commandId: idAt(Date.now() + ahead) }));
    const counted = async (): Promise<string | undefined> => /gatehouse_commands_ahead_total (\d+)/.exec(await server.metrics.text())?.[1];
    for (const ahead of [0, 2_000, -60_000, -YEAR]) await expect(light(ahead)).resolves.toMatchObject({ id: LAMP });
    expect([begun(server), await counted()]).toEqual([4, '0']);
    for (const ahead of [10_000, 3 * YEAR]) await expect(light(ahead)).rejects.toMatchObject({ kind: 'unavailable' });
    expect([begun(server), await counted()]).toEqual([4, '2']);
    expect(server.log.lines).toEqual([expect.objectContaining({ level: 'warn', sentence: expect.stringContaining('clock') })]);
    const query = asked(LookAtLamp, { id: LAMP, mode: 'probe' }, { commandId: idAt(Date.now() + YEAR) });
    await expect(from.transport.call(query)).resolves.toMatchObject({ id: LAMP });
  });

  /** Until every replica can be asked. */
  const allAreThere = async ({ metrics }: GivenTransport, count: number): Promise<void> => {
    await until(async () => (await metrics.text()).includes(`gatehouse_operation_replicas{owner="${OWNER}",state="ready"} ${count}`));
  };

  it('asks another replica when the connection breaks, with the same command id', async () => {
    const [one, two] = [await replica(), await replica()];
    const from = await opened([one.address, two.address]);
    await allAreThere(from, 2);
    one.lamps.gate = new Promise(() => {});
    const calls = Array.from({ length: 100 }, (_, index) => look(from, 'wait', { id: `lamp_${index}` }));
    await until(() => begun(one, two) === 100);
    const onOne = begun(one);
    expect(onOne).toBeGreaterThan(10);
    await one.stop();
    expect((await Promise.all(calls)).map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, index) => `lamp_${index}`));
    expect(begun(two)).toBe(100);
    expect(two.lamps.contexts.slice(-onOne).map(({ commandId }) => commandId)).toEqual(
      expect.arrayContaining(one.lamps.contexts.map(({ commandId }) => commandId)),
    );
  });

  it('asks another replica at once where one needs a later release, and says that it is not the first; the refusal counts where there is no other', async () => {
    const [early, young] = [await replica(), await replica()];
    young.lamps.isOfLaterRelease = true;
    const from = await opened([early.address, young.address]);
    await allAreThere(from, 2);
    const began = performance.now();
    const [forEarly] = await idsOf(from, early, 1);
    expect(await look(from, 'later', { id: forEarly })).toMatchObject({ id: forEarly });
    while (early.lamps.ages.length === 0) await from.transport.call(asked(LightLamp, { id: forEarly!, colour: 'later' }));
    expect(performance.now() - began).toBeLessThan(mayTake(1_000));
    expect([early.lamps.ages, young.lamps.ages.slice(-1)]).toMatchObject([[{ attempt: 1 }], [{ attempt: 2 }]]);
    expect(await from.metrics.text()).toContain(`gatehouse_operations_moved_total{owner="${OWNER}",reason="needs_later_release"} 2`);
    await young.stop();
    await until(async () => !(await from.metrics.text()).includes(`gatehouse_operation_replicas{owner="${OWNER}",state="ready"} 2`));
    await expect(look(from, 'later', { id: forEarly })).rejects.toMatchObject({ ...UNAVAILABLE, details: { retryAfter: 5 } });
  });

  describe('with a command that may have begun', () => {
    const light = ({ transport }: GivenTransport, context: Parameters<typeof asked>[2] = {}): Promise<Lamp> =>
      transport.call(asked(LightLamp, { id: LAMP, colour: 'wait' }, context));

    it('asks another replica no sooner than a second after it was sent, and says that it is not the first', async () => {
      const replicas = [await replica(), await replica()] as const;
      const from = await opened(replicas.map(({ address }) => address));
      await allAreThere(from, 2);
      let open = (): void => {};
      for (const { lamps } of replicas) lamps.gate = new Promise<void>((resolve) => (open = resolve));
      const lit = light(from);
      await until(() => begun(...replicas) === 1);
      const [holder, other] = begun(replicas[0]) === 1 ? replicas : ([replicas[1], replicas[0]] as const);
      other.lamps.gate = Promise.resolve();
      await holder.stop();
      await lit;
      open();
      expect(holder.lamps.ages).toMatchObject([{ attempt: 1 }]);
      expect(other.lamps.ages).toMatchObject([{ attempt: 2 }]);
      expect(other.lamps.ages[0]!.age).toBeGreaterThanOrEqual(1_000);
    });

    it('waits that long for a replica, too, that is found silent a moment after it was sent', async () => {
      const [one, two] = [await replica(), await replica()];
      const { way: toOne, address } = await way(one);
      const from = await opened([address, two.address]);
      await allAreThere(from, 2);
      toOne.block();
      await pause(1_200);
      await Promise.all(Array.from({ length: 20 }, () => light(from)));
      const moved = two.lamps.ages.filter(({ attempt }) => attempt === 2);
      expect(moved.length).toBeGreaterThan(0);
      for (const { age } of moved) expect(age).toBeGreaterThanOrEqual(1_000);
    });

    it('says nothing of it either before it is a second old, where there is no other', async () => {
      const one = await replica();
      const from = await opened([one.address]);
      await allAreThere(from, 1);
      one.lamps.gate = new Promise(() => {});
      const sent = performance.now();
      const lit = light(from);
      await until(() => begun(one) === 1);
      await one.stop();
      await expect(lit).rejects.toMatchObject(UNAVAILABLE);
      expect(performance.now() - sent).toBeGreaterThanOrEqual(1_000);
    });

    it('tells how often it was asked for and how old it is, whoever sent it first', async () => {
      const one = await replica();
      const from = await opened([one.address]);
      await light(from);
      await light(from, { attempt: 3, sentAt: performance.now() - 5_000 });
      expect(one.lamps.ages.map(({ attempt }) => attempt)).toEqual([1, 3]);
      expect(one.lamps.ages[1]!.age).toBeGreaterThanOrEqual(5_000);
      expect(one.lamps.ages[0]!.age).toBeLessThan(one.lamps.ages[1]!.age - 4_000);
    });
  });

  it('refuses at once when no replica can be reached, and goes on when one is back', async () => {
    const one = await replica();
    const from = await opened([one.address]);
    await look(from, '');
    one.lamps.gate = new Promise(() => {});
    const interrupted = look(from, 'wait');
    await until(() => one.lamps.begun.includes('wait'));
    const began = Date.now();
    await one.stop();
    await expect(interrupted).rejects.toMatchObject(UNAVAILABLE);
    await expect(look(from, '')).rejects.toMatchObject(UNAVAILABLE);
    expect(Date.now() - began).toBeLessThan(mayTake(1_000));
    await replica({ port: one.port });
    await until(async () => Boolean(await look(from, '').catch(() => null)));
    expect(from.log.lines.filter(({ sentence }) => sentence.includes('cannot be reached'))).toHaveLength(1);
  });

  it('leaves a replica that does not answer, and comes back to it; what it was sent meanwhile is not begun there', async () => {
    const [one, two] = [await replica(), await replica()];
    const { way: toOne, address } = await way(one);
    const from = await opened([address, two.address]);
    await allAreThere(from, 2);
    const ids = await idsOf(from, one, 20);
    const before = { one: begun(one), two: begun(two) };
    toOne.block();
    const began = Date.now();
    const commands = ids.map((id) => from.transport.call(asked(LightLamp, { id, colour: 'red' })));
    await Promise.all(commands);
    expect(Date.now() - began).toBeLessThan(mayTake(8_000));
    expect(begun(two) - before.two).toBe(20);
    // What comes later does not even try.
    const later = Date.now();
    await Promise.all(ids.map((id) => look(from, '', { id })));
    expect(Date.now() - later).toBeLessThan(mayTake(1_400));
    toOne.unblock();
    await allAreThere(from, 2);
    expect(begun(one)).toBe(before.one);
    await look(from, '', { id: ids[0]! });
    expect(begun(one)).toBe(before.one + 1);
  });

  it('asks another replica when one lives but takes more than its part of the time', async () => {
    const [one, two] = [await replica(), await replica()];
    const from = await opened([one.address, two.address]);
    await allAreThere(from, 2);
    const [id] = await idsOf(from, one, 1);
    one.lamps.gate = new Promise(() => {});
    const began = Date.now();
    await look(from, 'wait', { id, left: 1_000 });
    expect(Date.now() - began).toBeGreaterThan(450);
    expect(Date.now() - began).toBeLessThan(mayTake(960));
    // The one that was left knows: whoever looks at the deadline appends nothing any more.
    expect(one.lamps.contexts.at(-1)).toMatchObject({ deadline: 0 });
  });

  it('has nothing begun for which nobody waits any more', async () => {
    const one = await replica();
    const { way: toOne, address } = await way(one);
    const from = await opened([address]);
    await look(from, 'first');
    toOne.block();
    await expect(look(from, 'late', { left: 100 })).rejects.toMatchObject(UNAVAILABLE);
    toOne.unblock();
    await look(from, 'next');
    expect(one.lamps.begun).toEqual(['first', 'next']);
  });

  it('sends what belongs to one id to one replica, from every process, and moves only what has to move', async () => {
    const replicas = [await replica(), await replica(), await replica()];
    const addresses = replicas.map(({ address }) => address);
    const [here, there] = [await opened(addresses), await opened([...addresses].reverse())];
    for (const each of [here, there]) await allAreThere(each, 3);
    const ids = Array.from({ length: 60 }, () => `lamp_${newUlid(Date.now())}`);
    const placeOf = async (from: GivenTransport, id: string): Promise<number> => {
      const before = replicas.map((each) => begun(each));
      await look(from, '', { id });
      return replicas.findIndex((each, index) => begun(each) > before[index]!);
    };
    const places: number[] = [];
    for (const id of ids) places.push(await placeOf(here, id));
    for (const place of [0, 1, 2]) expect(places.filter((each) => each === place).length).toBeGreaterThan(8);
    for (const [index, id] of ids.entries()) expect(await placeOf(there, id)).toBe(places[index]);
    await replicas[2]!.stop();
    await until(() => here.log.lines.some(({ sentence }) => sentence.includes('cannot be reached')));
    for (const [index, id] of ids.entries()) {
      const place = await placeOf(here, id);
      if (places[index] !== 2) expect(place).toBe(places[index]);
    }
  });

  it('lets no replica have more than a fourth above its share, however popular an id is', async () => {
    const [one, two] = [await replica(), await replica()];
    const from = await opened([one.address, two.address]);
    await allAreThere(from, 2);
    let open = (): void => {};
    one.lamps.gate = two.lamps.gate = new Promise<void>((resolve) => (open = resolve));
    const calls = Array.from({ length: 100 }, () => look(from, 'wait'));
    await until(() => begun(one, two) === 100);
    expect(Math.max(begun(one), begun(two))).toBeLessThanOrEqual(64);
    expect(Math.max(begun(one), begun(two))).toBeGreaterThan(55);
    open();
    await Promise.all(calls);
  });

  it('refuses at once what is over its bounds', async () => {
    const one = await replica();
    const from = await opened([one.address]);
    let open = (): void => {};
    one.lamps.gate = new Promise<void>((resolve) => (open = resolve));
    await look(from, '');
    const calls = Array.from({ length: 512 }, () => look(from, 'wait'));
    const began = Date.now();
    await expect(look(from, '')).rejects.toMatchObject(UNAVAILABLE);
    expect(Date.now() - began).toBeLessThan(mayTake(1_000));
    open();
    await Promise.all(calls);
    await look(from, '');
  });

  it('fails no request when replicas leave and come back one after another', async () => {
    let replicas = [await replica(), await replica()];
    const from = await opened(replicas.map(({ address }) => address));
    await allAreThere(from, 2);
    let answered = 0;
    let goesOn = true;
    const load = Array.from({ length: 16 }, async () => {
      while (goesOn) {
        await look(from, 'slow', { id: `lamp_${answered}` });
        answered++;
      }
    });
    for (const leaving of replicas) {
      const before = answered;
      await until(() => answered > before + 50);
      const began = Date.now();
      await leaving.server.drain(10_000);
      expect(Date.now() - began).toBeLessThan(mayTake(5_000));
      await leaving.stop();
      const next = await replica({ port: leaving.port });
      replicas = [...replicas, next];
      await until(() => begun(next) > 50);
    }
    goesOn = false;
    await Promise.all(load);
    expect(answered).toBeGreaterThan(200);
  });

  it('goes on asking a replica that is about to stop where there is no other', async () => {
    const one = await replica();
    const from = await opened([one.address]);
    await look(from, '');
    const draining = one.server.drain(10_000);
    for (let count = 0; count < 10; count++) await look(from, 'slow');
    const began = Date.now();
    await draining;
    // Whoever asks nothing more holds nobody up.
    expect(Date.now() - began).toBeLessThan(mayTake(5_000));
  });

  it('follows the name of a service to other addresses', async () => {
    const one = await replica({ host: '127.0.0.2' });
    const two = await replica({ host: '127.0.0.3', port: one.port });
    let addresses: readonly string[] | Error = ['127.0.0.2'];
    const asksFor: string[] = [];
    const resolve = async (host: string): Promise<readonly string[]> => {
      asksFor.push(host);
      if (addresses instanceof Error) throw addresses;
      return addresses;
    };
    const from = await opened([`identity.internal:${one.port}`], { resolve });
    await look(from, '');
    expect(asksFor).toEqual(['identity.internal']);
    let open = (): void => {};
    one.lamps.gate = new Promise<void>((release) => (open = release));
    const underWay = look(from, 'wait');
    await until(() => one.lamps.begun.includes('wait'));
    addresses = ['127.0.0.3'];
    await until(() => asksFor.length > 1);
    await allAreThere(from, 1);
    for (let count = 0; count < 10; count++) await look(from, 'elsewhere', { id: `lamp_${count}` });
    expect(two.lamps.begun.filter((mode) => mode === 'elsewhere')).toHaveLength(10);
    open();
    await underWay;
    addresses = new Error('no name server');
    const before = asksFor.length;
    await until(() => asksFor.length > before + 1);
    await look(from, 'still');
    expect(two.lamps.begun).toContain('still');
    await one.server.drain(5_000);
  });

  it('validates again at the service', async () => {
    const one = await replica();
    const from = await opened([one.address]);
    const wrong = asked(LightLamp, { id: 7 as never, colour: 'x'.repeat(21), brightness: 0 });
    await expect(from.transport.call(wrong)).rejects.toMatchObject({
      kind: 'invalid',
      code: 'invalid_request_parameters',
      details: { errors: [{ field: 'id' }, { field: 'colour', code: 'too_long' }, { field: 'brightness', code: 'out_of_range' }] },
    });
    const more = asked(LightLamp, { id: LAMP, colour: 'red', bulbs: [{ socket: 'E27', watts: 1, more: 2 } as never], ...{ undeclared: true } });
    expect(await from.transport.call(more)).toEqual({ id: LAMP, colour: 'red', seen: { brightness: 50, bulbs: [{ socket: 'E27', watts: 1 }] } });
    expect(one.lamps.begun).toHaveLength(1);
  });

  it('is refused where the service does not know the operation, as a new gateway is by an old service', async () => {
    const one = await replica();
    const from = await opened([one.address]);
    class LookAway extends LookAtLamp {}
    // Registered after the server has looked at what there is.
    Operation({ internal: true, owner: OWNER, summary: 'Look away', answers: ok(Lamp) })(LookAway);
    await expect(from.transport.call(asked(LookAway, { id: LAMP }))).rejects.toMatchObject(UNAVAILABLE);
  });
});
