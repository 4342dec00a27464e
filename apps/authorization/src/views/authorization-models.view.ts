import { primaryView } from '#libs/event-sourcing/src/views/view';
import {
  authorizationModelDecider,
  type AuthorizationModel,
  type AuthorizationModelEvent,
  type AuthorizationModelState,
} from '../domain/authorization-model.decider.ts';

/** One row per environment, under its id. Private: answers are picked from it. */
export const authorizationModelsView = primaryView<AuthorizationModelState, AuthorizationModelEvent, AuthorizationModel>({
  name: 'authorization_models',
  version: 1,
  decider: authorizationModelDecider,
  indexes: [],
  rowOf: (state) => state,
});
