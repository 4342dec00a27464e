import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Clock } from '#libs/platform/src/clock';
import { PublicAddressSettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import type { HttpFace, WrittenAnswer } from '#libs/platform/src/http-face';
import { Log } from '#libs/platform/src/log';
import { Readiness } from '#libs/platform/src/readiness';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ResponseBatch } from '#libs/platform/src/response-batch';
import { ShortLived } from '#libs/read-models/src/short-lived';
import type { StoredDirectoryGroup } from '../domain/directory-group.decider.ts';
import { customAttributesOf, type ExpectedVersion, type StoredDirectoryUser } from '../domain/directory-user.decider.ts';
import { invalidValue, ScimError } from '../domain/scim-domain-error.ts';
import { filterOf, type ScimFilter } from '../domain/scim-filter.decider.ts';
import type { ResourceKind } from '../domain/scim-schema.decider.ts';
import { isObject, OWN_SCHEMA, valueOf, type Attributes } from '../domain/scim-values.decider.ts';
import { ScimAccess, type Admitted } from './access.ts';
import { BodyParser } from './body-parser.ts';
import { listOf, MAX_RESULTS, resourceTypes, schemas, serviceProviderConfig } from './discovery.ts';
import { ScimGroups } from './groups.ts';
import { parseSearch } from './parse-filter.ts';
import { invalidSyntax } from './patch-request.ts';
import { etagOf, EVERYTHING, groupResource, isAskedFor, projected, userResource, withOwn, type Projection } from './representation.ts';
import { ScimMetrics } from './metrics.ts';
import { ScimRequestLog } from './request-log.ts';
import { shownNames, shownPath } from './redaction.ts';
import { shownTogether, type SearchRequest } from './search.ts';
import { MAX_USER, ScimUsers } from './users.ts';

const FACE = '/scim';
const PREFIX = `${FACE}/v2/`;
const CONTENT_TYPE = 'application/scim+json; charset=utf-8';
const ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error';
const MAX_GROUP = 8 * 1024 * 1024;
const DEFAULT_COUNT = 100;
/** Attributes that an answer is asked to have, or not to have. */
const MOST_NAMED = 100;
/** What other parts refuse, where the kind of the refusal does not say it all. */
const STATUS_OF_CODE: Readonly<Partial<Record<string, number>>> = {
  payload_too_large: 413,
  uri_too_long: 414,
  headers_too_large: 431,
  request_timeout: 408,
};
const IDEMPOTENCY = 'scim_idempotency';
const IDEMPOTENCY_MS = 24 * 60 * 60 * 1_000;
/** Methods that each kind of address has. */
const METHODS: Readonly<Record<'discovery' | 'everything' | 'resources' | 'resource' | 'search', readonly string[]>> = {
  discovery: ['GET'],
  everything: ['GET'],
  resources: ['GET', 'POST'],
  resource: ['GET', 'PUT', 'PATCH', 'DELETE'],
  search: ['POST'],
};
const EVERY_METHOD = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** `allowed`: the methods that the address has. */
class MethodNotAllowed extends ScimError {
  constructor(
    method: string,
    readonly allowed: readonly string[],
  ) {
    super(405, null, `${method} is not allowed here.`);
  }
}

interface ScimAnswer {
  readonly status: number;
  readonly body: Attributes | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How far a request is. */
interface Progress {
  /** When it came: Fastify notes it for those alone whose end somebody waits for. */
  readonly began: number;
  readonly segments: readonly string[];
  admitted: Admitted | null;
  /** As it was read, for what is noted of it. */
  body: unknown;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Below `/scim`, from when it came. */
    scim?: Progress | null;
  }
}

/** A request, taken apart. */
interface Asked extends Admitted {
  readonly method: string;
  readonly segments: readonly string[];
  readonly query: Attributes;
  readonly body: unknown;
  readonly headers: FastifyRequest['headers'];
  /** The address of the directory. */
  readonly base: string;
}

