import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Chance } from '../chance.ts';
import { Access } from './access.ts';
import type { Change, Request, Unanswered } from './request.ts';

/** The deadline of a request, and a machine that is busy. */
const LONGEST = 15_000;
/** So many of the latest organizations get members, resources and roles. */
const RICH = 2;

/** What was acknowledged of one organization. */
export interface Remembered {
  readonly id: string;
  /** Told apart by it: no two organizations are given the same. */
  readonly marker: string;
  name: string;
  isDeleted: boolean;
  readonly domains: { readonly id: string; readonly domain: string }[];
  readonly changes: Change[];
  /** Actions of its audit events, no two of them the same. */
  readonly trail: string[];
  /** Exports of its audit trail, with how many events were acknowledged before each was asked for. */
  readonly exports: { readonly id: string; readonly events: number }[];
  /** Who may do what in it. */
  readonly access: Access;
}

export interface Tally {
  acknowledged: number;
  unanswered: number;
  retried: number;
  abandoned: number;
}

/** Sends one request after the other until the server is gone, and remembers what was answered. */
export class Customer {
  readonly organizations: Remembered[] = [];
  /** Markers of creations that were neither answered nor tried again: they may have happened, but then wholly. */
  readonly abandoned: string[] = [];
  private unanswered: Unanswered | null = null;

  constructor(
    private readonly number: number,
    private readonly tally: Tally,
    private readonly chance: Chance,
  ) {}

  /** Until a request is not answered. */
  async work(url: string, key: string): Promise<void> {
    for (;;) {
      const { request, answered } = this.next();
      const answer = await send(url, key, request).catch(() => null);
      if (answer === null) {
        this.tally.unanswered++;
        this.unanswered = { request, answered };
        return;
      }
      expectStatus(request, answer.status);
      this.tally.acknowledged++;
      answered(answer.body);
    }
  }

  /** Sends what was not answered once more, unchanged: it must find itself done, or be done now. Sometimes nobody comes back to ask. */
  async retry(url: string, key: string): Promise<void> {
    if (this.unanswered === null) return;
    const { request, answered } = this.unanswered;
    this.unanswered = null;
    const marker = request.path === '/organizations' ? (request.body as { readonly external_id: string }).external_id : undefined;
    if (marker !== undefined && this.chance.below(4) === 0) {
      this.tally.abandoned++;
      this.abandoned.push(marker);
      return;
    }
    // A deletion without a key may have happened the first time.
    const again = request.method === 'DELETE' ? { ...request, expected: [...request.expected, 404] } : request;
    const answer = await send(url, key, again);
    expectStatus(again, answer.status);
    this.tally.retried++;
    answered(answer.body);
  }

