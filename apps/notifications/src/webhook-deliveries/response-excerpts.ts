import { Injectable } from '@nestjs/common';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { isSealed, Vault, type Place } from '#libs/event-sourcing/src/sealing/vault';
import type { StoredDelivery } from './delivery.ts';

/** How a receiver's answer began may hold anything: it is stored sealed for its environment, since backups hold deliveries, and is opened for who may see it. */
@Injectable()
export class ResponseExcerpts {
  constructor(private readonly vault: Vault) {}

  async sealed(environment: string, deliveryId: string, excerpt: string | null): Promise<string | null> {
    if (excerpt === null) return null;
    // The webhook was sent: where it cannot be sealed, it is left out rather than sent again.
    return this.vault.seal(excerpt, placeOf(environment, deliveryId)).catch(() => null);
  }

  /** Only to be shown: it is stored as it was. */
  async opened(environment: string, delivery: StoredDelivery): Promise<StoredDelivery> {
    const attempts = await Promise.all(
      delivery.attempts.map(async (attempt) => {
        const { response_excerpt: excerpt } = attempt;
        // Earlier releases stored it in clear.
        return isSealed(excerpt) ? { ...attempt, response_excerpt: await this.vault.open(excerpt, placeOf(environment, delivery.id)) } : attempt;
      }),
    );
    return { ...delivery, attempts };
  }
}

function placeOf(environment: string, deliveryId: string): Place {
  return { stream: streamName('webhook_delivery', environment, deliveryId), field: 'response_excerpt' };
}
