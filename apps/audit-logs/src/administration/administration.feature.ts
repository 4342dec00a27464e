import { Origins } from '#libs/event-sourcing/src/sealing/origins';
import { feature } from '#libs/runtime/src/feature';
import { EndedOrigins } from './ended-origins.ts';
import { TellOfAdministration } from './tell-of-administration.reaction.ts';

export const administration = feature({ providers: [Origins, EndedOrigins], reactions: [TellOfAdministration] });
