import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { DoneFuncWithErrOrRes, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import {
  isPublic,
  MAX_BODY,
  operations,
  Serialised,
  takesKey,
  type EnvironmentField,
  type Operation,
  type RegisteredOperation,
} from '#libs/contracts/src/operation';
import { placesOf, type Places } from '#libs/contracts/src/json-schema';
import type { Redirection } from '#libs/contracts/src/redirection';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { formReaderOf, validatorOf } from '#libs/contracts/src/validation';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { GatewaySettings } from '#libs/platform/src/config/settings';
import { newCommandId } from '#libs/platform/src/ids';
import { badRequest, DomainError, isNotFound, unavailable } from '#libs/platform/src/domain-error';
import type { Connection, Origin, RequestContext } from '#libs/platform/src/request-context';
import { Readiness } from '#libs/platform/src/readiness';
import { Authentication, bearerToken, type Caller } from './authentication.ts';
import { requireJson, requireModest, valueOfBody } from './body.ts';
import { Clients, unknownClient } from './clients.ts';
import { CorsOrigins } from './cors-origins.ts';
import { SessionEnvironments } from './session-environments.ts';
import { Uploads } from './uploads.ts';
import { ErrorAnswers } from './error-answers.ts';
import { isForm, valueOfForm } from './form.ts';
import { givenKeyOf, Idempotency, idempotencyKeyOf } from './idempotency.ts';
import { MethodNotAllowed, noSuchPath, send, type HttpAnswer } from './http-answer.ts';
import { KeptAnswers } from './kept-answers.ts';
import { RateLimits } from './rate-limits.ts';
import { uriTooLong } from '#libs/platform/src/request-head';
import { ResponseBatch } from '#libs/platform/src/response-batch';
import { RequestMetrics } from './request-metrics.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until it is known whom the request comes from. */
    caller: Caller | null;
  }
}

type Count = ReturnType<RateLimits['of']>;

/** How an operation without a key is entered. */
interface Entry {
  readonly count: Count;
  /** The field that names the environment, and where it stands. */
  readonly field: EnvironmentField;
  readonly place: keyof Places;
}

const PARAMETER = '{}';
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Turns operations into routes. Everything about a route is derived from its operation; what can be prepared is prepared once. */
@Injectable()
export class OperationRoutes {
  private readonly responses = new ResponseBatch();

  constructor(
    private readonly authentication: Authentication,
    private readonly clients: Clients,
    private readonly sessions: SessionEnvironments,
    private readonly cors: CorsOrigins,
    private readonly rateLimits: RateLimits,
    private readonly idempotency: Idempotency,
    private readonly transport: OperationTransport,
    private readonly requestMetrics: RequestMetrics,
    private readonly uploads: Uploads,
    private readonly errors: ErrorAnswers,
    private readonly readiness: Readiness,
    private readonly settings: GatewaySettings,
    private readonly clock: Clock,
  ) {}

