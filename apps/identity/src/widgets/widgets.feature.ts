import { feature } from '#libs/runtime/src/feature';
import { Widgets } from './widgets.ts';

export const widgets = feature({ providers: [Widgets] });
