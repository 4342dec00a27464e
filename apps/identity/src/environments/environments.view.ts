import { primaryView } from '#libs/event-sourcing/src/views/view';
import { environmentDecider, type EnvironmentEvent, type EnvironmentState } from './environment.decider.ts';

export type StoredEnvironment = NonNullable<EnvironmentState>;

/** Every environment with its keys. Private: answers are picked from it. */
export const environmentsView = primaryView<EnvironmentState, EnvironmentEvent, StoredEnvironment>({
  name: 'environments',
  version: 1,
  decider: environmentDecider,
  indexes: [
    { name: 'name', keys: ({ name }) => [name] },
    { name: 'key_id', keys: ({ keys }) => keys.map(({ id }) => id) },
    { name: 'key_hash', keys: ({ keys }) => keys.map(({ hash }) => hash) },
  ],
  rowOf: (state) => state,
  handles: ['environment.created', 'environment.updated', 'environment_key.created', 'environment_key.rotated', 'environment_key.revoked'],
});
