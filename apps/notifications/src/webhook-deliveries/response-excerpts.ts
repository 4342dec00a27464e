import { Injectable } from '@nestjs/common';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { holdersNamedIn } from '#libs/event-sourcing/src/sealing/holders';
import { isQuotingSealed, Vault, type Place } from '#libs/event-sourcing/src/sealing/vault';
import type { SentEvent, StoredDelivery } from './delivery.ts';

/**
 * How a receiver's answer began may hold anything, and what it was sent among it: it is stored sealed for its environment, since backups hold deliveries, and for whom the event
 * is about, and is opened for who may see it.
 */
@Injectable()
export class ResponseExcerpts {
  constructor(private readonly vault: Vault) {}

  async sealed(environment: string, deliveryId: string, excerpt: string | null, { body, holders }: SentEvent): Promise<string | null> {
    if (excerpt === null) return null;
    const told = [...new Set([...holders, ...holdersNamedIn(body)])];
    // The webhook was sent: where it cannot be sealed, it is left out rather than sent again.
    return this.vault.sealQuoting(excerpt, placeOf(environment, deliveryId), told).catch(() => null);
  }

  /** Only to be shown: it is stored as it was. */
  async opened(environment: string, delivery: StoredDelivery): Promise<StoredDelivery> {
    const attempts = await Promise.all(
      delivery.attempts.map(async (attempt) => {
        const { response_excerpt: excerpt } = attempt;
        // Earlier releases stored it in clear.
        if (!isQuotingSealed(excerpt)) return attempt;
        return { ...attempt, response_excerpt: await this.vault.openQuoting(excerpt, placeOf(environment, delivery.id)) };
      }),
    );
    return { ...delivery, attempts };
  }
}

function placeOf(environment: string, deliveryId: string): Place {
  return { stream: streamName('webhook_delivery', environment, deliveryId), field: 'response_excerpt' };
}
