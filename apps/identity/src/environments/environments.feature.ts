import { feature } from '#libs/runtime/src/feature';
import { environmentDecider } from './environment.decider.ts';
import { Environments } from './environments.ts';
import { environmentsView } from './environments.view.ts';

export const environments = feature({ deciders: [environmentDecider], views: [environmentsView], providers: [Environments] });
