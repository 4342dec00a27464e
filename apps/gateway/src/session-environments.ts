import { Injectable } from '@nestjs/common';
import { FindSessionEnvironment } from '#libs/contracts/src/sessions/operations';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import type { Caller } from './authentication.ts';
import { callerOf } from './clients.ts';

const LOOK_UP_TIMEOUT_MS = 3_000;

/** Finds the environment of a session, for browsers that come without an API key. Nothing is remembered: a session is asked for once, to be ended. */
@Injectable()
export class SessionEnvironments {
  constructor(
    private readonly transport: OperationTransport,
    private readonly clock: Clock,
  ) {}

  /** `return_to`: where the browser wants to go on. @throws DomainError `session_not_found`, or `service_unavailable` */
  async find(session_id: string, return_to: unknown, address: string, requestId: string): Promise<Caller> {
    const began = this.clock.now();
    const context = { ...systemContext(SYSTEM_ENVIRONMENT, began), requestId, deadline: began + LOOK_UP_TIMEOUT_MS };
    const { environment_id } = await this.transport.call(
      Object.assign(new FindSessionEnvironment(), { session_id, ...(typeof return_to === 'string' && { return_to }), context }),
    );
    return callerOf(environment_id, session_id, address);
  }
}
