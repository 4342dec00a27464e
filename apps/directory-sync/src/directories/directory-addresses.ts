import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { SYSTEM_ENVIRONMENT, type RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { directoryAddressDecider, registerAddress, type DirectoryAddress } from '../domain/directory-address.decider.ts';

/** Where what products name lies, who name no environment. */
@Injectable()
export class DirectoryAddresses {
  constructor(
    private readonly repository: Repository,
    private readonly clock: Clock,
  ) {}

  /** Before what it leads to is there: an address without that leads nowhere, and what has none could never be reached. */
  async register({ deadline }: Pick<RequestContext, 'deadline'>, address: DirectoryAddress): Promise<void> {
    const context = { ...systemContext(SYSTEM_ENVIRONMENT, this.clock.now()), deadline };
    await this.repository.transact(directoryAddressDecider, context, address.id, registerAddress(address));
  }
}
