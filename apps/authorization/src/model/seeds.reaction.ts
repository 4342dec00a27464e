import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { AuthorizationModels } from '../repositories/authorization-models.ts';

/** Whoever asks first finds the seeds anyway; this makes that rarely wait. Environments from before there were seeds get theirs too, since it reads the whole log. */
export function seedModelWhenEnvironmentCreated(models: AuthorizationModels): Reaction {
  return {
    name: 'seed-authorization-model-when-environment-created',
    handles: ['environment.created'],
    react: async ({ data }) => void (await models.seeded((data as { readonly id: string }).id)),
  };
}
