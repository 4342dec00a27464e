import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { RandomStock } from '#libs/platform/src/random-stock';
import { StartRefused } from '#libs/platform/src/start-refused';

export const KEY_BYTES = 32;
const IV_BYTES = 12;
const ivs = new RandomStock(IV_BYTES);

/** A data key as it is stored. `master` tells which master key wrapped it. */
export interface WrappedKey {
  readonly purpose: string;
  readonly master: string;
  readonly iv: string;
  readonly wrapped: string;
  /** Of a key that was put in the place of another, see `KeyStore.advance`; absent: of the first. */
  readonly step?: number | undefined;
}

interface MasterKey {
  readonly id: string;
  readonly key: Buffer;
}

/** The keys that wrap data keys: the first one wraps, all unwrap. */
export class MasterKeys {
  private constructor(private readonly keys: readonly [MasterKey, ...MasterKey[]]) {}

  /**
   * 32 bytes each, in base64, the newest first.
   * @throws StartRefused for a key that is not 32 bytes, and for none at all
   */
  static of(texts: readonly string[]): MasterKeys {
    const [first, ...others] = texts.map(masterKey);
    if (first === undefined) throw new StartRefused('MASTER_KEYS is not set: make a key with `openssl rand -base64 32`.');
    return new MasterKeys([first, ...others]);
  }

  wrap<Purpose extends string>(purpose: Purpose, key: Buffer, step?: number): WrappedKey & { readonly purpose: Purpose } {
    const [master] = this.keys;
    const iv = ivs.look();
    const cipher = createCipheriv('aes-256-gcm', master.key, iv).setAAD(bindingOf(purpose, step));
    const wrapped = Buffer.concat([cipher.update(key), cipher.final(), cipher.getAuthTag()]);
    return { purpose, master: master.id, iv: iv.toString('base64'), wrapped: wrapped.toString('base64'), ...(step !== undefined && { step }) };
  }

  /** In memory of their own, which holds nothing else. @throws StartRefused when the master key is missing; what `damaged` makes when the wrapped key is */
  unwrap({ purpose, master, iv, wrapped, step }: WrappedKey, damaged: () => Error): Buffer {
    const found = this.keys.find(({ id }) => id === master);
    if (found === undefined)
      throw new StartRefused(`A data key was wrapped by master key ${master}, which is not among MASTER_KEYS: add that key at the end of the list.`);
    try {
      const bytes = Buffer.from(wrapped, 'base64');
      const decipher = createDecipheriv('aes-256-gcm', found.key, Buffer.from(iv, 'base64')).setAAD(bindingOf(purpose, step));
      decipher.setAuthTag(bytes.subarray(-16));
      const key = Buffer.allocUnsafeSlow(KEY_BYTES);
      decipher.update(bytes.subarray(0, -16)).copy(key);
      decipher.final();
      return key;
    } catch {
      throw damaged();
    }
  }
}

/** Of another purpose, or of another step, a key does not unwrap. */
function bindingOf(purpose: string, step: number | undefined): Buffer {
  return Buffer.from(step === undefined ? purpose : `${purpose} ${step}`);
}

function masterKey(text: string): MasterKey {
  const key = Buffer.from(text, 'base64');
  if (key.length !== KEY_BYTES) throw new StartRefused('MASTER_KEYS holds a key that is not 32 bytes in base64: make one with `openssl rand -base64 32`.');
  return { id: createHash('sha256').update('gatehouse master key').update(key).digest('hex').slice(0, 16), key };
}
