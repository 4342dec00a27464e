import { hkdfSync } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { RequestContext } from '#libs/platform/src/request-context';
import { KeyStore } from './key-store.ts';

/**
 * Secrets that are shown once, and stored as a hash alone. They derive from the command that makes them, so that its repetition shows the same one. Whoever reads the
 * log knows the command's id, and without the environment's key nothing more.
 */
@Injectable()
export class ShownSecrets {
  constructor(private readonly keys: KeyStore) {}

  /** 256 bits for this command. `kind`: what the secret is for, which keeps those of one command apart. */
  async of({ environment, commandId }: Pick<RequestContext, 'environment' | 'commandId'>, kind: string): Promise<Buffer> {
    const { bytes } = await this.keys.obtain(`environment.${environment}`);
    return Buffer.from(hkdfSync('sha256', bytes, commandId, `shown secret: ${kind}`, 32));
  }
}
