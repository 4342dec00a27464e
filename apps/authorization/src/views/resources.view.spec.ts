import type { Decider } from '#libs/event-sourcing/src/deciding/decider';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import type { ResourceEvent } from '../domain/resource.events.ts';
import { resourcesView, type ResourceRow } from './resources.view.ts';

type Rows = Readonly<Record<string, ResourceRow | null>>;

/** What the view makes of the events. */
const rows: Decider<Rows, ResourceEvent> = {
  category: 'resource_tree',
  foldVersion: 1,
  initial: {},
  sealed: {
    'resource.created': null,
    'resource.updated': null,
    'resource.moved': null,
    'resource.deleted': null,
    'resource.closing': null,
    'resource.reopened': null,
  },
  evolve: (before, { type, data, at }) => {
    const event = { type, data, meta: { at: Date.parse(at), organization: 'org_01J00000000000000000000000' } } as unknown as RecordedEvent;
    return Object.fromEntries([
      ...Object.entries(before),
      ...resourcesView.idsOf(event).map((id) => [id, resourcesView.evolve(before[id] ?? null, event, id)]),
    ]);
  },
  toPublicEvent: () => null,
};

describe('the log of a tree of resources, and of the organization above it', () =>
  itReadsStoredExamples(rows, resourcesView.handles, new URL('resources.examples.json', import.meta.url)));