/** SCIM 2.0 (RFC 7643, 7644), by which the products of customers write people and groups. */
@Injectable()
export class ScimFace implements HttpFace {
  readonly prefix = FACE;
  private readonly address: string;
  private readonly responses = new ResponseBatch();

  constructor(
    private readonly access: ScimAccess,
    private readonly users: ScimUsers,
    private readonly groups: ScimGroups,
    private readonly bodies: BodyParser,
    private readonly requests: ScimRequestLog,
    private readonly metrics: ScimMetrics,
    private readonly readiness: Readiness,
    private readonly shortLived: ShortLived,
    private readonly clock: Clock,
    private readonly log: Log,
    { PUBLIC_URL }: PublicAddressSettings,
  ) {
    this.address = PUBLIC_URL.replace(/\/+$/, '');
  }

  async mount(server: FastifyInstance): Promise<void> {
    await server.register(
      async (scope) => {
        scope.decorateRequest('scim', null);
        scope.removeAllContentTypeParsers();
        scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
        scope.setErrorHandler((error, request, reply) => this.answer(request, reply, this.refusal(error, request.id)));
        // Also of methods that there are nowhere.
        scope.setNotFoundHandler((request, reply) =>
          this.answer(
            request,
            reply,
            this.refusal(request.url.startsWith(PREFIX) ? new MethodNotAllowed(request.method, EVERY_METHOD) : noSuchAddress(), request.id),
          ),
        );
        scope.route({
          method: EVERY_METHOD,
          url: `${PREFIX.slice(FACE.length)}*`,
          exposeHeadRoute: false,
          bodyLimit: MAX_GROUP,
          // Before the body is read.
          onRequest: async (request) => {
            const progress: Progress = (request.scim = { began: performance.now(), segments: segmentsOf(request), admitted: null, body: undefined });
            if (!this.readiness.isServing) throw new DomainError('unavailable', 'service_unavailable', 'The server is starting.', { retryAfter: 1 });
            const [directoryId = '', kind] = progress.segments;
            const comer = { authorization: request.headers.authorization, address: request.ip, requestId: request.id };
            progress.admitted = await this.access.admit(directoryId, comer);
            const length = Number(request.headers['content-length'] ?? 0);
            if (length > longestOf(kind)) throw tooLarge(kind);
          },
          handler: (request, reply) => {
            void this.carryOut(request, request.scim!).then((answer) => this.responses.add(() => void this.answer(request, reply, answer)));
          },
        });
      },
      { prefix: FACE },
    );
  }

  refusalOf(error: unknown, requestId: string): WrittenAnswer {
    const { status, body, headers = {} } = this.refusal(error, requestId);
    return { status, headers: { ...headers, 'Content-Type': CONTENT_TYPE }, text: JSON.stringify(body) };
  }

  private async carryOut(request: FastifyRequest, progress: Progress): Promise<ScimAnswer> {
    try {
      const [, ...segments] = progress.segments;
      const admitted = progress.admitted!;
      const bytes = request.body as Buffer | undefined;
      if (bytes !== undefined && bytes.length > longestOf(segments[0])) throw tooLarge(segments[0]);
      const hasBody = bytes !== undefined && bytes.length > 0 && request.method !== 'GET' && request.method !== 'DELETE';
      if (hasBody) requireType(request.headers);
      const asked: Asked = {
        ...admitted,
        method: request.method,
        segments,
        query: request.query as Attributes,
        body: hasBody ? await this.bodies.parse(bytes) : undefined,
        headers: request.headers,
        base: `${this.address}${PREFIX}${admitted.directory.id}`,
      };
      progress.body = asked.body;
      return await this.answerTo(asked);
    } catch (error) {
      return this.refusal(error, request.id);
    }
  }

