import { primaryView } from '#libs/event-sourcing/src/views/view';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { contentOf, type Table } from '#libs/read-models/src/read-models';
import { environmentDecider, type EnvironmentEvent, type EnvironmentState } from '../domain/environment.decider.ts';

export type StoredEnvironment = NonNullable<EnvironmentState>;

/** Every environment with its keys. Private: answers are picked from it. */
export const environmentsView = primaryView<EnvironmentState, EnvironmentEvent, StoredEnvironment>({
  name: 'environments',
  noun: 'Environment',
  version: 2,
  decider: environmentDecider,
  indexes: [
    { name: 'name', keys: ({ name }) => [name] },
    { name: 'client_id', keys: ({ client_id }) => [client_id] },
    { name: 'key_id', keys: ({ keys }) => keys.map(({ id }) => id) },
    { name: 'key_hash', keys: ({ keys }) => keys.map(({ hash }) => hash) },
  ],
  rowOf: (state) => state,
});

/** The rows of all environments: what goes through every environment begins here. */
export async function allEnvironments(rows: Table<StoredEnvironment>): Promise<readonly StoredEnvironment[]> {
  const all: StoredEnvironment[] = [];
  for (let after: string | undefined, more = true; more; after = all.at(-1)?.id) {
    const page = await rows.page(SYSTEM_ENVIRONMENT, { order: 'asc', limit: 100, after });
    all.push(...page.rows.map(contentOf));
    more = page.hasAfter;
  }
  return all;
}
