import { endWith } from '#libs/platform/src/ending';
import { JavaLibraries } from './java.ts';
import { S3_SOURCES } from './s3-server.ts';

// Brings what engines on Java need, so that no test waits for it.
try {
  await JavaLibraries.get();
  await JavaLibraries.get(S3_SOURCES);
} catch (error) {
  endWith(error);
}