  private answerTo(asked: Asked): Promise<ScimAnswer> | ScimAnswer {
    const { segments, base, directory } = asked;
    const [kind, id, more] = segments;
    if (more !== undefined) throw noSuchAddress();
    switch (kind) {
      case undefined:
        requireMethod(asked, 'everything');
        return this.findEverything(asked, searchOfQuery(asked.query));
      case '.search':
        if (id !== undefined) throw noSuchAddress();
        requireMethod(asked, 'search');
        return this.findEverything(asked, searchOfBody(asked.body));
      case 'ServiceProviderConfig':
        if (id !== undefined) throw noSuchAddress();
        requireMethod(asked, 'discovery');
        return { status: 200, body: serviceProviderConfig(base) };
      case 'ResourceTypes':
        requireMethod(asked, 'discovery');
        return listed(resourceTypes(base, directory.attributes), id, asked);
      case 'Schemas':
        requireMethod(asked, 'discovery');
        return listed(schemas(base, directory.attributes), id, asked);
      case 'Users':
      case 'Groups': {
        requireMethod(asked, id === undefined ? 'resources' : id === '.search' ? 'search' : 'resource');
        const isUsers = kind === 'Users';
        if (id === '.search') return this.find(asked, isUsers, searchOfBody(asked.body));
        if (id !== undefined) return isUsers ? this.ofUser(asked, id) : this.ofGroup(asked, id);
        return asked.method === 'GET' ? this.find(asked, isUsers, searchOfQuery(asked.query)) : this.create(asked, isUsers);
      }
      case 'Me':
      case 'Bulk':
        throw new ScimError(501, null, `${kind} is not supported.`);
      default:
        throw noSuchAddress();
    }
  }

  private async create(asked: Asked, isUsers: boolean): Promise<ScimAnswer> {
    const { directory, base } = asked;
    const body = objectOf(asked.body);
    const context = await this.withKey(asked);
    const projection = projectionOf(asked.query);
    if (isUsers) {
      const user = await this.users.create(context, directory, body);
      return {
        status: 201,
        body: await this.shownUser(user, asked, projection),
        headers: { Location: `${base}/Users/${user.id}`, ETag: etagOf(user.version) },
      };
    }
    const group = await this.groups.create(context, directory, body);
    const shown = await this.shownGroup(group, asked, projection);
    return { status: 201, body: shown, headers: { Location: `${base}/Groups/${group.id}`, ETag: etagOf(group.version) } };
  }

  private async ofUser(asked: Asked, id: string): Promise<ScimAnswer> {
    const { context, directory, method, headers } = asked;
    const expected = expectedOf(headers['if-match']);
    if (method === 'DELETE') {
      await this.users.delete(context, directory, id, expected);
      return { status: 204, body: null };
    }
    const user =
      method === 'GET'
        ? await this.users.get(context, directory, id)
        : await this.users[method === 'PUT' ? 'replace' : 'patch'](context, directory, id, { body: objectOf(asked.body), expected });
    const etag = { ETag: etagOf(user.version) };
    if (method === 'GET' && isKnown(headers['if-none-match'], user.version)) return { status: 304, body: null, headers: etag };
    return { status: 200, body: await this.shownUser(user, asked, projectionOf(asked.query)), headers: etag };
  }

  private async ofGroup(asked: Asked, id: string): Promise<ScimAnswer> {
    const { context, directory, method, headers } = asked;
    const expected = expectedOf(headers['if-match']);
    const projection = projectionOf(asked.query);
    if (method === 'DELETE') {
      await this.groups.delete(context, directory, id, expected);
      return { status: 204, body: null };
    }
    const group =
      method === 'GET'
        ? await this.groups.get(context, directory, id)
        : await this.groups[method === 'PUT' ? 'replace' : 'patch'](context, directory, id, { body: objectOf(asked.body), expected });
    const etag = { ETag: etagOf(group.version) };
    // Whoever changes members seldom wants to read all of them.
    if (method === 'PATCH' && projection.attributes === null) return { status: 204, body: null, headers: etag };
    if (method === 'GET' && isKnown(headers['if-none-match'], group.version)) return { status: 304, body: null, headers: etag };
    const shown = await this.shownGroup(group, asked, projection);
    const { meta } = shown as { readonly meta?: { readonly version: string } };
    return { status: 200, body: shown, headers: { ETag: meta?.version ?? etag.ETag } };
  }

