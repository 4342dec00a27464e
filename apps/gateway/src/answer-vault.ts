import { Injectable } from '@nestjs/common';
import { KeyStore, type DataKey } from '#libs/event-sourcing/src/sealing/key-store';
import { openText, sealText } from '#libs/event-sourcing/src/sealing/vault';

/**
 * Seals stored answers under a key per environment, since they hold personal data and, of some commands, secrets. `name` says which answer it is: under
 * another name it does not open.
 */
@Injectable()
export class AnswerVault {
  /** Kept at hand, so that sealing an answer need not wait; one for each environment. */
  private readonly known = new Map<string, DataKey>();

  constructor(private readonly keys: KeyStore) {}

  /** Text without spaces. */
  seal(environment: string, name: string, text: string): string | Promise<string> {
    const key = this.known.get(environment);
    return key === undefined ? this.keyOf(environment).then((made) => sealText(made, name, text)) : sealText(key, name, text);
  }

  async open(environment: string, name: string, sealed: string): Promise<string> {
    return openText(this.known.get(environment) ?? (await this.keyOf(environment)), name, sealed);
  }

  private async keyOf(environment: string): Promise<DataKey> {
    const key = await this.keys.obtain(`answers.${environment}`);
    this.known.set(environment, key);
    return key;
  }
}
