import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { StartRefused } from './start-refused.ts';

/** The text of a file that a setting names. @param named what names it @throws StartRefused when it cannot be read */
export function requireReadable(named: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartRefused(`${named}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** The same for certificates in PEM. @throws StartRefused when there is none in it, too */
export function requireCertificates(named: string, path: string): string {
  const pem = requireReadable(named, path);
  try {
    new X509Certificate(pem);
  } catch {
    throw new StartRefused(`${named}: ${path} holds no certificate in PEM.`);
  }
  return pem;
}
