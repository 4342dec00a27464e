import { Ajv } from 'ajv';
import type { Answered, Received } from './stream-receiver.ts';

/** What Splunk documents of an event that is sent to `/services/collector/event` ("Format events for HTTP Event Collector"). */
const EVENT = {
  type: 'object',
  additionalProperties: false,
  required: ['time', 'source', 'sourcetype', 'event', 'fields'],
  properties: {
    // Seconds since the epoch, with up to three decimals, which only the text says.
    time: { type: 'number', minimum: 1_000_000_000, maximum: 9_999_999_999 },
    host: { type: 'string', minLength: 1 },
    source: { type: 'string', minLength: 1 },
    sourcetype: { type: 'string', minLength: 1 },
    index: { type: 'string', minLength: 1 },
    event: { type: 'object', minProperties: 1 },
    // Flat: texts, or lists of texts.
    fields: { type: 'object', additionalProperties: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] } },
  },
} as const;
const isEvent = new Ajv({ strict: false }).compile<CollectorEvent>(EVENT);

interface CollectorEvent {
  readonly time: number;
  readonly index?: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an event, it also asserts
  readonly event: any;
  readonly fields: Readonly<Record<string, string>>;
}

/** An HTTP Event Collector, as far as its documents say what it takes and answers. */
export class EventCollector {
  readonly taken: CollectorEvent[] = [];

  constructor(
    private readonly token: string,
    private readonly indexes: readonly string[],
  ) {}

  answer({ method, path, headers, body }: Received): Answered {
    if (method !== 'POST' || path !== '/services/collector/event')
      return { status: 404, text: '{"text":"The requested URL was not found on this server.","code":404}' };
    const { authorization, 'x-splunk-request-channel': channel } = headers;
    if (authorization === undefined) return said(401, 2, 'Token is required');
    const [scheme, token] = authorization.split(' ');
    if (scheme !== 'Splunk' || token === undefined) return said(401, 3, 'Invalid authorization');
    if (token !== this.token) return said(403, 4, 'Invalid token');
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(String(channel))) return said(400, 10, 'Data channel is missing');
    if (body === '') return said(400, 5, 'No data');
    const events: CollectorEvent[] = [];
    for (const text of concatenated(body)) {
      const event: unknown = JSON.parse(text);
      if (!isEvent(event) || !/^\d{10}(\.\d{1,3})?$/.test(String(event.time))) return said(400, 6, 'Invalid data format');
      if (event.index !== undefined && !this.indexes.includes(event.index)) return said(400, 7, 'Incorrect index');
      events.push(event);
    }
    this.taken.push(...events);
    return said(200, 0, 'Success');
  }
}

export function said(status: number, code: number, text: string): Answered {
  return { status, text: JSON.stringify({ text, code }) };
}

/** Objects of JSON, one right behind the other. */
function* concatenated(body: string): Generator<string> {
  for (let [at, start, depth, isText] = [0, 0, 0, false]; at < body.length; at += 1) {
    const character = body[at];
    if (isText) {
      if (character === '\\') at += 1;
      else if (character === '"') isText = false;
      continue;
    }
    if (character === '"') isText = true;
    if (character === '{') depth += 1;
    if (character !== '}') continue;
    depth -= 1;
    if (depth > 0) continue;
    yield body.slice(start, at + 1);
    start = at + 1;
  }
}