  /**
   * Until `signal` aborts: asks whichever address is named next, and asks again, unchanged, for as long as nobody can tell. No change is sent before the one before it was answered.
   * @throws Error when an answer is wrong, comes too late, or does not say when to ask again
   */
  async carryOn(url: () => string, key: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { request, answered } = this.next();
      for (let tries = 1; ; tries++) {
        const began = performance.now();
        const answer = await send(url(), key, request).catch(() => null);
        if (performance.now() - began > LONGEST) throw new Error(`${request.method} ${request.path} was answered after ${performance.now() - began} ms.`);
        if (answer !== null && answer.status !== 503) {
          // A deletion without a key may have happened at an earlier try.
          if (!(tries > 1 && request.method === 'DELETE' && answer.status === 404)) expectStatus(request, answer.status);
          this.tally.acknowledged++;
          answered(answer.body);
          break;
        }
        if (answer?.retryAfter === null) throw new Error(`${request.method} ${request.path} was answered 503 without Retry-After.`);
        this.tally.retried++;
        await pause(100);
      }
    }
  }

  private next(): Unanswered {
    const living = this.organizations.filter(({ isDeleted }) => !isDeleted);
    const one = living[this.chance.below(Math.max(1, living.length))];
    const dice = this.chance.below(25);
    if (one === undefined || dice < 4) return this.create();
    if (dice < 6) return this.rename(one);
    if (dice < 8) return this.addDomain(one);
    if (dice === 24) return this.export(one);
    if (dice >= 20) return this.tell(one);
    // Few of them have much, rather than all of them little.
    return dice < 9 ? this.delete(one) : living.slice(-RICH)[this.chance.below(Math.min(RICH, living.length))]!.access.next();
  }

  private create(): Unanswered {
    const marker = randomUUID();
    const name = `Customer ${this.number} ${marker}`;
    return {
      request: {
        method: 'POST',
        path: '/organizations',
        body: { name, external_id: marker, metadata: { number: String(this.number) } },
        key: randomUUID(),
        expected: [201],
      },
      answered: (body) => {
        const id = body!.id!;
        const changes: Change[] = [{ event: 'organization.created', about: id, recognise: () => true }];
        this.organizations.push({
          id,
          marker,
          name,
          isDeleted: false,
          domains: [],
          changes,
          trail: [],
          exports: [],
          access: new Access(id, changes, this.chance),
        });
      },
    };
  }

  private rename(one: Remembered): Unanswered {
    const name = `Renamed ${randomUUID()}`;
    return {
      request: { method: 'PUT', path: `/organizations/${one.id}`, body: { name }, expected: [200] },
      answered: () => {
        one.name = name;
        one.changes.push({ event: 'organization.updated', about: one.id, recognise: (data) => data.name === name });
      },
    };
  }

  private addDomain(one: Remembered): Unanswered {
    const domain = `${randomUUID()}.test`;
    return {
      request: { method: 'POST', path: '/organization_domains', body: { domain, organization_id: one.id }, key: randomUUID(), expected: [201] },
      answered: (body) => {
        const id = body!.id!;
        one.domains.push({ id, domain });
        one.changes.push({ event: 'organization_domain.created', about: id, recognise: () => true });
      },
    };
  }

  /** What comes without a key is known by what it says. */
  private tell(one: Remembered): Unanswered {
    const action = `told.${randomUUID()}`;
    const event = {
      action,
      occurred_at: new Date().toISOString(),
      actor: { id: String(this.number), type: 'customer' },
      targets: [],
      context: { location: '' },
    };
    const key = this.chance.below(2) === 0 && { key: randomUUID() };
    return {
      request: { method: 'POST', path: '/audit_logs/events', body: { organization_id: one.id, event }, ...key, expected: [200] },
      answered: () => one.trail.push(action),
    };
  }

  /** Too many that wait are refused. */
  private export(one: Remembered): Unanswered {
    const [range_start, range_end] = [-1, 1].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString());
    const body = { organization_id: one.id, range_start, range_end, format: 'ndjson' };
    const events = one.trail.length;
    return {
      request: { method: 'POST', path: '/audit_logs/exports', body, key: randomUUID(), expected: [201, 429] },
      answered: (answer) => {
        if (answer?.id !== undefined) one.exports.push({ id: answer.id, events });
      },
    };
  }

  private delete(one: Remembered): Unanswered {
    return {
      request: { method: 'DELETE', path: `/organizations/${one.id}`, expected: [202] },
      answered: () => {
        one.isDeleted = true;
        one.changes.push({ event: 'organization.deleted', about: one.id, recognise: () => true });
      },
    };
  }
}

function expectStatus({ method, path, expected }: Request, status: number): void {
  if (!expected.includes(status)) throw new Error(`${method} ${path} was answered ${status}, expected ${expected.join(' or ')}.`);
}

async function send(
  url: string,
  key: string,
  { method, path, body, key: idempotencyKey }: Request,
): Promise<{ readonly status: number; readonly retryAfter: string | null; readonly body: { readonly id?: string } | null }> {
  const response = await fetch(url + path, {
    method,
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body && { 'Content-Type': 'application/json' }),
      ...(idempotencyKey && { 'Idempotency-Key': idempotencyKey }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    retryAfter: response.headers.get('Retry-After'),
    body: text === '' ? null : (JSON.parse(text) as { readonly id?: string }),
  };
}
