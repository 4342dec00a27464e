import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { CommandBus, QueryBus } from '@nestjs/cqrs';
import { handledBy } from '#libs/contracts/src/handles';
import { operations, type Operation, type ServiceName } from '#libs/contracts/src/operation';
import { bindToBus } from './nest-buses.ts';

/** The services that this process runs: every operation of theirs must have its handler here. */
export class LocalServices {
  constructor(readonly names: readonly ServiceName[]) {}
}

interface Handler {
  readonly instance: object;
  readonly method: string | symbol;
}

/** Binds the methods marked with `@Handles` to the buses. A process in which an operation has no handler, or two, does not start. */
@Injectable()
export class Handlers implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly commands: CommandBus,
    private readonly queries: QueryBus,
    private readonly here: LocalServices,
  ) {}

  /** @throws Error naming what is missing or doubled */
  onModuleInit(): void {
    const handlers = this.found();
    for (const operation of operations()) {
      const { name, kind, options } = operation;
      const handler = handlers.get(name);
      if (handler === undefined) {
        if (this.here.names.includes(options.owner)) throw new Error(`${name} has no handler: mark a method of ${options.owner} with @Handles(${name}).`);
        continue;
      }
      const execute = (handler.instance as Record<string | symbol, (operation: Operation) => Promise<unknown>>)[handler.method]!.bind(handler.instance);
      bindToBus(kind === 'command' ? this.commands : this.queries, operation, execute);
    }
  }

  private found(): ReadonlyMap<string, Handler> {
    const handlers = new Map<string, Handler>();
    // One instance may be provided under several tokens.
    const instances = new Set(this.discovery.getProviders().map((provider) => provider.instance as unknown));
    for (const instance of instances) {
      if (typeof instance !== 'object' || instance === null) continue;
      for (const [name, method] of handledBy(instance)) {
        const other = handlers.get(name);
        if (other !== undefined)
          throw new Error(
            `${name} has two handlers: ${other.instance.constructor.name}.${String(other.method)} and ${instance.constructor.name}.${String(method)}.`,
          );
        handlers.set(name, { instance, method });
      }
    }
    return handlers;
  }
}
