import { hash } from 'node:crypto';
import type { AuditLogStreamType } from '#libs/contracts/src/audit-log-streams/audit-log-stream';
import { signedHeaders, signingKeysOfAny } from '#libs/messaging/src/webhooks/signature';
import type { Answer, Request } from '#libs/messaging/src/webhooks/webhook-sender';
import type { StoredStream, StreamSettings } from '../domain/audit-stream.decider.ts';
import type { Batch, StreamedItem } from './stream-batches.ts';

/** What came of a request. `invalid`: not before somebody corrects something. `error`: a word from a closed set, or the system's code. */
export type Outcome =
  { readonly isDelivered: true } | { readonly isDelivered: false; readonly state: 'error' | 'invalid'; readonly error: string; readonly isTooLarge: boolean };

interface Sending {
  readonly stream: StoredStream;
  readonly batch: Batch;
  /** In clear. */
  readonly secret: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly vendorWord: string;
}

interface Receiver {
  readonly request: (sending: Sending) => Request;
  readonly outcomeOf: (answer: Answer) => Outcome;
  /** Where its URL can be none of such a receiver: why, as the end of a sentence. */
  readonly problemOf: (url: URL) => string | null;
}

/** By what streams say that they are sent to. */
export const RECEIVERS: Readonly<Record<AuditLogStreamType, Receiver>> = {
  GenericHttps: { request: signedRequest, outcomeOf, problemOf: () => null },
  Splunk: { request: collectorRequest, outcomeOf: collectorOutcome, problemOf: ({ search }) => (search === '' ? null : 'must not have a query') },
};

const DELIVERED: Outcome = { isDelivered: true };
const COLLECTOR_PATH = '/services/collector/event';
const SOURCE = 'gatehouse';
const SOURCE_TYPE = 'gatehouse:audit';
/** Codes that the collector documents: what it wants of somebody, */
const WRONG: Readonly<Record<number, string>> = {
  1: 'token_disabled',
  2: 'token_required',
  3: 'invalid_authorization',
  4: 'invalid_token',
  7: 'incorrect_index',
  10: 'data_channel_missing',
  11: 'invalid_data_channel',
};
/** and what it says of the moment, or of what it was sent. */
const FAILED: Readonly<Record<number, string>> = { 6: 'invalid_data_format', 8: 'internal_server_error', 9: 'server_busy' };

function signedRequest({ stream, batch, secret, now, vendorWord }: Sending): Request {
  const { id, items } = batch;
  const body = JSON.stringify({ id, object: 'audit_log_batch', stream_id: stream.id, organization_id: stream.organization_id, data: items });
  const keys = signingKeysOfAny(secret);
  return { url: new URL(stream.url), body, headers: signedHeaders({ eventId: id, body, now }, { vendor: keys, valid: [keys], vendorWord }) };
}

function outcomeOf({ status, error }: Answer): Outcome {
  if (status === null) return failed(error === 'address_not_allowed' ? 'invalid' : 'error', error ?? 'connection_failed');
  if (status >= 200 && status < 300) return DELIVERED;
  if (status >= 300 && status < 400) return failed('invalid', 'redirect_not_followed');
  if (status === 401 || status === 403 || status === 410) return failed('invalid', 'status_not_successful');
  return failed('error', 'status_not_successful', status === 413);
}

function collectorRequest({ stream, batch, secret }: Sending): Request {
  const body = batch.items.map((item) => JSON.stringify(collectorEvent(stream, item))).join('');
  const headers = {
    authorization: `Splunk ${secret}`,
    'content-type': 'application/json',
    'user-agent': 'Gatehouse-Webhooks',
    // Asked of tokens whose indexers acknowledge; others pass over it.
    'x-splunk-request-channel': channelOf(stream.id),
    'webhook-id': batch.id,
  };
  return { url: collectorUrl(stream.url), body, headers };
}

function collectorUrl(text: string): URL {
  const url = new URL(text);
  const path = url.pathname.replace(/\/+$/, '');
  if (!path.endsWith(COLLECTOR_PATH)) url.pathname = path + COLLECTOR_PATH;
  return url;
}

/** `fields` are flat texts, by which Splunk finds events without reading them. */
function collectorEvent({ index, source, sourcetype, organization_id }: StreamSettings & { readonly organization_id: string }, item: StreamedItem): object {
  const time = Date.parse(item.object === 'audit_log_event' ? item.occurred_at : item.created_at) / 1_000;
  const told =
    item.object === 'audit_log_event' ? { action: item.action, actor_id: item.actor.id, actor_type: item.actor.type, leaf_index: String(item.leaf_index) } : {};
  return {
    time,
    source: source ?? SOURCE,
    sourcetype: sourcetype ?? SOURCE_TYPE,
    ...(index !== null && { index }),
    event: item,
    fields: { object: item.object, organization_id, ...told },
  };
}

/** A UUID that is always that of the stream. */
function channelOf(id: string): string {
  const digest = hash('sha256', id, 'hex');
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}

/** Nothing but its own word is an acknowledgement: a proxy that answers 200 with a page has taken nothing. */
function collectorOutcome(answer: Answer): Outcome {
  const code = codeOf(answer.excerpt);
  if (answer.status === 200 && code === 0) return DELIVERED;
  if (answer.status !== null && code !== null && code in WRONG) return failed('invalid', WRONG[code]!);
  if (answer.status !== null && code !== null && code in FAILED) return failed('error', FAILED[code]!);
  const outcome = outcomeOf(answer);
  return outcome.isDelivered ? failed('error', 'not_acknowledged') : outcome;
}

function codeOf(excerpt: string | null): number | null {
  try {
    const { code } = JSON.parse(excerpt ?? '') as { readonly code?: unknown };
    return typeof code === 'number' ? code : null;
  } catch {
    return null;
  }
}

function failed(state: 'error' | 'invalid', error: string, isTooLarge = false): Outcome {
  return { isDelivered: false, state, error, isTooLarge };
}
