import type { Clock } from '#libs/platform/src/clock';
import type { Metrics } from '#libs/platform/src/metrics';
import type { Target } from '../targets/endpoint-directory.ts';
import { signedHeaders, type SigningKeys } from '#libs/messaging/src/webhooks/signature';
import { deliveryId, isSuccess, type Attempted, type SentEvent } from './delivery.ts';
import type { ResponseExcerpts } from './response-excerpts.ts';
import type { Answer, WebhookSender } from '#libs/messaging/src/webhooks/webhook-sender';

/** How a receiver says that it cannot verify a signature. */
const UNVERIFIED: readonly (number | null)[] = [400, 401, 403];

interface Needs {
  readonly sender: WebhookSender;
  readonly excerpts: ResponseExcerpts;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** The word before `-Signature` in the header that existing SDKs verify. */
  readonly vendorWord: string;
}

/** Signs and sends: one request, or two while a secret is being replaced. What they answered comes back with its excerpt sealed. */
export class WebhookAttempts {
  private readonly outcomes;
  private readonly durations;

  constructor(private readonly needs: Needs) {
    const { metrics } = needs;
    this.outcomes = metrics.counter({
      name: 'webhook_attempts_total',
      help: 'Requests to webhook receivers: delivered, rejected by their answer, or unanswered.',
      labels: ['outcome'],
    });
    this.durations = metrics.histogram({ name: 'webhook_attempt_seconds', help: 'How long webhook receivers took.' });
  }

  async send(target: Target, event: SentEvent): Promise<readonly Attempted[]> {
    const { keys } = target;
    const previous = target.previous !== null && target.previous.until > this.needs.clock.now() ? target.previous.keys : null;
    if (previous === null) return [await this.request(target, event, keys, [keys])];
    const first = await this.request(target, event, previous, [keys, previous]);
    if (!UNVERIFIED.includes(first.answer.status)) return [first];
    return [first, await this.request(target, event, keys, [keys, previous])];
  }

  /** Readers of the vendor's header take one signature, so the caller picks whose. */
  private async request(target: Target, event: SentEvent, vendor: SigningKeys, standard: readonly SigningKeys[]): Promise<Attempted> {
    const { id, body } = event;
    const startedAt = this.needs.clock.now();
    const answer = await this.needs.sender.send({
      url: target.url,
      body,
      headers: signedHeaders({ eventId: id, body, now: startedAt }, { vendor, valid: standard, vendorWord: this.needs.vendorWord }),
    });
    const latency = Math.max(0, this.needs.clock.now() - startedAt);
    this.outcomes.inc({ outcome: outcomeOf(answer) });
    this.durations.observe(latency / 1000);
    const excerpt = await this.needs.excerpts.sealed(target.environment, deliveryId(target.id, id), answer.excerpt, event);
    return { startedAt, latency, answer: { ...answer, excerpt } };
  }
}

function outcomeOf(answer: Answer): string {
  if (isSuccess(answer)) return 'delivered';
  return answer.status === null ? 'unanswered' : 'rejected';
}