  private async find(asked: Asked, isUsers: boolean, search: Search): Promise<ScimAnswer> {
    const kind = isUsers ? 'User' : 'Group';
    const { total, resources } = await this.found(asked, kind, parseSearch(search.text, [kind]), search);
    return { status: 200, body: listOf(resources, total, search.startIndex) };
  }

  /** People first, then groups, in one list. */
  private async findEverything(asked: Asked, search: Search): Promise<ScimAnswer> {
    const { startIndex, count } = search;
    const filter = parseSearch(search.text, ['User', 'Group']);
    const people = await this.found(asked, 'User', filter, search);
    const groups = await this.found(asked, 'Group', filter, {
      ...search,
      startIndex: Math.max(1, startIndex - people.total),
      count: count - people.resources.length,
    });
    return { status: 200, body: listOf([...people.resources, ...groups.resources], people.total + groups.total, startIndex) };
  }

  private async found(
    asked: Asked,
    kind: ResourceKind,
    asWritten: ScimFilter | null,
    { projection, ...search }: Search,
  ): Promise<{ readonly total: number; readonly resources: readonly Attributes[] }> {
    const { context, directory } = asked;
    const filter = asWritten === null ? null : filterOf(kind, asWritten);
    if (filter === 'none') return { total: 0, resources: [] };
    const request: SearchRequest = { environment: context.environment, directoryId: directory.id, ...search, text: `${kind}s ${search.text}`, filter };
    if (kind === 'User') {
      const { total, rows } = await this.users.find(request);
      return { total, resources: await Promise.all(rows.map((user) => this.shownUser(user, asked, projection))) };
    }
    const { total, rows } = await this.groups.find(request);
    return { total, resources: await shownTogether(rows, (group) => this.shownGroup(group, asked, projection)) };
  }

  private async shownUser(user: StoredDirectoryUser, { context, directory, base }: Asked, projection: Projection): Promise<Attributes> {
    const groups = isAskedFor(projection, 'groups', true) ? await this.groups.ofUser(context.environment, user.id) : null;
    const shown = userResource(user, base, groups);
    const customAttributes = isAskedFor(projection, OWN_SCHEMA, true) ? customAttributesOf(user.attributes, directory.attributes) : {};
    return projected(Object.keys(customAttributes).length === 0 ? shown : withOwn(shown, customAttributes), projection);
  }

  /** Members and version are of one moment, where members are asked for. */
  private async shownGroup(group: StoredDirectoryGroup, { context, directory, base }: Asked, projection: Projection): Promise<Attributes> {
    if (!isAskedFor(projection, 'members')) return projected(groupResource(group, base, null), projection);
    const { group: now, members } = await this.groups.withMembers(context, directory, group.id);
    return projected(groupResource(now, base, members), projection);
  }

