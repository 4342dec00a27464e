import { type DynamicModule, Module } from '@nestjs/common';
import { GatewayModule } from '#apps/gateway/src/gateway.module';
import { IdentityModule } from '#apps/identity/src/identity.module';
import { NotificationsModule } from '#apps/notifications/src/notifications.module';

/** The gateway and every service, in one process. */
@Module({ imports: [GatewayModule, IdentityModule, NotificationsModule] })
export class SuiteModule {
  static over(runtime: DynamicModule): DynamicModule {
    return { module: SuiteModule, imports: [runtime] };
  }
}
