import { type INestApplicationContext, Module } from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import { Text } from '#libs/contracts/src/fields';
import { Handles } from '#libs/contracts/src/handles';
import { Command, empty, ok, Operation, type ServiceName, Query } from '#libs/contracts/src/operation';
import { Clock, SystemClock } from '#libs/platform/src/clock';
import { notFound } from '#libs/platform/src/domain-error';
import { Positions } from '#libs/platform/src/positions';
import { systemContext } from '#libs/platform/src/system-context';
import { DirectOperationTransport } from './direct.operation-transport.ts';
import { Handlers, LocalServices } from './handlers.ts';
import { OperationTransport } from './operation-transport.ts';

class Lamp {
  @Text({ doc: 'Its colour.' }) colour!: string;
}

@Operation({ internal: true, owner: 'notifications', summary: 'Light a lamp', answers: empty(204) })
class LightLamp extends Command<void> {
  colour!: string;
}

@Operation({ internal: true, owner: 'notifications', summary: 'Look at the lamp', answers: ok(Lamp) })
class LookAtLamp extends Query<Lamp> {}

class Lamps {
  private lit: string | null = null;

  @Handles(LightLamp)
  light({ colour }: LightLamp): Promise<void> {
    if (colour === 'none') throw notFound('Lamp', colour);
    if (colour === 'never') return new Promise(() => {});
    this.lit = colour;
    return Promise.resolve();
  }

  @Handles(LookAtLamp)
  async look(): Promise<Lamp> {
    if (this.lit === null) throw notFound('Lamp', 'lamp');
    return { colour: this.lit };
  }
}

class OtherLamps {
  @Handles(LookAtLamp)
  async look(): Promise<Lamp> {
    return { colour: 'other' };
  }
}

async function started(owners: readonly ServiceName[], services: readonly (new () => object)[]): Promise<INestApplicationContext> {
  @Module({
    imports: [CqrsModule.forRoot(), DiscoveryModule],
    providers: [
      ...services,
      Handlers,
      { provide: LocalServices, useValue: new LocalServices(owners) },
      { provide: Clock, useClass: SystemClock },
      { provide: Positions, useValue: { reached: async () => {} } satisfies Positions },
      { provide: OperationTransport, useClass: DirectOperationTransport },
    ],
  })
  class App {}
  return NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
}

describe('handlers', () => {
  it('are called through the transport, with their state', async () => {
    const transport = (await started(['notifications'], [Lamps])).get(OperationTransport);
    const call = <Answer>(operation: Operation<Answer>): Promise<Answer> =>
      transport.call(Object.assign(operation, { context: systemContext('system', Date.now()) }));
    await expect(call(new LookAtLamp())).rejects.toMatchObject({ code: 'entity_not_found', kind: 'not-found' });
    await call(Object.assign(new LightLamp(), { colour: 'red' }));
    expect(await call(new LookAtLamp())).toEqual({ colour: 'red' });
  });

  it('must exist for every operation of the services that run here', async () => {
    await expect(started(['notifications'], [OtherLamps])).rejects.toThrow('LightLamp has no handler');
    await expect(started([], [OtherLamps])).resolves.toBeDefined();
  });

  it('must be the only ones', async () => {
    await expect(started(['notifications'], [Lamps, OtherLamps])).rejects.toThrow('LookAtLamp has two handlers: Lamps.look and OtherLamps.look.');
  });
});

describe('the direct transport', () => {
  it('waits no longer than the deadline', async () => {
    const transport = (await started(['notifications'], [Lamps])).get(OperationTransport);
    const until = (deadline: number): LightLamp =>
      Object.assign(new LightLamp(), { colour: 'never', context: { ...systemContext('system', Date.now()), deadline } });
    await expect(transport.call(until(Date.now() + 50))).rejects.toMatchObject({ code: 'service_unavailable' });
    await expect(transport.call(until(Date.now() - 1))).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  it('leaves no timer behind when a handler throws instead of rejecting', async () => {
    const transport = (await started(['notifications'], [Lamps])).get(OperationTransport);
    const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const before = timers();
    const light = Object.assign(new LightLamp(), { colour: 'none', context: systemContext('system', Date.now()) });
    await expect(transport.call(light)).rejects.toMatchObject({ code: 'entity_not_found' });
    expect(timers()).toBe(before);
  });
});
