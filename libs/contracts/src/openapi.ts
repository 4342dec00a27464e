import { compare, Components } from './components.ts';
import { ERRORS, type DeclaredError, type ErrorCode } from './errors.ts';
import { eventDataOf, WEBHOOK_EVENT_NAMES } from './events.ts';
import { exampleOf, exampleOfField, exampleOfFields } from './examples.ts';
import { Event } from './feed/event.ts';
import { mayBeAbsent, type Field } from './field.ts';
import { fieldSchema, longestInPath, MAX_QUERY_ITEMS, placesOf, schemaOfFields, type Nest, type Schema } from './json-schema.ts';
import { isPublic, operations, takesKey, type AnswerShape, type Class, type OperationUpload, type RegisteredOperation } from './operation.ts';

type Json = Readonly<Record<string, unknown>>;

/** As much of OpenAPI 3.1 as readers of the document rely on. */
export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: Json;
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly webhooks: Json;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Json>>;
    readonly [kind: string]: unknown;
  };
  readonly [key: string]: unknown;
}

export interface OpenApiOperation {
  readonly operationId: string;
  readonly parameters: readonly Json[];
  readonly responses: Readonly<Record<string, Json>>;
  readonly [key: string]: unknown;
}

/** The document of every operation whose file was imported (`all.ts`). The same contracts give the same text. */
export function openApiDocument(version: string): OpenApiDocument {
  const components = new Components();
  const published = operations()
    .filter((operation) => operation.route !== null)
    .sort((one, other) => compare(routeKey(one), routeKey(other)));
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const operation of published) (paths[operation.route!.path] ??= {})[operation.route!.method] = operationObject(operation, components);
  const tags = [...new Set(published.map(tagOf))].sort((one, other) => placeOf(one) - placeOf(other) || compare(one, other));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version,
      summary: 'Organizations, users and authorization for multi-tenant applications.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server.' }],
    security: [{ apiKey: [] }],
    tags: tags.map((name) => ({ name })),
    paths,
    webhooks: webhooks(components),
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'The secret key of an environment.' } },
      schemas: components.schemas(ERROR_SCHEMAS),
      responses: COMMON_RESPONSES,
      parameters: HEADER_PARAMETERS,
      headers: HEADERS,
    },
  };
}

function operationObject(operation: RegisteredOperation, components: Components): OpenApiOperation {
  const { options, kind, name } = operation;
  const { path, query, body, bodyOrQuery } = placesOf(operation);
  return {
    operationId: name[0]!.toLowerCase() + name.slice(1),
    summary: options.summary,
    ...description(operation),
    tags: [tagOf(operation)],
    'x-owner': options.owner,
    ...(options.emits !== undefined && { 'x-emits': options.emits }),
    ...(isPublic(operation) && { security: [] }),
    parameters: [
      ...path.map(pathParameter),
      ...query.map(queryParameter),
      ...bodyOrQuery.map((field) => queryParameter({ ...field, optional: true })),
      ...(takesKey(operation) || options.idempotency === 'own' ? [reference('parameters', 'IdempotencyKey')] : []),
      ...(kind === 'query' ? [reference('parameters', 'GatehousePosition')] : []),
      reference('parameters', 'RequestId'),
    ],
    ...(body.length > 0 && { requestBody: requestBody(operation, components) }),
    ...(options.upload !== undefined && { requestBody: uploadBody(options.upload) }),
    responses: { [options.answers.status]: answer(operation, components), ...refusals(operation) },
  };
}

/** OAuth clients send forms. */
function bodyTypes(operation: RegisteredOperation): readonly string[] {
  return ['application/json', ...(isPublic(operation) ? ['application/x-www-form-urlencoded'] : [])];
}

/** What may come in the query is not required in the body. */
function requestBody(operation: RegisteredOperation, components: Components): Json {
  const { body, bodyOrQuery } = placesOf(operation);
  const fields = body.map((field) => (bodyOrQuery.includes(field) ? { ...field, optional: true } : field));
  const content = { schema: schemaOfFields(fields, 'request', components.nest), example: operation.options.example ?? exampleOfFields(body) };
  return {
    required: fields.some((field) => !mayBeAbsent(field)),
    content: Object.fromEntries(bodyTypes(operation).map((type) => [type, content])),
  };
}

