import { environmentVariables } from '#libs/platform/src/config/environment';
import type { Certified } from './certificates.ts';
import { WebhookReceiver } from './webhook-receiver.ts';

/** A receiver that the suite of this file may send webhooks to. */
export async function givenWebhookReceiver(): Promise<WebhookReceiver> {
  return WebhookReceiver.listen(await certificateOfReceivers());
}

/** What receivers on this machine show: in production mode they are reached only over TLS, with a certificate that the cluster believes. Null: they are reached in clear. */
export async function certificateOfReceivers(): Promise<Certified | null> {
  if (environmentVariables()['SUITE'] !== 'processes') return null;
  const { SharedCluster } = await import('./cluster/shared-cluster.ts');
  return (await SharedCluster.get()).certificateOfReceivers();
}
