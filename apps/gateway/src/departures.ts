import type { FastifyReply } from 'fastify';
import { send, type Outcome } from './outcome.ts';

interface Departure {
  readonly reply: FastifyReply;
  readonly outcome: Outcome;
}

/**
 * Answers that become ready in one turn of the event loop leave at its end, one right after the other. Each write wakes whoever reads at the other end: written one by
 * one, between the requests of a turn, they cost more than everything else on the way of a small request.
 */
export class Departures {
  private waiting: Departure[] = [];

  send(reply: FastifyReply, outcome: Outcome): void {
    if (this.waiting.push({ reply, outcome }) === 1) setImmediate(() => this.leave());
  }

  private leave(): void {
    const departures = this.waiting;
    this.waiting = [];
    for (const { reply, outcome } of departures) send(reply, outcome);
  }
}
