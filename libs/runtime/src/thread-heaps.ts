import { setFlagsFromString } from 'node:v8';

/**
 * The young heap that the command line gives (`--max-semi-space-size`) is for the thread that answers requests. V8 would give as much to every thread that is begun later, whatever
 * `resourceLimits` say: from this call on they count.
 */
export function leaveThreadsTheirLimits(): void {
  setFlagsFromString('--max-semi-space-size=0');
}
