import type { FastifyReply } from 'fastify';
import { send, type HttpAnswer } from './http-answer.ts';

interface Response {
  readonly reply: FastifyReply;
  readonly answer: HttpAnswer;
}

/**
 * Answers that become ready in one turn of the event loop leave at its end, one right after the other. Each write wakes whoever reads at the other end: written one by
 * one, between the requests of a turn, they cost more than everything else on the way of a small request.
 */
export class ResponseBatch {
  private waiting: Response[] = [];

  send(reply: FastifyReply, answer: HttpAnswer): void {
    if (this.waiting.push({ reply, answer }) === 1) setImmediate(() => this.leave());
  }

  private leave(): void {
    const responses = this.waiting;
    this.waiting = [];
    for (const { reply, answer } of responses) send(reply, answer);
  }
}
