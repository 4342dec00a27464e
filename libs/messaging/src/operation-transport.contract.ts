import { type INestApplicationContext, Module } from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import { Id, Integer, Json, ListOf, MapOfText, Optional, Ref, Text } from '#libs/contracts/src/fields';
import { Handles } from '#libs/contracts/src/handles';
import { arrayOf, Command, empty, listOf, ok, Operation, Query, Serialised, type List } from '#libs/contracts/src/operation';
import { Clock, SystemClock } from '#libs/platform/src/clock';
import { DomainError, NeedsLaterRelease, unavailable, type ErrorKind } from '#libs/platform/src/domain-error';
import { Positions } from '#libs/platform/src/positions';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { mayTake } from '#libs/testing/src/until';
import { DirectOperationTransport } from './direct.operation-transport.ts';
import { Handlers, LocalServices } from './handlers.ts';
import type { OperationTransport } from './operation-transport.ts';

class Bulb {
  @Text({ doc: 'Its socket.' }) socket!: string;
  @Integer({ doc: 'Its power.' }) watts!: number;
}

/** What the suite asks about. */
export class Lamp {
  @Id('lamp', { doc: 'Identifies the lamp.' }) id!: string;
  @Text({ doc: 'Its colour.', nullable: true }) colour!: string | null;
  @Optional() @Text({ doc: 'What is said of it.' }) remark?: string;
  @Json({ doc: 'What the handler saw.' }) seen!: unknown;
}

@Operation({ internal: true, owner: 'notifications', summary: 'Light a lamp', answers: ok(Lamp) })
export class LightLamp extends Command<Lamp> {
  @Ref(() => Lamp, { doc: 'The lamp.' }) id!: string;
  @Text({ doc: 'Its colour.', max: 20, nullable: true }) colour!: string | null;
  @Optional() @Integer({ doc: 'How bright.', minimum: 1, maximum: 100, default: 50 }) brightness?: number;
  @Optional() @ListOf(() => Bulb, { doc: 'What is in it.' }) bulbs?: readonly Bulb[];
  @Optional() @MapOfText({ doc: 'Your own data.', nullable: true }) metadata?: Readonly<Record<string, string | null>>;
  @Optional() @Json({ doc: 'Anything.' }) detail?: unknown;
}

/** Does what `mode` says. */
@Operation({ get: '/lamps/{id}', owner: 'notifications', summary: 'Look at a lamp', answers: ok(Lamp) })
export class LookAtLamp extends Query<Lamp> {
  @Ref(() => Lamp, { doc: 'The lamp.' }) id!: string;
  @Optional() @Text({ doc: 'What happens.' }) mode?: string;
}

@Operation({ internal: true, owner: 'notifications', summary: 'Break a lamp', answers: empty(204) })
export class BreakLamp extends Command<void> {
  @Text({ doc: 'How.' }) how!: string;
}

@Operation({ internal: true, owner: 'notifications', summary: 'List lamps', answers: listOf(Lamp) })
export class ListLamps extends Query<List<Lamp>> {
  @Integer({ doc: 'How many.' }) count!: number;
  @Integer({ doc: 'How long the colour of each is.' }) length!: number;
}

@Operation({ internal: true, owner: 'notifications', summary: 'Name the colours', answers: arrayOf(Bulb) })
class NameBulbs extends Query<readonly Bulb[]> {}

const REFUSALS: Readonly<Record<ErrorKind, DomainError>> = {
  invalid: new DomainError('invalid', 'invalid_request_parameters', 'Validation failed.', {
    errors: [{ code: 'too_long', field: 'bulbs.0.socket', message: 'bulbs.0.socket must have at most 2 characters.' }],
  }),
  unauthenticated: new DomainError('unauthenticated', 'unauthorized', 'Unauthorized'),
  forbidden: new DomainError('forbidden', 'forbidden', 'Not this one.'),
  'not-found': new DomainError('not-found', 'entity_not_found', "Lamp not found: 'lämp_😀'.", { entity_id: 'lämp_😀' }),
  conflict: new DomainError('conflict', 'domain_already_exists', 'Taken.'),
  limited: new DomainError('limited', 'rate_limit_exceeded', 'Too many.', { retryAfter: 17 }),
  unavailable: unavailable('The engine is away.', 7),
};

/** A service of lamps; tests hold the ends of what it does. */
export class Lamps {
  /** Command ids and modes in the order in which they began. */
  readonly begun: string[] = [];
  readonly contexts: RequestContext[] = [];
  /** How old each lamp's command was when it began, by how often it had been asked for. */
  readonly ages: { readonly attempt: number | undefined; readonly age: number }[] = [];
  /** Knows what whoever looks with the mode `later`, and lamps of the colour `later`, need. */
  isOfLaterRelease = false;
  /** Awaited by whoever looks with the mode `wait`, and by lamps of the colour `wait`. */
  gate: Promise<unknown> = Promise.resolve();

