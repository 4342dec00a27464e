import 'reflect-metadata';
import { operationOf, type Answer, type Class, type Operation, type Serialised } from './operation.ts';

const HANDLED = Symbol('gatehouse:handled');

/** Binds a method of a use-case class to its operation; a wrong answer type does not compile. */
export function Handles<O extends Operation>(type: Class<O>) {
  // A type parameter, since a descriptor is invariant in its type: a method that promises only one of the two would not fit the union.
  return <Method extends (operation: O) => Promise<Answer<O> | Serialised<Answer<O>>>>(
    prototype: object,
    method: string | symbol,
    _descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    const handled = (Reflect.getOwnMetadata(HANDLED, prototype) as Map<string, string | symbol> | undefined) ?? new Map<string, string | symbol>();
    handled.set(operationOf(type).name, method);
    Reflect.defineMetadata(HANDLED, handled, prototype);
  };
}

/** The operations that an instance handles, by name, with the method's name. */
export function handledBy(instance: object): ReadonlyMap<string, string | symbol> {
  return (
    (Reflect.getMetadata(HANDLED, Object.getPrototypeOf(instance) as object) as Map<string, string | symbol> | undefined) ?? new Map<string, string | symbol>()
  );
}
