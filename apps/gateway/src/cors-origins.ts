import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BrowserAddressesEvent } from '#apps/identity/src/domain/browser-addresses.decider';
import { FindCorsOrigin } from '#libs/contracts/src/browser-addresses/operations';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import { RememberedLookUps, type Found } from './remembered-look-ups.ts';

const LOOK_UP_TIMEOUT_MS = 1_000;
const PREFLIGHT_SECONDS = 600;
/** Longer than any origin; what is longer is not looked for. */
const MAX_ORIGIN = 300;
const ORIGIN_EVENTS = ['cors_origin.created', 'cors_origin.deleted'] satisfies readonly BrowserAddressesEvent['type'][];

/**
 * Tells browsers whose scripts may read the answers to requests without a key: those of the origins that the environment lists. No answer here depends on cookies,
 * so nothing is carried out with rights that a script lacks.
 */
@Injectable()
export class CorsOrigins {
  private readonly listed: RememberedLookUps<boolean>;

  constructor(
    private readonly transport: OperationTransport,
    private readonly clock: Clock,
    following: LogFollowing,
  ) {
    this.listed = new RememberedLookUps(following, clock, {
      name: 'CORS origins',
      types: ORIGIN_EVENTS,
      lookUp: (key, requestId) => this.lookUp(key, requestId),
    });
  }

  start(): void {
    void this.listed.start();
  }

  stop(): Promise<void> {
    return this.listed.stop();
  }

  /** Before an answer leaves, refusals included. Where it cannot be known, the browser keeps the answer to itself. */
  async allow({ headers: { origin }, caller, id }: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.header('Vary', 'Origin');
    if (origin === undefined || origin.length > MAX_ORIGIN || caller === null) return;
    const key = `${caller.environment} ${origin}`;
    const isListed = this.listed.known(key) ?? (await this.listed.lookUp(key, id).catch(() => false));
    if (isListed) reply.header('Access-Control-Allow-Origin', origin).header('Access-Control-Expose-Headers', 'X-Request-ID, Retry-After');
  }

  /** A browser asks before it sends a body of JSON, and does not say for which client: so it may ask, and the answer itself tells whether its script reads it. */
  preflight({ headers: { origin } }: FastifyRequest, reply: FastifyReply, method: string): void {
    reply.code(204).header('Vary', 'Origin');
    if (origin !== undefined && origin.length <= MAX_ORIGIN)
      reply
        .header('Access-Control-Allow-Origin', origin)
        .header('Access-Control-Allow-Methods', method)
        .header('Access-Control-Allow-Headers', 'Content-Type, Authorization, X-Request-ID')
        .header('Access-Control-Max-Age', String(PREFLIGHT_SECONDS));
    reply.send();
  }

  private async lookUp(key: string, requestId: string): Promise<Found<boolean>> {
    const [environment, origin] = key.split(' ') as [string, string];
    const now = this.clock.now();
    const context = { ...systemContext(environment, now), requestId, deadline: now + LOOK_UP_TIMEOUT_MS };
    const { is_listed } = await this.transport.call(Object.assign(new FindCorsOrigin(), { origin, context }));
    return { value: is_listed };
  }
}