  of(registered: RegisteredOperation): RouteOptions {
    const { name, options } = registered;
    const route = registered.route!;
    const { method, path } = route;
    const { upload } = options;
    const takesBody = upload !== undefined ? false : method === 'delete' ? options.body === true : method !== 'get';
    const isKeyed = takesKey(registered);
    const hasOwnKey = options.idempotency === 'own';
    const needsKey = !isPublic(registered);
    const isCommand = registered.kind === 'command';
    const cacheHeaders = options.cachedFor === undefined ? undefined : { 'Cache-Control': `public, max-age=${options.cachedFor}` };
    const validate = validatorOf(registered);
    const serialise = serialiserOf(options.answers);
    const observe = this.requestMetrics.of(name, path);
    const count = this.rateLimits.of(registered);
    const entry = options.environmentFrom === undefined ? null : { count, ...entryOf(registered, options.environmentFrom) };
    const { url, parametersOf } = routerPath(registered);
    const subResources = subResourcesOf(registered);

    const textOf = (answer: unknown): string | null => {
      if (options.answers.shape === 'empty') return null;
      return answer instanceof Serialised ? answer.json : serialise(answer);
    };

    /** Carries the operation out; whatever goes wrong becomes the answer. */
    const carryOut = async (operation: Operation): Promise<HttpAnswer> => {
      const { context } = operation;
      try {
        const answer = await this.transport.call(operation);
        const { position, warning } = context.receipt;
        if (options.answers.shape === 'redirect')
          return { status: options.answers.status, text: null, position, headers: { Location: (answer as Redirection).location } };
        const text = textOf(answer);
        const headers = warning === undefined ? cacheHeaders : { 'Gatehouse-Warning': warning };
        return { status: options.answers.status, text, position, headers };
      } catch (error) {
        return this.errors.of(isKeyed ? error : withoutKey(error), context.requestId, name, options.isOAuth);
      }
    };

    const readForm = formReaderOf(registered);
    const valueOf = (request: FastifyRequest, text: string | undefined): unknown => {
      if (!text) return undefined;
      const type = request.headers['content-type'];
      if (!needsKey && isForm(type)) return readForm(valueOfForm(text));
      requireJson(type);
      return valueOfBody(text);
    };

    /** The operation begins when its upload is there, and whatever nobody took is gone. */
    const receive = async (request: FastifyRequest, caller: Caller, operation: Operation): Promise<HttpAnswer> => {
      const received = await this.uploads.receive(request, caller.environment, { ...upload!, maxBytes: options.maxBody ?? MAX_BODY });
      operation.context = { ...this.contextOf(request, caller), origin: originOf(request), upload: received };
      const answer = await carryOut(operation);
      // Where nobody can tell what became of it, its owner looks.
      if (answer.status >= 400 && answer.status < 500) await this.uploads.discard(received);
      return answer;
    };

    const kept = options.cachedFor === undefined ? null : new KeptAnswers(this.clock);

    const handler = (request: FastifyRequest, reply: FastifyReply): void => {
      const known = kept?.get(request.url) ?? null;
      if (known !== null) return this.responses.add(() => send(reply, known));
      requireReadableQuery(request.url);
      if (subResources.length > 0) refuseSubResource(subResources, method, pathOf(request.url));
      const text = takesBody ? (request.body as string | undefined) : undefined;
      const parameters = parametersOf(request.params as Record<string, string>);
      requireParameters(route.parameters, parameters);
      const operation = validate(parameters, request.query as Record<string, unknown>, valueOf(request, text));
      const key = isKeyed ? idempotencyKeyOf(request.headers['idempotency-key']) : null;
      const ownKey = hasOwnKey ? givenKeyOf(request.headers['idempotency-key']) : null;

      const proceed = (caller: Caller): Promise<HttpAnswer> => {
        if (upload !== undefined) return receive(request, caller, operation);
        const context = {
          ...this.contextOf(request, caller),
          ...(needsKey ? isCommand && { origin: originOf(request) } : { connection: connectionOf(request) }),
        };
        operation.context = ownKey === null ? context : { ...context, idempotencyKey: ownKey };
        return key === null
          ? carryOut(operation)
          : this.idempotency.run(
              {
                environment: context.environment,
                path: pathOf(request.url),
                key,
                body: text ?? '',
                requestId: request.id,
                deadline: context.deadline,
              },
              ({ commandId, attempt }) => {
                operation.context = { ...context, commandId, attempt };
                return carryOut(operation);
              },
            );
      };
      const entering = request.caller ?? this.enter(entry!, request, (operation as unknown as Readonly<Record<EnvironmentField, string>>)[entry!.field]);
      const answered = entering instanceof Promise ? entering.then(proceed) : proceed(entering);
      const leave = (answer: HttpAnswer): void => {
        kept?.keep(request.url, answer);
        // What is left of an upload is not read as another request.
        if (this.readiness.isDraining || upload !== undefined) reply.header('Connection', 'close');
        this.responses.add(() => send(reply, answer));
      };
      void answered.then(leave, (error: unknown) => leave(this.errors.of(error, request.id, name, options.isOAuth)));
    };

    return {
      method: method.toUpperCase(),
      url,
      // Whoever asks by HEAD wants nothing to happen.
      exposeHeadRoute: method === 'get' && registered.kind === 'query',
      bodyLimit: options.maxBody ?? MAX_BODY,
      onRequest: (request, _reply, done) => {
        if (entry === null) this.admit(count, request, done, upload === undefined);
        else this.admitUnknown(entry, request, entry.place === 'path' ? nameIn(parametersOf(request.params as Record<string, string>), entry) : null, done);
      },
      handler,
      // What is wrong before it is known whom the request comes from.
      ...(options.isOAuth && { errorHandler: (error, request, reply) => send(reply, this.errors.of(error, request.id, name, true)) }),
      ...(!needsKey && {
        onSend: (request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: DoneFuncWithErrOrRes) => this.share(options, request, reply, done),
      }),
      onResponse: (request, reply, done) => {
        observe(request, reply);
        done();
      },
    };
  }

