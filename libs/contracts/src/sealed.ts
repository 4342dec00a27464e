import { EnvironmentKeyWithValue } from './environments/environment.ts';
import type { Class } from './operation.ts';
import { WebhookEndpoint } from './webhook-endpoints/webhook-endpoint.ts';

/** Classes of resources whose facts hold secret fields, by what their event types begin with: the log takes them sealed only. */
export const WITH_SECRETS: Readonly<Record<string, Class>> = { environment_key: EnvironmentKeyWithValue, webhook_endpoint: WebhookEndpoint };
