import { feature } from '#libs/runtime/src/feature';
import { AccessChecks } from './access-checks.ts';

export const checks = feature({ providers: [AccessChecks] });