  /** What browsers ask before they send a request without a key: one route for each path. */
  preflights(): readonly RouteOptions[] {
    const methods = new Map<string, string[]>();
    for (const operation of operations().filter((each) => each.route !== null && isPublic(each)))
      methods.set(routerPath(operation).url, [...(methods.get(routerPath(operation).url) ?? []), operation.route!.method.toUpperCase()]);
    return [...methods].map(([url, allowed]) => ({
      method: 'OPTIONS',
      url,
      handler: (request: FastifyRequest, reply: FastifyReply) => this.cors.preflight(request, reply, allowed.join(', ')),
    }));
  }

  /** What is the same for everybody, everybody's scripts may read; everything else is nobody's to keep. */
  private share({ cachedFor }: RegisteredOperation['options'], request: FastifyRequest, reply: FastifyReply, done: DoneFuncWithErrOrRes): void {
    if (cachedFor !== undefined) {
      reply.header('Access-Control-Allow-Origin', '*');
      done();
      return;
    }
    // It may hold tokens (RFC 6749, section 5.1).
    reply.header('Cache-Control', 'no-store');
    if (request.headers.origin === undefined) {
      done();
    } else {
      this.cors.allow(request, reply).then(
        () => done(),
        (error: unknown) => done(error as Error),
      );
    }
  }

  /**
   * A body as text, once its bytes have been found to be modest: it is parsed where its operation is known, whatever type the client calls it.
   * @throws DomainError `bad_request`, or `rate_limit_exceeded`
   */
  textOfBody({ headers, caller, ip }: FastifyRequest, body: Buffer): string {
    if (headers['content-length'] === undefined) this.rateLimits.countBody(body.length, caller ?? unknownClient(ip));
    if (!isUtf8(body)) throw badRequest('The body is not UTF-8.');
    requireModest(body);
    return body.toString();
  }

  /** Lets a request in before its body is read: by key, then by rate. Known keys and counters in memory take no turn of the event loop. */
  private admit(count: Count, request: FastifyRequest, done: (error?: Error) => void, isBodyCounted: boolean): void {
    const enter = (caller: Caller): void | Promise<void> => {
      request.caller = caller;
      const length = isBodyCounted ? lengthOfBody(request) : 0;
      if (length > 0) this.rateLimits.countBody(length, caller);
      return count(caller);
    };
    try {
      if (!this.readiness.isServing) throw unavailable('The server is starting; /health/ready tells how far it is.');
      const caller = this.authentication.authenticate(request.headers.authorization, request.id);
      const entered = caller instanceof Promise ? caller.then(enter) : enter(caller);
      if (entered instanceof Promise) entered.then(() => done(), done);
      else done();
    } catch (error) {
      done(error as Error);
    }
  }

