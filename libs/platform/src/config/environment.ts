import type { Variables } from './setting.ts';

/** The only place that reads `process.env`. */
export function environmentVariables(): Variables {
  return process.env;
}
