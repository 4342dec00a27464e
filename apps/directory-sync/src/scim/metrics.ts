import { Injectable } from '@nestjs/common';
import { Metrics } from '#libs/platform/src/metrics';

/** What is asked of one resource, and of all of a kind, by method. */
const OF_ONE: Readonly<Record<string, string>> = { GET: 'get', PUT: 'replace', PATCH: 'patch', DELETE: 'delete' };
const OF_ALL: Readonly<Record<string, string>> = { GET: 'list', POST: 'create' };
const KINDS: Readonly<Record<string, string>> = { Users: 'user', Groups: 'group' };
const DISCOVERY: ReadonlySet<string> = new Set(['ServiceProviderConfig', 'ResourceTypes', 'Schemas']);
/** Why a request was refused, where its `scimType` does not say. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  405: 'method',
  408: 'timeout',
  409: 'conflict',
  412: 'version',
  413: 'too_large',
  414: 'too_large',
  415: 'media_type',
  429: 'limited',
  431: 'too_large',
  501: 'unsupported',
  503: 'unavailable',
};

interface Answered {
  readonly status: number;
  readonly scimType: unknown;
  readonly milliseconds: number;
}

/** Rates and durations of what comes by SCIM, and why it was refused. No label names a directory: there may be very many. */
@Injectable()
export class ScimMetrics {
  private readonly requests;
  private readonly durations;
  private readonly refusals;

  constructor(metrics: Metrics) {
    this.requests = metrics.counter({
      name: 'scim_requests_total',
      help: 'SCIM requests answered, by operation and class of status.',
      labels: ['operation', 'status'],
    });
    this.durations = metrics.histogram({
      name: 'scim_request_duration_seconds',
      help: 'From the arrival of a SCIM request to its answer, by operation.',
      labels: ['operation'],
    });
    this.refusals = metrics.counter({ name: 'scim_refusals_total', help: 'SCIM requests refused, by reason.', labels: ['reason'] });
  }

  answered(method: string, segments: readonly string[], { status, scimType, milliseconds }: Answered): void {
    const operation = operationOf(method, segments);
    this.requests.inc({ operation, status: `${Math.floor(status / 100)}xx` });
    this.durations.observe({ operation }, milliseconds / 1_000);
    if (status >= 400) this.refusals.inc({ reason: typeof scimType === 'string' ? scimType : (REASONS[status] ?? 'failed') });
  }
}

/** One of a few words, whatever was asked. */
function operationOf(method: string, [kind = '', id, more]: readonly string[]): string {
  if (more !== undefined) return 'other';
  if (DISCOVERY.has(kind)) return method === 'GET' ? 'discover' : 'other';
  if (kind === '' || kind === '.search') return method === (kind === '' ? 'GET' : 'POST') && id === undefined ? 'search' : 'other';
  const of = KINDS[kind];
  if (of === undefined) return 'other';
  if (id === '.search') return method === 'POST' ? `list_${of}s` : 'other';
  const verb = (id === undefined ? OF_ALL : OF_ONE)[method];
  return verb === undefined ? 'other' : `${verb}_${of}${verb === 'list' ? 's' : ''}`;
}
