import { feature } from '#libs/runtime/src/feature';
import { apiKeyDecider, type ApiKeyEvent } from '../domain/api-key.decider.ts';
import { apiKeysView } from '../views/api-keys.view.ts';
import { knownPermissionsView } from '../views/known-permissions.view.ts';
import { ApiKeys, LAST_USED } from './api-keys.ts';

export const apiKeys = feature({
  deciders: [apiKeyDecider],
  views: [apiKeysView, knownPermissionsView],
  providers: [ApiKeys],
  stamps: [{ stamp: LAST_USED, endsWith: ['api_key.revoked' satisfies ApiKeyEvent['type']] }],
  removals: ['api_key.revoked' satisfies ApiKeyEvent['type']],
});
