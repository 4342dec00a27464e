import { createRequire } from 'node:module';
import { type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CommandBus, CqrsModule, QueryBus } from '@nestjs/cqrs';
import { Command, empty, Operation, operationOf, Query } from '#libs/contracts/src/operation';
import { bindToBus } from './nest-buses.ts';

@Operation({ internal: true, owner: 'notifications', summary: 'Ring the bell', answers: empty(204) })
class RingBell extends Command<void> {}

@Operation({ internal: true, owner: 'notifications', summary: 'Listen to the bell', answers: empty(204) })
class ListenToBell extends Query<void> {}

describe('the buses of @nestjs/cqrs', () => {
  let app: INestApplicationContext;
  beforeAll(async () => {
    @Module({ imports: [CqrsModule.forRoot()] })
    class App {}
    app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  });
  afterAll(() => app.close());

  it('are those whose privates are known: who takes another release reads its buses first', () => {
    const { version } = createRequire(import.meta.url)('@nestjs/cqrs/package.json') as { readonly version: string };
    expect(version).toBe('12.0.0');
  });

  it.each([
    ['command', RingBell, CommandBus],
    ['query', ListenToBell, QueryBus],
  ] as const)('call what a %s is bound to, and nothing before', async (_, type, Bus) => {
    const bus = app.get<CommandBus | QueryBus>(Bus) as CommandBus;
    const called: object[] = [];
    await expect((async () => bus.execute(new type()))()).rejects.toThrow(type.name);
    bindToBus(bus, operationOf(type), async (operation) => void called.push(operation));
    const operation = new type();
    await bus.execute(operation);
    expect(called).toEqual([operation]);
    expect(called[0]).toBe(operation);
  });
});
