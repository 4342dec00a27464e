import { modeOf, readSettings, type Variables } from '#libs/platform/src/config/setting';
import { GatewaySettings } from '#libs/platform/src/config/settings';

/** Settings of a process that is all of the product: in development its API is where it listens, unless it is told otherwise. A port that the system chooses is not known yet. */
export function withOwnAddress(variables: Variables): Variables {
  const isTold = (variables['PUBLIC_URL'] ?? '').trim() !== '';
  if (isTold || modeOf(variables) !== 'development') return variables;
  const { PORT } = readSettings(GatewaySettings, variables);
  return PORT === 0 ? variables : { ...variables, PUBLIC_URL: `http://localhost:${PORT}` };
}
