import type { FastifyInstance } from 'fastify';

/** What a service answers over HTTP beside operations: on the server of the API where that is in this process, on one of its own elsewhere. */
export interface HttpFace {
  /** Puts its routes on the server, before that listens. */
  mount(server: FastifyInstance): Promise<void>;
}
