import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { webhookEndpointDecider, type StoredWebhookEndpoint } from '../domain/webhook-endpoint.decider.ts';

/** The signing secrets of endpoints, which lie sealed in log and rows. */
@Injectable()
export class EndpointSecrets {
  constructor(private readonly vault: Vault) {}

  /** A new secret, sealed. Standard base64, since readers of Standard Webhooks refuse the other alphabet. */
  make(environment: string, endpointId: string): Promise<string> {
    return this.vault.seal(`whsec_${randomBytes(32).toString('base64')}`, placeOf(environment, endpointId));
  }

  current(environment: string, { id, secret }: StoredWebhookEndpoint): Promise<string> {
    return this.vault.open(secret, placeOf(environment, id));
  }

  /** The one that was replaced, while it goes on working. */
  async previous(environment: string, endpoint: StoredWebhookEndpoint, now: number): Promise<{ readonly secret: string; readonly until: number } | null> {
    const { id, previous_secret, previous_secret_expires_at } = endpoint;
    if (previous_secret === null || previous_secret_expires_at === null) return null;
    const until = Date.parse(previous_secret_expires_at);
    return until <= now ? null : { secret: await this.vault.open(previous_secret, placeOf(environment, id)), until };
  }
}

function placeOf(environment: string, endpointId: string) {
  return { stream: streamName(webhookEndpointDecider.category, environment, endpointId), field: 'secret' };
}