  /** The same key has the same command: a repeated request meets what it made. */
  private async withKey({ context, directory, headers, segments }: Asked): Promise<RequestContext> {
    const key = headers['idempotency-key'];
    if (key === undefined) return context;
    if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) throw invalidValue('Idempotency-Key has 1 to 255 visible characters.');
    const name = `${context.environment} ${directory.id} ${segments[0]} ${hash('sha256', key, 'base64url')}`;
    const { stored, entry } = await this.shortLived.putIfAbsent(IDEMPOTENCY, name, context.commandId, this.clock.now() + IDEMPOTENCY_MS);
    return stored ? context : { ...context, commandId: entry.value, attempt: 2 };
  }

  private refusal(error: unknown, requestId: string): ScimAnswer {
    if (error instanceof ScimError) {
      const { status, scimType, message: detail, retryAfter } = error;
      return {
        status,
        body: { schemas: [ERROR], status: String(status), ...(scimType !== null && { scimType }), detail },
        ...(status === 401 && { headers: { 'WWW-Authenticate': 'Bearer' } }),
        ...(retryAfter !== undefined && { headers: { 'Retry-After': String(retryAfter) } }),
        ...(error instanceof MethodNotAllowed && { headers: { Allow: error.allowed.join(', ') } }),
      };
    }
    const { code = '', statusCode = 500 } = error as { readonly code?: string; readonly statusCode?: number };
    if (error instanceof DomainError && error.kind === 'unavailable')
      return { status: 503, body: errorOf(503, error.message), headers: { 'Retry-After': String(error.details.retryAfter ?? 1) } };
    if (error instanceof DomainError) {
      const status = STATUS_OF_CODE[error.code] ?? (error.kind === 'not-found' ? 404 : error.kind === 'conflict' ? 409 : 400);
      return { status, body: errorOf(status, error.message) };
    }
    if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return this.refusal(tooLarge('Groups'), requestId);
    if (code.startsWith('FST_') && statusCode < 500)
      return { status: 400, body: { ...errorOf(400, 'The request cannot be read.'), scimType: 'invalidSyntax' } };
    this.log.error('A SCIM request failed unexpectedly.', { error, requestId });
    return { status: 500, body: errorOf(500, `Something went wrong on our side. Please report the request id ${requestId}.`) };
  }

  private answer(request: FastifyRequest, reply: FastifyReply, { status, body, headers = {} }: ScimAnswer): FastifyReply {
    const { began = performance.now(), segments = segmentsOf(request) } = request.scim ?? {};
    const milliseconds = performance.now() - began;
    this.metrics.answered(request.method, segments.slice(1), { status, scimType: body?.['scimType'], milliseconds });
    this.note(request, segments, { status, body, milliseconds });
    reply.code(status).headers(headers).header('Cache-Control', 'no-store');
    return body === null ? reply.send() : reply.header('Content-Type', CONTENT_TYPE).send(JSON.stringify(body));
  }

  private note(
    request: FastifyRequest,
    [directoryId = '', ...segments]: readonly string[],
    { status, body, milliseconds }: Pick<ScimAnswer, 'status' | 'body'> & { readonly milliseconds: number },
  ): void {
    const environment = this.access.environmentOf(directoryId);
    if (environment === null) return;
    const text = (name: string): string | null => (status >= 400 && typeof body?.[name] === 'string' ? body[name] : null);
    this.requests.note(environment, directoryId, {
      method: request.method,
      path: shownPath(segments, request.query as Attributes),
      attributes: shownNames(request.scim?.body),
      status,
      error: text('scimType'),
      detail: text('detail'),
      request_id: request.id,
      duration_ms: Math.round(milliseconds),
    });
  }
}

function errorOf(status: number, detail: string): Attributes {
  return { schemas: [ERROR], status: String(status), detail };
}

/** Of a path that is routed, whose escapes were read before. */
function segmentsOf({ url }: FastifyRequest): readonly string[] {
  const path = url.startsWith(PREFIX) ? url.slice(PREFIX.length).split('?', 1)[0]! : '';
  // Whoever joins an address that ends with a slash and a path has two of them there.
  return path
    .split('/')
    .map(decoded)
    .filter((segment) => segment !== '');
}

