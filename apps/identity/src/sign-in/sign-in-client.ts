import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Authenticate } from '#libs/contracts/src/sign-in/operations';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import { SYSTEM_ENVIRONMENT, type RequestContext } from '#libs/platform/src/request-context';
import { environmentDecider, isUsable, type EnvironmentState } from '../domain/environment.decider.ts';
import { KnownStates } from '../readers/known-states.ts';

/** The application that signs somebody in, and where that person is, as far as can be believed. */
export interface SignInClient {
  readonly id: string;
  readonly hasSecret: boolean;
  readonly ipAddress: string | null;
  readonly userAgent: string | null;
  /** What the application calls the device of the person. */
  readonly deviceId: string | null;
}

/** Tells which application asks. An application that shows its secret speaks for the person; of any other, the connection tells where the person is. */
@Injectable()
export class SignInClients {
  constructor(
    private readonly states: KnownStates,
    private readonly repository: Repository,
    private readonly clock: Clock,
  ) {}

  /** @throws DomainError `invalid_client` where a secret is given that is no live key of the environment */
  async of({ context, client_id, client_secret, ip_address, user_agent, device_id }: Authenticate): Promise<SignInClient> {
    const { connection } = context;
    if (client_secret === undefined)
      return { id: client_id, hasSecret: false, ipAddress: connection?.address ?? null, userAgent: connection?.userAgent ?? null, deviceId: null };
    if (!(await this.isLiveKey(context, hash('sha256', client_secret, 'hex')))) throw invalidClient();
    return { id: client_id, hasSecret: true, ipAddress: ip_address ?? null, userAgent: user_agent ?? null, deviceId: device_id ?? null };
  }

  /** Whether the request has a live key in its `Authorization`: a session helper that sends nothing else refreshes so. */
  async hasKeyInHeader(context: RequestContext): Promise<boolean> {
    const { bearerHash = null } = context.connection ?? {};
    return bearerHash !== null && (await this.isLiveKey(context, bearerHash));
  }

  private async isLiveKey({ environment }: RequestContext, keyHash: string): Promise<boolean> {
    const known = await this.states.state(environmentDecider, SYSTEM_ENVIRONMENT, environment);
    // One that was made a moment ago may not have been heard of here.
    return this.isLive(known, keyHash) || this.isLive(await this.repository.load(environmentDecider, SYSTEM_ENVIRONMENT, environment), keyHash);
  }

  private isLive(environment: EnvironmentState, keyHash: string): boolean {
    const key = environment?.keys.find((candidate) => candidate.hash === keyHash);
    return key !== undefined && isUsable(key, new Date(this.clock.now()).toISOString());
  }
}

export function invalidClient(message = 'The client secret is not a key of this environment.'): DomainError {
  return new DomainError('invalid', 'invalid_client', message);
}
