import type { KeyObject } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { openText, sealText } from '#libs/event-sourcing/src/sealing/vault';
import { AnswerVault } from './idempotency.ts';

/** Seals stored answers under a key per environment, each bound to its name. */
@Injectable()
export class SealedAnswerVault extends AnswerVault {
  /** Few: one for each environment. Kept here, so that sealing an answer need not wait. */
  private readonly known = new Map<string, KeyObject>();

  constructor(private readonly keys: KeyStore) {
    super();
  }

  seal(environment: string, name: string, text: string): string | Promise<string> {
    const key = this.known.get(environment);
    return key === undefined ? this.keyOf(environment).then((made) => sealText(made, name, text)) : sealText(key, name, text);
  }

  open(environment: string, name: string, sealed: string): string | Promise<string> {
    const key = this.known.get(environment);
    return key === undefined ? this.keyOf(environment).then((made) => openText(made, name, sealed)) : openText(key, name, sealed);
  }

  private async keyOf(environment: string): Promise<KeyObject> {
    const key = await this.keys.obtain(`answers.${environment}`);
    this.known.set(environment, key);
    return key;
  }
}