function uploadBody({ contentTypes }: OperationUpload): Json {
  return { required: true, content: Object.fromEntries(contentTypes.map((type) => [type, { schema: { type: 'string', format: 'binary' } }])) };
}

function description({ options }: RegisteredOperation): { description?: string } {
  const { description: text, emits = [], limit, maxBody, body } = options;
  const sentences = [
    ...(text === undefined ? [] : [text]),
    ...(body === true ? ['Each field may stand in the body or in the query.'] : []),
    ...(emits.length === 0 ? [] : [`Emits ${emits.map((name) => `\`${name}\``).join(', ')}.`]),
    ...(maxBody === undefined ? [] : [`Its body has at most ${maxBody / 1024} KiB.`]),
    ...(limit === undefined ? [] : [`At most ${limit.requests} requests per ${limit.perSeconds} seconds.`]),
  ];
  return sentences.length === 0 ? {} : { description: sentences.join('\n\n') };
}

/** In the order in which a reader needs them: what one begins with, and the operator's own at the end. What is not named stands in between. */
const FIRST_SECTIONS = ['Organizations', 'Organization domains', 'User management', 'Authorization'];
const LAST_SECTIONS = ['Events', 'Webhook endpoints', 'Api keys', 'Administration'];

function placeOf(tag: string): number {
  const first = FIRST_SECTIONS.indexOf(tag);
  return first === -1 ? FIRST_SECTIONS.length + 1 + LAST_SECTIONS.indexOf(tag) : first;
}

/** The first word of the path: `organization_domains` is "Organization domains". */
function tagOf({ route }: RegisteredOperation): string {
  if (route!.path.startsWith('/admin/')) return 'Administration';
  const words = route!.path.split('/')[1]!.replaceAll('_', ' ');
  return words[0]!.toUpperCase() + words.slice(1);
}

function pathParameter(field: Field): Json {
  // What names something in a path is never null, and is looked up as it comes.
  const looked =
    field.kind === 'text' ? { type: 'string', maxLength: longestInPath(field) } : withoutProse(fieldSchema({ ...field, nullable: false }, 'request'));
  return { name: field.name, in: 'path', required: true, description: field.doc, schema: looked, example: exampleOfField({ ...field, nullable: false }) };
}

function queryParameter(field: Field): Json {
  const schema = withoutProse(fieldSchema(field.kind === 'list' ? { ...field, maxItems: field.maxItems ?? MAX_QUERY_ITEMS } : field, 'request'));
  const style = field.kind === 'list' && { style: 'form', explode: false };
  return {
    name: field.name,
    in: 'query',
    required: !mayBeAbsent(field),
    description: field.doc,
    schema,
    ...style,
    ...(field.example !== undefined && { example: field.example }),
  };
}

function withoutProse({ description: _description, examples: _examples, ...schema }: Schema): Schema {
  return schema;
}

function answer(operation: RegisteredOperation, components: Components): Json {
  const { options, kind } = operation;
  const { answers } = options;
  const headers = {
    'X-Request-ID': reference('headers', 'RequestId'),
    ...(kind === 'command' && { 'Gatehouse-Position': reference('headers', 'GatehousePosition') }),
    ...(options.cachedFor !== undefined && { 'Cache-Control': reference('headers', 'CacheControl') }),
    ...(options.warns === true && { 'Gatehouse-Warning': reference('headers', 'GatehouseWarning') }),
    ...(takesKey(operation) && { 'Idempotent-Replayed': reference('headers', 'IdempotentReplayed') }),
  };
  if (answers.shape === 'redirect') return { description: 'The browser is sent there.', headers: { ...headers, Location: reference('headers', 'Location') } };
  if (answers.of === null) return { description: 'Done; the answer has no body.', headers };
  const content = { 'application/json': { schema: answerSchema(answers, answers.of, components.nest), example: answerExample(answers, answers.of) } };
  return { description: answers.shape === 'one' ? `The ${wordsOf(answers.of)}.` : 'A page.', headers, content };
}

/** `OrganizationDomain` is "organization domain". */
function wordsOf(type: Class): string {
  return type.name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
}

function answerSchema({ shape }: AnswerShape, type: Class, nest: Nest): Schema {
  const one = nest(type, 'answer');
  switch (shape) {
    case 'array':
      return { type: 'array', items: one };
    case 'list':
      return pageSchema(one, { before: cursorSchema('Give it as `before` for the page before this one; null where nothing precedes it.'), ...NEXT_CURSOR });
    case 'feed':
      return pageSchema(one, NEXT_CURSOR);
    case 'one':
    case 'empty':
    case 'redirect':
      return one;
  }
}

const cursorSchema = (text: string): Schema => ({ type: ['string', 'null'], description: text });
const NEXT_CURSOR = { after: cursorSchema('Give it as `after` for the page that follows this one; null where nothing follows.') };

function pageSchema(items: Schema, cursors: Readonly<Record<string, Schema>>): Schema {
  return {
    type: 'object',
    properties: {
      object: { type: 'string', const: 'list' },
      data: { type: 'array', items },
      list_metadata: { type: 'object', properties: cursors, required: Object.keys(cursors) },
    },
    required: ['object', 'data', 'list_metadata'],
  };
}

function answerExample({ shape }: AnswerShape, type: Class): unknown {
  const one = exampleOf(type);
  if (shape === 'array') return [one];
  if (shape === 'list') return { object: 'list', data: [one], list_metadata: { before: null, after: null } };
  if (shape === 'feed') return { object: 'list', data: [one], list_metadata: { after: one['id'] ?? null } };
  return one;
}

/** What every operation may refuse. */
const COMMON: readonly ErrorCode[] = [
  'bad_request',
  'unauthorized',
  'request_timeout',
  'payload_too_large',
  'uri_too_long',
  'headers_too_large',
  'invalid_request_parameters',
  'position_not_reached',
  'rate_limit_exceeded',
  'internal_error',
  'service_unavailable',
  'storage_full',
  'event_log_damaged',
];

/** What is refused in the words of OAuth where an operation says so. */
const NOT_OF_OAUTH: readonly ErrorCode[] = ['bad_request', 'invalid_request_parameters', 'rate_limit_exceeded'];

function refusals(operation: RegisteredOperation): Readonly<Record<string, Json>> {
  const { path, body } = placesOf(operation);
  // Where nothing fits a filter of a list, the list is empty; one that refuses instead says so.
  const namesSomething = path.length > 0 || body.some((field) => field.kind === 'ref');
  const codes = [
    ...COMMON.filter((code) => !(isPublic(operation) && code === 'unauthorized') && !(operation.options.isOAuth === true && NOT_OF_OAUTH.includes(code))),
    ...(namesSomething ? (['entity_not_found'] as const) : []),
    ...(operation.options.refuses ?? []),
    ...(takesKey(operation) ? (['idempotency_outcome_unknown'] as const) : []),
  ];
  return Object.fromEntries(
    groupedByStatus(codes).map(([status, group]) => {
      const common = Object.entries(COMMON_CODES).find(([, theirs]) => theirs.length === group.length && theirs.every((code) => group.includes(code)));
      return [status, common === undefined ? errorResponse(group) : reference('responses', common[0])];
    }),
  );
}

function groupedByStatus(codes: readonly ErrorCode[]): readonly (readonly [string, readonly ErrorCode[]])[] {
  const groups = new Map<string, Set<ErrorCode>>();
  for (const code of codes) {
    const status = String(ERRORS[code].status);
    groups.set(status, (groups.get(status) ?? new Set()).add(code));
  }
  return [...groups].map(([status, group]) => [status, [...group]] as const).sort(([one], [other]) => compare(one, other));
}

function errorResponse(codes: readonly ErrorCode[]): Json {
  const { status } = ERRORS[codes[0]!];
  return {
    description: codes.map(sentencesOf).join('\n\n'),
    headers: {
      'X-Request-ID': reference('headers', 'RequestId'),
      ...((status === 429 || status === 503) && { 'Retry-After': reference('headers', 'RetryAfter') }),
      ...(status === 429 && RATE_LIMIT_HEADERS),
      ...(status === 401 && { 'WWW-Authenticate': reference('headers', 'Challenge') }),
      ...(status === 405 && { Allow: reference('headers', 'Allow') }),
    },
    content: {
      'application/json': {
        schema: errorSchema(codes),
        examples: Object.fromEntries(codes.map((code) => [code, { value: errorExample(code) }])),
      },
    },
  };
}

/** Some are answered as OAuth has it. */
function errorSchema(codes: readonly ErrorCode[]): Schema {
  const oauth = codes.filter((code) => isOAuth(code) && !isContinuation(code));
  const continuing = codes.filter((code) => isContinuation(code));
  const others = codes.filter((code) => !isOAuth(code) && !isContinuation(code));
  const isInvalid = ERRORS[codes[0]!].status === 422;
  const schemas = [
    ...(others.length === 0
      ? []
      : [{ ...reference('schemas', 'Error'), properties: { code: { enum: others.map(answerOf) } }, ...(isInvalid && { required: ['errors'] }) }]),
    ...(oauth.length === 0 ? [] : [{ ...reference('schemas', 'OAuthError'), properties: { error: { enum: oauth.map(answerOf) } } }]),
    ...continuing.map((code) =>
      isOAuth(code)
        ? { ...reference('schemas', 'SignInContinuation'), properties: { error: { const: code } }, required: ['error', 'error_description'] }
        : { ...reference('schemas', 'SignInContinuation'), properties: { code: { const: code } }, required: ['code'] },
    ),
  ];
  return schemas.length === 1 ? schemas[0]! : { oneOf: schemas };
}

/** As clients know it. */
function answerOf(code: ErrorCode): string {
  return (ERRORS[code] satisfies DeclaredError as DeclaredError).answeredAs ?? code;
}

function isContinuation(code: ErrorCode): boolean {
  return (ERRORS[code] satisfies DeclaredError as DeclaredError).isContinuation === true;
}

function isOAuth(code: ErrorCode): boolean {
  return (ERRORS[code] satisfies DeclaredError as DeclaredError).isOAuth === true;
}

function sentencesOf(code: ErrorCode): string {
  const { doc, comesWith }: DeclaredError = ERRORS[code];
  return `\`${answerOf(code)}\`: ${doc}${comesWith === undefined ? '' : ` Not answered yet: comes with ${comesWith}.`}`;
}

function errorExample(code: ErrorCode): Json {
  if (isOAuth(code)) {
    const token = isContinuation(code) && { pending_authentication_token: 'x4Q0…' };
    return { error: answerOf(code), error_description: ERRORS[code].doc, message: ERRORS[code].doc, ...token };
  }
  if (isContinuation(code)) return { message: ERRORS[code].doc, code, pending_authentication_token: 'x4Q0…' };
  const errors = code === 'invalid_request_parameters' ? [{ code: 'required', field: 'name', message: 'name is required.' }] : [];
  return { message: ERRORS[code].doc, code: answerOf(code), ...(ERRORS[code].status === 422 && { errors }) };
}

const ERROR_SCHEMAS: Readonly<Record<string, Schema>> = {
  Error: {
    type: 'object',
    properties: {
      message: { type: 'string', description: 'For people; may change.' },
      code: { type: 'string', description: 'For programs; never changes.' },
      errors: { type: 'array', items: reference('schemas', 'FieldError'), description: 'Each field that was refused.' },
      entity_id: { type: 'string', description: 'The id that was not found.' },
      role_slug: { type: 'string', description: 'The role that was refused.' },
    },
    required: ['message', 'code'],
  },
  OAuthError: {
    type: 'object',
    properties: {
      error: { type: 'string', description: 'For programs; never changes.' },
      error_description: { type: 'string', description: 'For people; may change.' },
      message: { type: 'string', description: 'The same as `error_description`.' },
    },
    required: ['error', 'error_description', 'message'],
  },
  SignInContinuation: {
    type: 'object',
    properties: {
      message: { type: 'string', description: 'For people; may change.' },
      code: { type: 'string', description: 'What has to be done first.' },
      error: { type: 'string', description: 'Instead of `code`, where the sign-in goes on another way.' },
      error_description: { type: 'string', description: 'Beside `error`: the message.' },
      pending_authentication_token: { type: 'string', description: 'Goes with what is asked for, for ten minutes.' },
      email: { type: 'string', description: 'The address of the user.' },
      email_verification_id: { type: 'string', description: 'The code that was sent.' },
      radar_challenge_id: { type: 'string', description: 'The code that was sent since something speaks against the sign-in.' },
      user: reference('schemas', 'User'),
      organizations: {
        type: 'array',
        items: {
          type: 'object',
          properties: { id: { type: 'string', description: 'The organization.' }, name: { type: 'string', description: 'Its name.' } },
          required: ['id', 'name'],
        },
        description: 'Those that the user may choose.',
      },
      authentication_factors: {
        type: 'array',
        items: {
          type: 'object',
          properties: { id: { type: 'string', description: 'The factor.' }, type: { type: 'string', description: 'What it is.' } },
          required: ['id', 'type'],
        },
        description: 'Of which one is to be proven.',
      },
      authentication_challenge: { ...reference('schemas', 'AuthenticationChallenge'), description: 'Of the first of them that is an authenticator app.' },
      connection_ids: { type: 'array', items: { type: 'string' }, description: 'Connections to identity providers, of which one is to be used.' },
      sso_connection_ids: { type: 'array', items: { type: 'string' }, description: 'Connections to identity providers, of which one may be used.' },
      auth_methods: { type: 'object', additionalProperties: { type: 'boolean' }, description: 'Which ways to sign in the organization allows.' },
    },
    required: ['message'],
  },
  FieldError: {
    type: 'object',
    properties: {
      code: { type: 'string', description: 'What is wrong: `required`, `invalid_type`, `too_long` …' },
      field: { type: 'string', description: 'Path of the field, such as `domain_data.0.domain`; empty for the body itself.' },
      message: { type: 'string', description: 'For people; may change.' },
      instancePath: { type: 'string', description: 'Of an audit event that breaks its schema: where, as a JSON pointer into the event.' },
    },
    required: ['code', 'field', 'message'],
  },
};

const COMMON_CODES: Readonly<Record<string, readonly ErrorCode[]>> = {
  BadRequest: ['bad_request'],
  Unauthorized: ['unauthorized'],
  NotFound: ['entity_not_found'],
  RouteNotFound: ['route_not_found'],
  MethodNotAllowed: ['method_not_allowed'],
  RequestTimeout: ['request_timeout'],
  PayloadTooLarge: ['payload_too_large'],
  UriTooLong: ['uri_too_long'],
  HeadersTooLarge: ['headers_too_large'],
  Invalid: ['invalid_request_parameters', 'position_not_reached'],
  RateLimited: ['rate_limit_exceeded'],
  InternalError: ['internal_error'],
  Unavailable: ['service_unavailable', 'storage_full', 'event_log_damaged'],
};

const RATE_LIMIT_HEADERS = {
  'RateLimit-Limit': reference('headers', 'RateLimitLimit'),
  'RateLimit-Remaining': reference('headers', 'RateLimitRemaining'),
  'RateLimit-Reset': reference('headers', 'RateLimitReset'),
};

const COMMON_RESPONSES = Object.fromEntries(Object.entries(COMMON_CODES).map(([name, codes]) => [name, errorResponse(codes)]));

const HEADERS = {
  RequestId: {
    description: 'Identifies the request in logs: your own id where it has this form, else a new one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
  },
  GatehousePosition: {
    description: 'Where the log stood after the command. A read that sends it sees the command, wherever it is answered.',
    schema: { type: 'string' },
  },
  Location: { description: 'Where the browser goes on.', schema: { type: 'string', format: 'uri' } },
  CacheControl: { description: 'How long the answer may be kept.', schema: { type: 'string' } },
  IdempotentReplayed: {
    description: '`true` where this is the stored answer to an earlier request with the same key.',
    schema: { type: 'string', const: 'true' },
  },
  GatehouseWarning: {
    description: 'What you should know although the command was carried out: a code, and after a semicolon words for people. Not repeated in a stored answer.',
    schema: { type: 'string' },
  },
  RetryAfter: {
    description: 'Seconds after which trying again makes sense. Absent with 429 where it is more than a minute.',
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
  RateLimitLimit: { description: 'How many requests the limit lets through in its time.', schema: { type: 'string', pattern: '^[0-9]+$' } },
  RateLimitRemaining: { description: 'How many more it lets through.', schema: { type: 'string', pattern: '^[0-9]+$' } },
  RateLimitReset: { description: 'Seconds until it is counted from the beginning.', schema: { type: 'string', pattern: '^[0-9]+$' } },
  Challenge: { description: 'How to authenticate.', schema: { type: 'string', const: 'Bearer' } },
  Allow: { description: 'The methods that the path has.', schema: { type: 'string' } },
} as const;

const HEADER_PARAMETERS = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Makes the request safe to repeat: for 24 hours the same key on the same path answers as the first time. `retry-` and a SHA-256 counts as none: it says what is asked, not which request it is.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7E]+$' },
  },
  GatehousePosition: {
    name: 'Gatehouse-Position',
    in: 'header',
    required: false,
    description: 'A position from an earlier answer: this one waits until it sees what that one wrote.',
    schema: { type: 'string' },
  },
  RequestId: {
    name: 'X-Request-ID',
    in: 'header',
    required: false,
    description: 'Your own id for the request: 1 to 64 letters, digits, `_` and `-`. Anything else is replaced by a new one; the answer tells which.',
    schema: { type: 'string' },
  },
} as const;

