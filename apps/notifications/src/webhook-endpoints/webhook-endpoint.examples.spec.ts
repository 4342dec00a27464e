import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { webhookEndpointDecider } from './webhook-endpoint.decider.ts';
import { webhookEndpointsView } from './webhook-endpoints.view.ts';

describe('the log of a webhook endpoint', () =>
  itReadsStoredExamples(webhookEndpointDecider, webhookEndpointsView.handles, new URL('webhook-endpoint.examples.json', import.meta.url)));
