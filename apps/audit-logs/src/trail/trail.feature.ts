import { feature } from '#libs/runtime/src/feature';

export const trail = feature({});
