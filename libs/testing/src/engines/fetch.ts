import { endWith } from '#libs/platform/src/ending';
import { JavaLibraries } from './java.ts';

// Brings what engines on Java need, so that no test waits for it.
try {
  await JavaLibraries.get();
} catch (error) {
  endWith(error);
}
