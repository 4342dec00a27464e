import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewaySettings } from '#libs/platform/src/config/settings';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';

/** Counts an answer that has left, and tells the log. */
export type Observe = (request: FastifyRequest, reply: FastifyReply) => void;

/** Rates, durations and the access log of every route. */
@Injectable()
export class RequestMetrics {
  private readonly requests;
  private readonly durations;

  constructor(
    metrics: Metrics,
    private readonly settings: GatewaySettings,
    private readonly log: Log,
  ) {
    this.requests = metrics.counter({ name: 'requests_total', help: 'Requests answered, by operation and class of status.', labels: ['operation', 'status'] });
    this.durations = metrics.histogram({
      name: 'request_duration_seconds',
      help: 'From the arrival of a request to the end of its answer, by operation.',
      labels: ['operation'],
    });
  }

  /** `route` is the template, so that neither label nor line holds an id. */
  of(operation: string, route: string): Observe {
    const duration = this.durations.labels({ operation });
    const byClass = [1, 2, 3, 4, 5].map((digit) => this.requests.labels({ operation, status: `${digit}xx` }));
    return (request, reply) => {
      const milliseconds = reply.elapsedTime;
      duration.observe(milliseconds / 1000);
      byClass[Math.floor(reply.statusCode / 100) - 1]?.inc();
      if (this.settings.ACCESS_LOG)
        this.log.info('Answered a request.', {
          method: request.method,
          route,
          status: reply.statusCode,
          milliseconds: Math.round(milliseconds * 10) / 10,
          requestId: request.id,
          environment: request.caller?.environment,
          address: request.ip,
        });
    };
  }
}
