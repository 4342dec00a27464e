import { readFileSync } from 'node:fs';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { WebhookReceiver } from './webhook-receiver.ts';

/** A receiver that the suite of this file may send webhooks to: in production mode only over TLS, with a certificate that it believes. */
export async function givenWebhookReceiver(): Promise<WebhookReceiver> {
  if (environmentVariables()['SUITE'] !== 'processes') return WebhookReceiver.listen();
  const { SharedCluster } = await import('./cluster/shared-cluster.ts');
  const { tls } = await SharedCluster.get();
  return WebhookReceiver.listen(tls === null ? undefined : { cert: readFileSync(tls.cert, 'utf8'), key: readFileSync(tls.key, 'utf8') });
}
