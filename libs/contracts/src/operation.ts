import { Command as CqrsCommand, Query as CqrsQuery } from '@nestjs/cqrs';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { ErrorCode } from './errors.ts';

/** The services that own operations, each an app and a process in a cluster: one that others ask, before those. */
export const SERVICES = ['identity', 'authorization', 'directory-sync', 'audit-logs', 'notifications'] as const;
export type ServiceName = (typeof SERVICES)[number];

/** Changes something. Carries the request's context beside its fields. */
export abstract class Command<Answer> extends CqrsCommand<Answer> {
  context!: RequestContext;
}

/** Changes nothing, whatever its HTTP verb. */
export abstract class Query<Answer> extends CqrsQuery<Answer> {
  context!: RequestContext;
}

export type Operation<Answer = unknown> = Command<Answer> | Query<Answer>;
export type Answer<O> = O extends Operation<infer A> ? A : never;
// oxlint-disable-next-line typescript/no-explicit-any -- any constructor of contract classes
export type Class<T = any> = new (...args: any[]) => T;

/** A page as every list endpoint answers it. */
export interface List<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  readonly list_metadata: { readonly before: string | null; readonly after: string | null };
}

/** A page of the events feed: it is read forwards only. */
export interface FeedPage<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  readonly list_metadata: { readonly after: string | null };
}

/** Text that already went through the resource's allow-list serialiser (a stored row, a page of rows): the gateway sends it as it is. */
export class Serialised<T> {
  /** Keeps `Serialised<A>` and `Serialised<B>` apart for the compiler. */
  declare readonly answer: T;
  constructor(readonly json: string) {}
}

export interface AnswerShape<T = unknown> {
  readonly status: 200 | 201 | 202 | 204 | 302;
  /** The resource or answer class; null for an empty body. */
  readonly of: Class | null;
  readonly shape: 'one' | 'list' | 'feed' | 'array' | 'empty' | 'redirect';
  /** Only for the compiler. */
  readonly type?: T;
}

export const ok = <T>(of: Class<T>): AnswerShape<T> => ({ status: 200, of, shape: 'one' });
export const created = <T>(of: Class<T>): AnswerShape<T> => ({ status: 201, of, shape: 'one' });
export const accepted = <T>(of: Class<T>): AnswerShape<T> => ({ status: 202, of, shape: 'one' });
export const listOf = <T>(of: Class<T>): AnswerShape<List<T>> => ({ status: 200, of, shape: 'list' });
export const arrayOf = <T>(of: Class<T>): AnswerShape<readonly T[]> => ({ status: 200, of, shape: 'array' });
export const feedOf = <T>(of: Class<T>): AnswerShape<FeedPage<T>> => ({ status: 200, of, shape: 'feed' });
export const empty = (status: 200 | 202 | 204): AnswerShape<void> => ({ status, of: null, shape: 'empty' });

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** A limit of its own, counted per key (or environment) in fixed windows, beside the general one. */
export interface OperationLimit {
  readonly requests: number;
  readonly perSeconds: number;
}

/** The longest body of a request, in bytes, unless its operation takes more. */
export const MAX_BODY = 64 * 1024;

export interface OperationUpload {
  /** The folder of blobs that it is stored in. */
  readonly folder: string;
  readonly contentTypes: readonly string[];
}

/** A field by which an environment is found. */
export type EnvironmentField = 'client_id' | 'session_id';

interface Definition<T> {
  readonly owner: ServiceName;
  /** One sentence in the API docs. */
  readonly summary: string;
  /** More, in Markdown. */
  readonly description?: string;
  readonly answers: AnswerShape<T>;
  /** Codes of `errors.ts` that this operation answers beside the common ones. */
  readonly refuses?: readonly ErrorCode[];
  readonly limit?: OperationLimit;
  /** May be carried out and say in the header `Gatehouse-Warning` what the caller should know. */
  readonly warns?: true;
  /** A body as the docs show it, where the examples of its fields exclude each other. */
  readonly example?: Readonly<Record<string, unknown>>;
  /** A DELETE that takes its fields from a JSON body, from the query, or from both. */
  readonly body?: true;
  /** The longest body that it takes, in bytes, where that is more than `MAX_BODY`. */
  readonly maxBody?: number;
  /** Its body is no JSON: it is stored as it comes, up to `maxBody`, and handed on by name (`context.upload`). Its fields stand in the query. */
  readonly upload?: OperationUpload;
  /**
   * Where the environment comes from, other than from the API key of the request: from the client id, or from the session, in the field of this name. Such an operation
   * needs no key and reads no `Authorization`; its body may be a form; it has no idempotency key, since anybody could ask for the stored answer.
   */
  readonly environmentFrom?: EnvironmentField;
  /** What cannot be understood, or comes too often, is refused as RFC 6749 says: `invalid_request` and `too_many_requests`, which it names among what it refuses. */
  readonly isOAuth?: true;
  /** How long anybody may keep the answer to a GET that needs no key (seconds). */
  readonly cachedFor?: number;
  /** `own`: its owner counts on the key that it came with, and answers a repeat by itself; nothing of it is stored by the gateway. */
  readonly idempotency?: 'own';
  /** Names of events that it emits, for the docs. */
  readonly emits?: readonly string[];
}

/** Exactly one of the verbs, with a path whose `{placeholders}` are fields of the class; or `internal` for calls between services and the command line. */
export type OperationOptions<T = unknown> = Definition<T> &
  (
    | { readonly get: string }
    | { readonly post: string }
    | { readonly put: string }
    | { readonly patch: string }
    | { readonly delete: string }
    | { readonly internal: true }
  );

export interface RegisteredOperation {
  readonly name: string;
  readonly type: Class<Operation>;
  readonly kind: 'command' | 'query';
  readonly route: { readonly method: Method; readonly path: string; readonly parameters: readonly string[] } | null;
  readonly options: Definition<unknown>;
}

const METHODS: readonly Method[] = ['get', 'post', 'put', 'patch', 'delete'];
const registry = new Map<string, RegisteredOperation>();

/** Declares a command or query class as an operation. Everything else about it (route, validation, docs, message) derives from here. */
export function Operation<T>(options: OperationOptions<T>): <C extends Class<Operation<T>>>(type: C) => void {
  return (type) => {
    const method = METHODS.find((candidate) => candidate in options);
    const path = method === undefined ? undefined : (options as unknown as Record<Method, string>)[method];
    const kind = type.prototype instanceof CqrsCommand ? 'command' : 'query';
    if (registry.has(type.name)) throw new Error(`Operation ${type.name} is declared twice.`);
    registry.set(type.name, {
      name: type.name,
      type,
      kind,
      route: method === undefined || path === undefined ? null : { method, path, parameters: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!) },
      options,
    });
  };
}

/** All operations whose files were imported. */
export function operations(): readonly RegisteredOperation[] {
  return [...registry.values()];
}

/** Whether the operation may come with an `Idempotency-Key`, and its first answer is kept for whoever repeats it. */
export function takesKey(operation: RegisteredOperation): boolean {
  const { kind, route, options } = operation;
  return kind === 'command' && route?.method === 'post' && !isPublic(operation) && options.idempotency === undefined;
}

/** Whether it is asked for without an API key. */
export function isPublic({ options }: RegisteredOperation): boolean {
  return options.environmentFrom !== undefined;
}

/** @throws Error when the class is not an operation */
export function operationOf(type: Class): RegisteredOperation {
  const found = registry.get(type.name);
  if (found === undefined) throw new Error(`${type.name} is not an operation.`);
  return found;
}
