import 'reflect-metadata';
import { CommandBus, type QueryBus } from '@nestjs/cqrs';
import type { RegisteredOperation } from '#libs/contracts/src/operation';

type Execute = (operation: never) => Promise<unknown>;

/**
 * Has a bus of `@nestjs/cqrs` call `execute` for the operation. The buses take classes of handlers only, one for each operation, which Nest finds by itself; methods
 * need two things that are not public: the key of the metadata by which a bus knows what it dispatches, and what it asks of a handler that Nest has found.
 */
export function bindToBus(bus: CommandBus | QueryBus, { name, type }: RegisteredOperation, execute: Execute): void {
  Reflect.defineMetadata(bus instanceof CommandBus ? '__command__' : '__query__', { id: name }, type);
  const handler = { isDependencyTreeStatic: () => true, instance: { execute } };
  (bus as CommandBus).bind(handler as never, name);
}
