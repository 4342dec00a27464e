import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { signedHeaders, signingKeysOfAny } from '#libs/messaging/src/webhooks/signature';
import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { WebhookSender, type Answer } from '#libs/messaging/src/webhooks/webhook-sender';
import { Clock } from '#libs/platform/src/clock';
import { escapedHtml } from '#libs/platform/src/escaped-html';
import { WebhookSettings } from '#libs/platform/src/config/settings';
import { environmentSettingsDecider, type StoredSettings } from '../domain/environment-settings.decider.ts';
import { DevelopmentMailbox } from '../mailbox/development-mailbox.ts';
import { SmsTransport, type Outcome, type Text } from './sms-transport.ts';

/** Of the answers 4xx these are about the moment; the others are about the text. */
const LATER: readonly number[] = [408, 425, 429];

/** The webhook of an environment; of development mode without one, the mailbox. */
@Injectable()
export class WebhookSmsTransport extends SmsTransport implements OnApplicationShutdown {
  private readonly sender: WebhookSender;

  constructor(
    private readonly settings: WebhookSettings,
    private readonly vault: Vault,
    private readonly mailbox: DevelopmentMailbox,
    private readonly clock: Clock,
    rule: TargetRule,
  ) {
    super();
    this.sender = new WebhookSender({ rule, timeout: settings.WEBHOOK_TIMEOUT });
  }

  /** After what is on its way has arrived. */
  onApplicationShutdown(): Promise<void> {
    return this.sender.close();
  }

  async send(text: Text, { webhook_url, webhook_secret }: Pick<StoredSettings['sms'], 'webhook_url' | 'webhook_secret'>): Promise<Outcome> {
    if (webhook_url === null) return this.show(text);
    if (webhook_secret === null) return { outcome: 'refused', reason: 'no_secret' };
    const { id, environment, to, ...others } = text;
    const place = { stream: streamName(environmentSettingsDecider.category, environment, environment), field: 'sms.webhook_secret' };
    const keys = signingKeysOfAny(await this.vault.open(webhook_secret, place));
    const now = this.clock.now();
    const data = { object: 'sms', environment_id: environment, phone_number: to, ...others };
    const body = JSON.stringify({ id, event: 'sms.requested', data, created_at: new Date(now).toISOString() });
    const answer = await this.sender.send({
      url: new URL(webhook_url),
      body,
      headers: signedHeaders({ eventId: id, body, now }, { vendor: keys, valid: [keys], vendorWord: this.settings.VENDOR_WORD }),
    });
    return outcomeOf(answer);
  }

  private show({ id, to, text }: Text): Outcome {
    const html = `<!doctype html><p>${escapedHtml(text)}</p>`;
    this.mailbox.put({ id, to, from: { name: 'Gatehouse', address: 'sms' }, subject: 'Text message', text, html });
    return { outcome: 'sent' };
  }
}

function outcomeOf({ status, error, retryAfter }: Answer): Outcome {
  if (status !== null && status >= 200 && status < 300) return { outcome: 'sent' };
  const reason = error ?? String(status);
  const isFinal = error === 'address_not_allowed' || (status !== null && status < 500 && !LATER.includes(status));
  return isFinal ? { outcome: 'refused', reason } : { outcome: 'again', reason, ...(retryAfter !== null && { wait: retryAfter }) };
}
