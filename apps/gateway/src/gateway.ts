import type { Server } from 'node:http';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { operations } from '#libs/contracts/src/operation';
import { PlatformSettings } from '#libs/platform/src/config/settings';
import { OPERATIONS_PATHS, OperationsSurface } from '#libs/platform/src/operations/operations-surface';
import { Readiness } from '#libs/platform/src/readiness';
import { Authentication } from './authentication.ts';
import { Clients } from './clients.ts';
import { CorsOrigins } from './cors-origins.ts';
import { DocsPage } from './docs-page.ts';
import { ErrorAnswers } from './error-answers.ts';
import { Idempotency } from './idempotency.ts';
import { OperationRoutes } from './operation-routes.ts';
import { MailboxPage } from './mailbox-page.ts';
import { MethodNotAllowed, noSuchPath, refusal, send } from './http-answer.ts';
import { PathTable } from './path-table.ts';
import { refusedHead } from '#libs/platform/src/request-head';
import { RequestMetrics } from './request-metrics.ts';

/** The public surface: puts the routes on the server when the application is put together, and empties it when the application stops. */
@Injectable()
export class Gateway implements OnModuleInit, OnModuleDestroy {
  private draining: Promise<void> | null = null;

  constructor(
    private readonly host: HttpAdapterHost,
    private readonly routes: OperationRoutes,
    private readonly errors: ErrorAnswers,
    private readonly docs: DocsPage,
    private readonly mailbox: MailboxPage,
    private readonly surface: OperationsSurface,
    private readonly requestMetrics: RequestMetrics,
    private readonly authentication: Authentication,
    private readonly clients: Clients,
    private readonly cors: CorsOrigins,
    private readonly idempotency: Idempotency,
    private readonly readiness: Readiness,
    private readonly platform: PlatformSettings,
  ) {}

  async onModuleInit(): Promise<void> {
    const server = this.host.httpAdapter.getInstance<FastifyInstance>();
    // An expectation that nobody knows is no reason to refuse; Node's own refusal would have no JSON body.
    server.server.on('checkExpectation', (request, response) => server.server.emit('request', request, response));
    // Whoever has sent everything may close that half of the connection and still wants the answer.
    Object.assign(server.server, { httpAllowHalfOpen: true });
    server.decorateRequest('caller', null);
    server.removeAllContentTypeParsers();
    server.addHook('onRequest', (request, reply, done) => {
      reply.header('X-Request-ID', request.id);
      const refused = refusedHead(request.raw);
      // What comes behind a head that cannot be trusted is not read as another request.
      if (refused !== null || this.readiness.isDraining) reply.header('Connection', 'close');
      done(refused ?? undefined);
    });
    server.setErrorHandler((error, request, reply) => send(reply, this.errors.of(error, request.id)));
    this.answerUnknownPaths(server);
    await server.register(async (scope) => {
      scope.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
        try {
          done(null, this.routes.textOfBody(request, body));
        } catch (error) {
          done(error as Error);
        }
      });
      for (const operation of operations()) if (operation.route !== null && operation.options.upload === undefined) scope.route(this.routes.of(operation));
      for (const route of this.routes.preflights()) scope.route(route);
    });
    await server.register(async (scope) => {
      // Read by whoever stores it.
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
      for (const operation of operations()) if (operation.route !== null && operation.options.upload !== undefined) scope.route(this.routes.of(operation));
    });
    this.docs.mount(server);
    if (this.platform.GATEHOUSE_MODE === 'development') this.mailbox.mount(server);
    if (this.platform.OPERATIONS_PORT === null) this.mountOperationsSurface(server);
    this.clients.start();
    this.cors.start();
    await this.authentication.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.drain();
    await Promise.all([this.authentication.stop(), this.clients.stop(), this.cors.stop()]);
  }

  /** Takes no new connections, finishes the requests in flight, and then closes what is left. */
  drain(): Promise<void> {
    this.draining ??= this.empty(this.host.httpAdapter.getHttpServer() as Server);
    return this.draining;
  }

  private async empty(server: Server): Promise<void> {
    // From here on every answer asks its client to connect anew, elsewhere.
    this.readiness.drain();
    if (server.listening) {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), this.platform.SHUTDOWN_TIMEOUT);
      await closed;
      clearTimeout(timer);
    }
    await this.idempotency.settled();
  }

  /** Comes before the routes, since it watches them being added. */
  private answerUnknownPaths(server: FastifyInstance): void {
    const table = new PathTable();
    server.addHook('onRoute', ({ method, url }) => table.add(method, url));
    const observe = this.requestMetrics.of('none', 'none');
    server.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
      reply.header('X-Request-ID', request.id);
      const allowed = table.methodsOf(request.url);
      send(reply, refusal(allowed.length === 0 ? noSuchPath() : new MethodNotAllowed(request.method, allowed))!);
      observe(request, reply);
    });
  }

  private mountOperationsSurface(server: FastifyInstance): void {
    for (const path of OPERATIONS_PATHS)
      server.get(path, async (_request, reply) => {
        const { status, contentType, body } = await this.surface.answer(path);
        return reply.code(status).header('Content-Type', contentType).send(body);
      });
  }
}
