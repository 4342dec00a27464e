import { Module, type OnModuleInit } from '@nestjs/common';
import { Forwarders } from '#libs/event-sourcing/src/forwarder';
import type { Service } from '#libs/platform/src/runtime/app';

export const authorization: Service = { owner: 'authorization', views: [] };

/** Needs from the runtime: the ports and settings that its classes name. */
@Module({ providers: [] })
export class AuthorizationModule implements OnModuleInit {
  constructor(private readonly forwarders: Forwarders) {}

  onModuleInit(): void {
    this.forwarders.add({
      service: 'authorization',
      categories: ['authorization_model', 'organization_roles', 'resource_tree', 'role_assignment', 'group_role_assignment'],
    });
  }
}