const webhookHeader = (name: string, text: string) => ({ name, in: 'header', required: true, description: text, schema: { type: 'string' } });
const WEBHOOK_HEADERS = [
  webhookHeader('webhook-id', 'The id of the event: the same at each attempt.'),
  webhookHeader('webhook-timestamp', 'When this attempt was signed, in seconds since the epoch.'),
  webhookHeader('webhook-signature', 'As Standard Webhooks say: `v1,` and a base64 HMAC-SHA256; several, one space apart, while a secret is replaced.'),
  webhookHeader('Gatehouse-Signature', '`t=<milliseconds since the epoch>, v1=<hex HMAC-SHA256 of "<t>.<body>">`, keyed with the whole secret.'),
  webhookHeader('WorkOS-Signature', 'The same value as `Gatehouse-Signature`.'),
];

/** What webhook endpoints receive; events whose slice is not built have no data class yet. */
function webhooks(components: Components): Json {
  const event = components.nest(Event, 'answer');
  return Object.fromEntries(
    [...WEBHOOK_EVENT_NAMES].sort(compare).flatMap((name) => {
      const type = eventDataOf(name);
      if (type === null) return [];
      const schema = { ...event, properties: { event: { const: name }, data: components.nest(type, 'answer') } };
      const example = { ...exampleOf(Event), event: name, data: exampleOf(type) };
      const post = {
        summary: `\`${name}\` happened`,
        tags: ['Webhooks'],
        security: [],
        parameters: WEBHOOK_HEADERS,
        requestBody: { required: true, content: { 'application/json': { schema, example } } },
        responses: { '2XX': { description: 'Received. Anything else is tried again later.' } },
      };
      return [[name, { post }]];
    }),
  );
}

function reference(kind: 'schemas' | 'responses' | 'parameters' | 'headers', name: string): Schema {
  return { $ref: `#/components/${kind}/${name}` };
}

function routeKey({ route }: RegisteredOperation): string {
  return `${route!.path} ${route!.method}`;
}
