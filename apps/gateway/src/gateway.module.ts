import { Module } from '@nestjs/common';
import { AnswerVault } from './answer-vault.ts';
import { Authentication } from './authentication.ts';
import { Clients } from './clients.ts';
import { CorsOrigins } from './cors-origins.ts';
import { DocsPage } from './docs-page.ts';
import { ErrorAnswers } from './error-answers.ts';
import { Gateway } from './gateway.ts';
import { Idempotency } from './idempotency.ts';
import { MailboxPage } from './mailbox-page.ts';
import { OperationRoutes } from './operation-routes.ts';
import { RateLimits } from './rate-limits.ts';
import { RequestCounters } from '#libs/read-models/src/request-counters';
import { RequestMetrics } from './request-metrics.ts';
import { SessionEnvironments } from './session-environments.ts';
import { Uploads } from './uploads.ts';

/** Needs from the runtime: the ports and settings that its classes name, and `GatewayAdapter` under the application. */
@Module({
  providers: [
    Gateway,
    OperationRoutes,
    Authentication,
    Clients,
    SessionEnvironments,
    Uploads,
    CorsOrigins,
    Idempotency,
    AnswerVault,
    RateLimits,
    RequestCounters,
    RequestMetrics,
    ErrorAnswers,
    DocsPage,
    MailboxPage,
  ],
  exports: [Gateway],
})
export class GatewayModule {}
