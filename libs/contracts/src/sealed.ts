import { EnvironmentKeyWithValue } from './environments/environment.ts';
import type { Class } from './operation.ts';
import { UserWithPassword } from './users/user.ts';
import { WebhookEndpoint } from './webhook-endpoints/webhook-endpoint.ts';

/**
 * Classes of resources whose facts hold personal or secret fields, by what their event types begin with. Every process that reads the log opens them, whoever recorded
 * them: the feed and the webhooks tell what other services know.
 */
export const SEALED: Readonly<Record<string, Class>> = { environment_key: EnvironmentKeyWithValue, user: UserWithPassword, webhook_endpoint: WebhookEndpoint };
