import { type DynamicModule, Module } from '@nestjs/common';
import { GatewayModule } from '#apps/gateway/src/gateway.module';

/** The gateway and every service, in one process. */
@Module({ imports: [GatewayModule] })
export class SuiteModule {
  static over(runtime: DynamicModule): DynamicModule {
    return { module: SuiteModule, imports: [runtime] };
  }
}
