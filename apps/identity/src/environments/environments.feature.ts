import { feature } from '#libs/runtime/src/feature';
import { environmentDecider } from '../domain/environment.decider.ts';
import { environmentsView } from '../views/environments.view.ts';
import { Environments } from './environments.ts';

export const environments = feature({ deciders: [environmentDecider], views: [environmentsView], providers: [Environments] });
