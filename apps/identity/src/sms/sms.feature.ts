import { feature } from '#libs/runtime/src/feature';
import { SendCodesBySms } from './send-codes-by-sms.ts';
import { SmsTransport } from './sms-transport.ts';
import { WebhookSmsTransport } from './webhook.sms-transport.ts';

export const sms = feature({ providers: [{ provide: SmsTransport, useClass: WebhookSmsTransport }], reactions: [SendCodesBySms] });
