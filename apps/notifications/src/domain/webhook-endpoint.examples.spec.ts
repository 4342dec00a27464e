import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { webhookEndpointsView } from '../views/webhook-endpoints.view.ts';
import { webhookEndpointDecider } from './webhook-endpoint.decider.ts';

describe('the log of a webhook endpoint', () =>
  itReadsStoredExamples(webhookEndpointDecider, webhookEndpointsView.handles, new URL('webhook-endpoint.examples.json', import.meta.url)));