  private needsLaterRelease(): void {
    if (!this.isOfLaterRelease) throw new NeedsLaterRelease({ type: 'lamp.lit', shape: 2, position: '1' }, 1);
  }

  @Handles(LightLamp)
  async light({ context, id, colour, ...seen }: LightLamp): Promise<Lamp> {
    this.begun.push(context.commandId);
    this.contexts.push(context);
    this.ages.push({ attempt: context.attempt, age: performance.now() - context.sentAt! });
    if (colour === 'wait') await this.gate;
    if (colour === 'later') this.needsLaterRelease();
    context.receipt.position = '0000000000000007';
    context.receipt.transacts = (context.receipt.transacts ?? 0) + 1;
    context.receipt.warning = 'bright; look away';
    return { id, colour, seen, extra: 'not of the contract' } as Lamp;
  }

  @Handles(LookAtLamp)
  async look({ context, id, mode = '' }: LookAtLamp): Promise<Lamp | Serialised<Lamp>> {
    this.begun.push(mode);
    this.contexts.push(context);
    if (mode === 'wait') await this.gate;
    if (mode === 'never') await new Promise(() => {});
    if (mode === 'slow') await new Promise((resolve) => setTimeout(resolve, 20));
    if (mode === 'later') this.needsLaterRelease();
    if (mode === 'stored') return new Serialised(`{"id":"${id}","colour":"stored ☂","seen":[1,2]}`);
    return { id, colour: 'red', seen: mode };
  }

  @Handles(BreakLamp)
  async break({ how, context }: BreakLamp): Promise<void> {
    context.receipt.position = '0000000000000008';
    if (how === 'last') context.receipt.transacts = Infinity;
    if (how in REFUSALS) throw REFUSALS[how as ErrorKind];
    if (how === 'bug') throw new TypeError('secret detail');
  }

  @Handles(ListLamps)
  async list({ count, length }: ListLamps): Promise<List<Lamp>> {
    this.begun.push('list');
    const data = Array.from({ length: count }, (_, index) => ({ id: `lamp_${index}`, colour: 'é'.repeat(length), seen: null }));
    return { object: 'list', data, list_metadata: { before: null, after: `lamp_${count}` } };
  }

  @Handles(NameBulbs)
  async name(): Promise<readonly Bulb[]> {
    return [
      { socket: 'E27', watts: 60 },
      { socket: 'E14', watts: 40 },
    ];
  }
}

/** The service on its own, as a process of it would hold it. */
export async function startedLamps(lamps: Lamps): Promise<{ readonly app: INestApplicationContext; readonly direct: DirectOperationTransport }> {
  @Module({
    imports: [CqrsModule.forRoot(), DiscoveryModule],
    providers: [
      { provide: Lamps, useValue: lamps },
      Handlers,
      DirectOperationTransport,
      { provide: LocalServices, useValue: new LocalServices(['notifications']) },
      { provide: Clock, useClass: SystemClock },
      { provide: Positions, useValue: { reached: async () => {} } satisfies Positions },
    ],
  })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  return { app, direct: app.get(DirectOperationTransport) };
}

/** An operation with its fields and a context of the system. */
export function asked<O extends Operation>(type: new () => O, fields: Partial<Omit<O, 'context'>> = {}, context: Partial<RequestContext> = {}): O {
  return Object.assign(new type(), fields, { context: { ...systemContext('system', Date.now()), ...context } });
}

interface GivenTransport {
  readonly transport: OperationTransport;
  close(): Promise<void>;
}

