import type { KeyObject } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { openText, sealText } from '#libs/event-sourcing/src/sealing/vault';
import { AnswerVault } from './idempotency.ts';

/** AES-256-GCM under a key per environment. */
@Injectable()
export class KeyStoreAnswerVault extends AnswerVault {
  /** Kept at hand: most commands come with a key, and asking the store takes a turn of the event loop. */
  private readonly keys = new Map<string, KeyObject>();

  constructor(private readonly store: KeyStore) {
    super();
  }

  seal(environment: string, name: string, text: string): string | Promise<string> {
    const key = this.keys.get(environment);
    return key === undefined ? this.keyOf(environment).then((obtained) => sealText(obtained, name, text)) : sealText(key, name, text);
  }

  async open(environment: string, name: string, sealed: string): Promise<string> {
    return openText(await this.keyOf(environment), name, sealed);
  }

  private async keyOf(environment: string): Promise<KeyObject> {
    const key = this.keys.get(environment) ?? (await this.store.obtain(`answers.${environment}`));
    this.keys.set(environment, key);
    return key;
  }
}