/** As it stands where it cannot be read, which no route lets through. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function longestOf(kind: string | undefined): number {
  return kind === 'Groups' ? MAX_GROUP : MAX_USER;
}

function tooLarge(kind: string | undefined): ScimError {
  return new ScimError(413, null, kind === 'Groups' ? 'A Group has at most 8 MiB.' : 'A User has at most 32 KiB.');
}

function requireType({ 'content-type': contentType, 'content-encoding': encoding = 'identity' }: FastifyRequest['headers']): void {
  if (encoding.trim().toLowerCase() !== 'identity') throw new ScimError(415, null, 'The body is not compressed.');
  const type = (contentType ?? 'application/scim+json').split(';', 1)[0]!.trim().toLowerCase();
  if (type !== 'application/json' && !type.endsWith('+json')) throw new ScimError(415, null, 'The body is application/scim+json or application/json.');
}

function requireMethod({ method }: Asked, address: keyof typeof METHODS): void {
  if (!METHODS[address].includes(method)) throw new MethodNotAllowed(method, METHODS[address]);
}

function noSuchAddress(): ScimError {
  return new ScimError(404, null, 'There is no such address.');
}

function objectOf(body: unknown): Attributes {
  if (!isObject(body)) throw invalidSyntax('The body is an object of JSON.');
  return body;
}

function listed(resources: readonly Attributes[], id: string | undefined, { query }: Asked): ScimAnswer {
  // RFC 7644, section 4.
  if (query['filter'] !== undefined) throw new ScimError(403, null, 'What the server can do is not filtered.');
  if (id === undefined) return { status: 200, body: listOf(resources, resources.length, 1) };
  const found = resources.find((resource) => String(resource['id']).toLowerCase() === id.toLowerCase());
  if (found === undefined) throw noSuchAddress();
  return { status: 200, body: found };
}

interface Search extends Pick<SearchRequest, 'text' | 'startIndex' | 'count'> {
  readonly projection: Projection;
}

function searchOfQuery(query: Attributes): Search {
  return {
    text: textIn(query, 'filter'),
    startIndex: Math.max(1, integerIn(query['startIndex'], 1)),
    count: Math.min(MAX_RESULTS, Math.max(0, integerIn(query['count'], DEFAULT_COUNT))),
    projection: projectionOf(query),
  };
}

/** What a search asks in its body is what a query would. */
function searchOfBody(body: unknown): Search {
  const asked = objectOf(body);
  const list = (name: string): string | undefined => {
    const value = valueOf(asked, name);
    return Array.isArray(value) ? value.filter((each) => typeof each === 'string').join(',') : typeof value === 'string' ? value : undefined;
  };
  const fields = {
    filter: valueOf(asked, 'filter'),
    startIndex: valueOf(asked, 'startIndex'),
    count: valueOf(asked, 'count'),
    attributes: list('attributes'),
    excludedAttributes: list('excludedAttributes'),
  };
  return searchOfQuery(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)));
}

function textIn(query: Attributes, name: string): string {
  const value = query[name] ?? '';
  if (typeof value !== 'string') throw invalidValue(`${name} is given once.`);
  return value;
}

function integerIn(value: unknown, otherwise: number): number {
  if (value === undefined || value === '') return otherwise;
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw invalidValue('startIndex and count are whole numbers.');
  return number;
}

function projectionOf(query: Attributes): Projection {
  const names = (name: string): readonly string[] => {
    const all = textIn(query, name).split(',');
    if (all.length > MOST_NAMED) throw invalidValue(`${name} names at most ${MOST_NAMED} attributes.`);
    return all.map((each) => each.trim()).filter((each) => each !== '');
  };
  const [attributes, excluded] = [names('attributes'), names('excludedAttributes')];
  if (attributes.length > 0) return { attributes, excluded: [] };
  return excluded.length > 0 ? { attributes: null, excluded } : EVERYTHING;
}

/** The versions that `If-Match` names. */
function expectedOf(header: string | undefined): ExpectedVersion {
  if (header === undefined) return undefined;
  return header.split(',').map((each) => /^\s*(?:W\/)?"([^"]*)"\s*$/.exec(each)?.[1] ?? each.trim());
}

function isKnown(header: string | undefined, version: number): boolean {
  const known = expectedOf(header);
  return known !== undefined && (known.includes('*') || known.includes(String(version)));
}
