import { type Abstract, type DynamicModule, Global, Module, type Type } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';

/** A port (or a class of settings) and what stands behind it in this process. */
export interface Provided<Port = unknown> {
  readonly port: Abstract<Port> | Type<Port>;
  readonly value: Port;
}

export function provided<Port>(port: Abstract<Port> | Type<Port>, value: Port): Provided<Port> {
  return { port, value };
}

/** Gives every module the engines by the ports' abstract classes, and the buses that operations travel on. */
@Global()
@Module({})
export class RuntimeModule {
  /** `made` are classes that Nest builds from the values; `port` is what others ask for. */
  static with(values: readonly Provided[], made: readonly { readonly port: Abstract<unknown> | Type; readonly by: Type }[]): DynamicModule {
    return {
      module: RuntimeModule,
      imports: [CqrsModule.forRoot(), DiscoveryModule],
      providers: [...values.map(({ port, value }) => ({ provide: port, useValue: value })), ...made.map(({ port, by }) => ({ provide: port, useClass: by }))],
      exports: [CqrsModule, ...values.map(({ port }) => port), ...made.map(({ port }) => port)],
    };
  }
}