  /** As `admit`, without a key: by what its path names, if anything (else it is entered once it was read), and then by rate. `Authorization` means nothing here. */
  private admitUnknown(entry: Entry, request: FastifyRequest, name: string | null, done: (error?: Error) => void): void {
    try {
      if (!this.readiness.isServing) throw unavailable('The server is starting; /health/ready tells how far it is.');
      const length = lengthOfBody(request);
      if (length > 0) this.rateLimits.countBody(length, unknownClient(request.ip));
      const entered = name === null ? undefined : this.enter(entry, request, name);
      if (entered instanceof Promise)
        entered.then(
          () => done(),
          (error: unknown) => done(error as Error),
        );
      else done();
    } catch (error) {
      done(error as Error);
    }
  }

  /** @throws DomainError `entity_not_found`, `invalid_client`, `session_not_found`, or `rate_limit_exceeded` */
  private enter(entry: Entry, request: FastifyRequest, name: string): Caller | Promise<Caller> {
    const known = entry.field === 'client_id' ? this.clients.known(name, request.ip) : null;
    if (known === null) return this.find(entry, request, name);
    const counted = entry.count(known);
    request.caller = known;
    return counted instanceof Promise ? counted.then(() => known) : known;
  }

  /** Whoever tries names is counted by address. */
  private async find({ count, field, place }: Entry, request: FastifyRequest, name: string): Promise<Caller> {
    await count(unknownClient(request.ip));
    const found =
      field === 'session_id'
        ? this.sessions.find(name, (request.query as Readonly<Record<string, unknown>>)['return_to'], request.ip, request.id)
        : this.clients.find(name, request.ip, request.id);
    const caller = await found.catch((error: unknown) => {
      // What a path names that there is not, is not found.
      const isUnknownClient = field === 'client_id' && place !== 'path' && isNotFound(error);
      throw isUnknownClient ? new DomainError('invalid', 'invalid_client', 'No environment has this client id.') : error;
    });
    await count(caller);
    request.caller = caller;
    return caller;
  }

  private contextOf(request: FastifyRequest, { environment, actor }: Caller): RequestContext {
    const { headers } = request;
    const now = this.clock.now();
    const readAfter = headers['gatehouse-position'];
    const { traceparent } = headers;
    return {
      environment,
      actor,
      requestId: request.id,
      commandId: newCommandId(now),
      deadline: now + this.settings.REQUEST_TIMEOUT,
      sentAt: performance.now(),
      readAfter: typeof readAfter === 'string' ? readAfter : undefined,
      traceparent: typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : undefined,
      receipt: {},
    };
  }
}

/** What the gateway saw of whoever asks without a key. */
function connectionOf({ ip, headers }: FastifyRequest): Connection {
  const token = bearerToken(headers.authorization);
  return { address: ip, userAgent: headers['user-agent'] ?? null, bearerHash: token === null ? null : hash('sha256', token, 'hex') };
}

/** From where somebody with a key asks. */
function originOf({ ip, headers }: FastifyRequest): Origin {
  return { address: ip, userAgent: headers['user-agent'] ?? null };
}

/** Where an operation without a key names its environment. */
function entryOf(registered: RegisteredOperation, field: EnvironmentField): Omit<Entry, 'count'> {
  const place = Object.entries(placesOf(registered)).find(([, fields]: [string, Places['path']]) => fields.some(({ name }) => name === field));
  if (place === undefined) throw new Error(`${registered.name} needs a field ${field}, since it needs no key.`);
  return { field, place: place[0] as keyof Places };
}

/** Before it is validated: null where there is none. */
function nameIn(parameters: Readonly<Record<string, string>>, { field }: Entry): string | null {
  return parameters[field] === '' ? null : (parameters[field] ?? null);
}

/** As the request says before its body is read; 0 for one that comes in chunks, whose bytes are counted when they are there. */
function lengthOfBody({ headers, routeOptions }: FastifyRequest): number {
  const length = headers['content-length'];
  // What is longer is not read.
  return length === undefined ? 0 : Math.min(Number(length), routeOptions.bodyLimit ?? MAX_BODY);
}