export function operationTransportContract(name: string, given: (lamps: Lamps) => Promise<GivenTransport>): void {
  describe(`operations ${name}`, () => {
    let lamps: Lamps;
    let opened: GivenTransport;
    let transport: OperationTransport;
    beforeAll(async () => {
      lamps = new Lamps();
      opened = await given(lamps);
      ({ transport } = opened);
    });
    afterAll(() => opened.close());

    it('arrive with their fields, and their answer comes back', async () => {
      const fields = {
        colour: 'grün 😀 "\\\n\u2028',
        brightness: 7,
        bulbs: [{ socket: 'E27', watts: 60 }],
        metadata: { a: 'b', c: null },
        detail: { deep: [1, null, 'x', { y: false }] },
      };
      const { colour, ...seen } = fields;
      expect(await transport.call(asked(LightLamp, { id: 'lamp_1', ...fields }))).toMatchObject({ id: 'lamp_1', colour, seen });
    });

    it('keep null apart from what is absent', async () => {
      const answer = await transport.call(asked(LightLamp, { id: 'lamp_1', colour: null, brightness: 1, metadata: {} }));
      expect(answer).toMatchObject({ colour: null, seen: { brightness: 1, metadata: {} } });
      expect(answer).not.toHaveProperty('remark');
      expect(answer.seen).not.toHaveProperty('detail');
    });

    it('carry text that was stored as it is', async () => {
      const answer: unknown = await transport.call(asked(LookAtLamp, { id: 'lamp_1', mode: 'stored' }));
      expect(answer).toEqual(new Serialised('{"id":"lamp_1","colour":"stored ☂","seen":[1,2]}'));
      expect(answer).toBeInstanceOf(Serialised);
    });

    it('answer nothing, a list, an array', async () => {
      expect(await transport.call(asked(BreakLamp, { how: 'gently' }))).toBeUndefined();
      expect(await transport.call(asked(ListLamps, { count: 2, length: 1 }))).toEqual({
        object: 'list',
        data: [
          { id: 'lamp_0', colour: 'é', seen: null },
          { id: 'lamp_1', colour: 'é', seen: null },
        ],
        list_metadata: { before: null, after: 'lamp_2' },
      });
      expect(await transport.call(asked(NameBulbs))).toEqual([
        { socket: 'E27', watts: 60 },
        { socket: 'E14', watts: 40 },
      ]);
    });

    it('answer a page of a hundred objects of 64 KB, and others at the same time', async () => {
      const large = transport.call(asked(ListLamps, { count: 100, length: 32_000 }));
      const small = await Promise.all(Array.from({ length: 50 }, (_, index) => transport.call(asked(LookAtLamp, { id: `lamp_${index}` }))));
      expect(small.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, index) => `lamp_${index}`));
      const { data } = await large;
      expect(data).toHaveLength(100);
      expect(data.every(({ colour }) => colour === 'é'.repeat(32_000))).toBe(true);
    });

    it('take fields of a megabyte', async () => {
      const detail = '\u0001é'.repeat(170_000);
      expect(await transport.call(asked(LightLamp, { id: 'lamp_1', colour: 'red', detail }))).toMatchObject({ seen: { detail } });
    });

    it.each(Object.entries(REFUSALS))('are refused as %s, with all that says why', async (how, refusal) => {
      const error = await transport.call(asked(BreakLamp, { how })).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(DomainError);
      const { kind, code, message, details } = error as DomainError;
      expect({ kind, code, message, details }).toEqual({ kind: refusal.kind, code: refusal.code, message: refusal.message, details: refusal.details });
    });

    it('are no refusal where there is a bug', async () => {
      const error = await transport.call(asked(BreakLamp, { how: 'bug' })).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toBeInstanceOf(DomainError);
    });

    it('carry the whole context', async () => {
      const actor = { id: 'environment_key_1', source: 'api', name: null } as const;
      const context = {
        environment: 'environment_1',
        actor,
        requestId: 'request_1',
        commandId: '01J00000000000000000000000',
        readAfter: '12',
        traceparent: '00-a-b-01',
        connection: { address: '203.0.113.7', userAgent: null, bearerHash: 'ab' },
        origin: { address: '203.0.113.7', userAgent: 'console/1.0', operator: 'Ada' },
      };
      const deadline = Date.now() + 5_000;
      await transport.call(asked(LightLamp, { id: 'lamp_1', colour: 'red' }, { ...context, deadline }));
      const seen = lamps.contexts.at(-1)!;
      expect(seen).toMatchObject(context);
      expect(Math.abs(seen.deadline - deadline)).toBeLessThan(1_000);
    });

    it('fill in the receipt, also where they are refused', async () => {
      const light = asked(LightLamp, { id: 'lamp_1', colour: 'red' }, { receipt: { transacts: 2 } });
      await transport.call(light);
      expect(light.context.receipt).toEqual({ position: '0000000000000007', transacts: 3, warning: 'bright; look away' });
      const refused = asked(BreakLamp, { how: 'conflict' });
      await transport.call(refused).catch(() => undefined);
      expect(refused.context.receipt).toEqual({ position: '0000000000000008' });
      const last = asked(BreakLamp, { how: 'last' });
      await transport.call(last);
      expect(last.context.receipt).toEqual({ position: '0000000000000008', transacts: Infinity });
    });

    it('are waited for no longer than their deadline', async () => {
      const late = { kind: 'unavailable', code: 'service_unavailable' };
      const began = Date.now();
      await expect(transport.call(asked(LookAtLamp, { id: 'lamp_1', mode: 'never' }, { deadline: began + 100 }))).rejects.toMatchObject(late);
      expect(Date.now() - began).toBeLessThan(mayTake(1_000));
      const before = lamps.begun.length;
      await expect(transport.call(asked(LookAtLamp, { id: 'lamp_1' }, { deadline: Date.now() - 1 }))).rejects.toMatchObject(late);
      expect(lamps.begun).toHaveLength(before);
    });
  });
}
