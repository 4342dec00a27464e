import { Injectable } from '@nestjs/common';
import { FindClient } from '#libs/contracts/src/environments/operations';
import type { EnvironmentEvent } from '#apps/identity/src/domain/environment.decider';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { addressGroup } from '#libs/platform/src/address-group';
import { Clock } from '#libs/platform/src/clock';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import type { Caller } from './authentication.ts';
import { RememberedLookUps, type Found } from './remembered-look-ups.ts';

/** Every request with an unknown client id waits for its look-up. */
const LOOK_UP_TIMEOUT_MS = 3_000;
/** What tells of another client id. */
const CLIENT_EVENTS = ['environment.created', 'environment.updated'] satisfies readonly EnvironmentEvent['type'][];

/** Finds the environment that a client id names, for requests that come without an API key. It is no secret, so whoever asks is known by address only. */
@Injectable()
export class Clients {
  private readonly environments: RememberedLookUps<string>;

  constructor(
    private readonly transport: OperationTransport,
    private readonly clock: Clock,
    following: LogFollowing,
  ) {
    this.environments = new RememberedLookUps(following, clock, {
      name: 'client ids',
      types: CLIENT_EVENTS,
      lookUp: (clientId, requestId) => this.lookUp(clientId, requestId),
    });
  }

  /** In the background: a client id that cannot be followed yet is only remembered for less long. */
  start(): void {
    void this.environments.start();
  }

  stop(): Promise<void> {
    return this.environments.stop();
  }

  /** Null where it has to be looked up, or there is none. */
  known(clientId: string, address: string): Caller | null {
    const environment = this.environments.known(clientId);
    return environment === undefined ? null : callerOf(environment, clientId, address);
  }

  /** @throws DomainError `entity_not_found`, or `service_unavailable` */
  async find(clientId: string, address: string, requestId: string): Promise<Caller> {
    return callerOf(this.environments.remembered(clientId) ?? (await this.environments.lookUp(clientId, requestId)), clientId, address);
  }

  private async lookUp(client_id: string, requestId: string): Promise<Found<string>> {
    const began = this.clock.now();
    const context = { ...systemContext(SYSTEM_ENVIRONMENT, began), requestId, deadline: began + LOOK_UP_TIMEOUT_MS };
    const { id } = await this.transport.call(Object.assign(new FindClient(), { client_id, context }));
    return { value: id };
  }
}

/** Whom a request without a key is counted with before anything is known of it. */
export function unknownClient(address: string): Caller {
  return { environment: 'unknown', actor: { id: 'unknown', source: 'api', name: null }, countedAs: `unknown ${addressGroup(address)}` };
}

/** Whoever asks in an environment without a key: `id` is what they say they are. */
export function callerOf(environment: string, id: string, address: string): Caller {
  return { environment, actor: { id, source: 'api', name: null }, countedAs: `${environment} ${addressGroup(address)}` };
}