/** A path under that of an open route, whose end could be taken for the identifier of another object. */
interface SubResource {
  readonly methods: readonly string[];
  readonly segments: readonly string[];
}

function subResourcesOf(registered: RegisteredOperation): readonly SubResource[] {
  if (!isOpen(registered)) return [];
  const own = segmentsOf(registered.route!.path);
  return operations().flatMap(({ route }) => {
    const segments = segmentsOf(route?.path ?? '');
    const isUnder = segments.length > own.length && own.every((segment, index) => segments[index] === segment);
    if (!isUnder) return [];
    const methods = route!.method === 'get' ? ['GET', 'HEAD'] : [route!.method.toUpperCase()];
    return [{ methods, segments }];
  });
}

/** The segments of a path's template, whatever its parameters are called. */
function segmentsOf(path: string): readonly string[] {
  return path.split('/').map((segment) => (segment.startsWith('{') ? PARAMETER : segment));
}

/**
 * The path of a sub-resource is that for every method, never an object that is called so: else `DELETE …/w1/role_assignments` would delete the resource
 * `w1/role_assignments`. With an escaped slash it is the object.
 * @throws DomainError `method_not_allowed`, or `uri_too_long`
 */
function refuseSubResource(subResources: readonly SubResource[], method: string, path: string): void {
  const given = path.split('/');
  const isMeant = ({ segments }: SubResource): boolean =>
    segments.length === given.length && segments.every((segment, index) => segment === given[index] || (segment === PARAMETER && given[index] !== ''));
  const methods = subResources.filter(isMeant).flatMap((subResource) => subResource.methods);
  // The router leads these to their own routes, unless a parameter in them is longer than any.
  if (methods.includes(method.toUpperCase())) throw uriTooLong();
  if (methods.length > 0) throw new MethodNotAllowed(method.toUpperCase(), methods);
}

/** Of a command that has no key nobody can tell either: it is asked for anew, as after any answer that was lost. */
function withoutKey(error: unknown): unknown {
  const isUnknown = error instanceof DomainError && error.code === 'idempotency_outcome_unknown';
  return isUnknown ? unavailable('Nobody can tell whether this was carried out.') : error;
}

/**
 * The operation's path in the router's form. A text at the end of a path (an identifier of the caller's own) goes to the end whatever it holds: SDKs send its
 * slashes unescaped.
 */
function routerPath(registered: RegisteredOperation): {
  readonly url: string;
  readonly parametersOf: (params: Record<string, string>) => Record<string, string>;
} {
  const { path, parameters } = registered.route!;
  const last = parameters.at(-1);
  const url = path.replaceAll(/\{(\w+)\}/g, ':$1');
  if (!isOpen(registered) || last === undefined) return { url, parametersOf: (params) => params };
  return { url: `${url.slice(0, -last.length - 1)}*`, parametersOf: ({ '*': rest = '', ...params }) => ({ ...params, [last]: rest }) };
}

/** Whether the path ends with a text of the caller's own. */
function isOpen(registered: RegisteredOperation): boolean {
  const { path, parameters } = registered.route!;
  const last = parameters.at(-1);
  return path.endsWith(`{${last}}`) && placesOf(registered).path.some(({ name, kind }) => name === last && kind === 'text');
}

function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/** The router takes `/organizations/` for an organization without an id. @throws DomainError `route_not_found` */
function requireParameters(names: readonly string[], parameters: Readonly<Record<string, string>>): void {
  for (const name of names) if (parameters[name] === '') throw noSuchPath();
}

/** The parser lets a bad escape through as text. @throws DomainError `bad_request` */
function requireReadableQuery(url: string): void {
  const start = url.indexOf('?');
  if (start === -1 || !url.includes('%', start)) return;
  try {
    decodeURIComponent(url.slice(start));
  } catch {
    throw badRequest('The query is not valid percent-encoding.');
  }
}
