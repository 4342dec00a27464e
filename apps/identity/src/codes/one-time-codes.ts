import { createHmac, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { Clock } from '#libs/platform/src/clock';
import { ULID_LENGTH } from '#libs/platform/src/ids';
import { ShortLived } from '#libs/read-models/src/short-lived';

/** What a code is for. Another round voids the one before. */
export interface CodeName {
  readonly environment: string;
  readonly kind: string;
  readonly id: string;
  readonly round: number;
}

/** So many wrong codes may be tried, whichever replicas are asked. */
export const TRIES = 5;
const COLLECTION = 'code_tries';
/** Tries are remembered for as long as any code of six digits works, and then some. */
export const TRIES_REMEMBERED = 60 * 60_000;
const DIGITS = 6;
/** Numbers of 32 bits below this stand evenly for all codes. */
const EVEN = Math.floor(2 ** 32 / 10 ** DIGITS) * 10 ** DIGITS;

/**
 * Codes and tokens that are sent to people. None is stored: each is an HMAC under a key of its environment, so that whoever has to send or show it again forms it again,
 * and nobody finds one in a stolen store.
 */
@Injectable()
export class OneTimeCodes {
  constructor(
    private readonly keys: KeyStore,
    private readonly store: ShortLived,
    private readonly clock: Clock,
  ) {}

  /** Six digits, each code as likely as any other. */
  async digits(name: CodeName): Promise<string> {
    for (let block = 0; ; block++) {
      const code = evenDigits(await this.derived(name, `digits ${block}`));
      if (code !== null) return code;
    }
  }

  /** 256 bits, behind what names the thing: by it the thing is found, and only the rest is secret. */
  async token(name: CodeName): Promise<string> {
    return `${name.id.slice(-ULID_LENGTH)}${(await this.derived(name, 'token')).toString('base64url')}`;
  }

  async isToken(name: CodeName, given: string): Promise<boolean> {
    return areEqual(await this.token(name), given);
  }

  async tryDigits(name: CodeName, given: string): Promise<'right' | 'wrong' | 'too_many'> {
    const isRight = await this.isDigits(name, given);
    if (!(await this.countTry(name, isRight, TRIES_REMEMBERED))) return 'too_many';
    return isRight ? 'right' : 'wrong';
  }

  async isDigits(name: CodeName, given: string): Promise<boolean> {
    return areEqual(await this.digits(name), given.trim());
  }

  /**
   * Whether anybody is told what a try comes to; after five wrong ones nobody is. The store counts and tells in one step, so of many guesses at once no more count than may.
   * The right code guesses nothing: it may be shown as often as clients ask again. `remembered`: for how many milliseconds.
   */
  async countTry({ environment, kind, id, round }: CodeName, isRight: boolean, remembered: number): Promise<boolean> {
    const wrong = await this.store.add(COLLECTION, `${environment} ${kind} ${id} ${round}`, isRight ? 0 : 1, this.clock.now() + remembered);
    return isRight ? wrong < TRIES : wrong <= TRIES;
  }

  private async derived({ environment, kind, id, round }: CodeName, form: string): Promise<Buffer> {
    const hmac = createHmac('sha256', (await this.keys.obtain(`codes.${environment}`)).bytes);
    for (const part of [environment, kind, id, String(round), form]) hmac.update(`${Buffer.byteLength(part)}:`).update(part);
    return hmac.digest();
  }
}

/** Six digits out of random bytes, each code as likely as any other: numbers that would favour some are passed over. Null where none is left. */
export function evenDigits(bytes: Buffer): string | null {
  for (let offset = 0; offset < bytes.length; offset += 4) {
    const number = bytes.readUInt32BE(offset);
    if (number < EVEN) return String(number % 10 ** DIGITS).padStart(DIGITS, '0');
  }
  return null;
}

/** The id of what a token names, or null where it cannot be one. */
export function idInToken(prefix: string, token: string): string | null {
  return /^[0-9A-HJKMNP-TV-Z]{26}[\w-]{43}$/.test(token) ? `${prefix}_${token.slice(0, ULID_LENGTH)}` : null;
}

/** Takes as long for every text of the right length. */
function areEqual(right: string, given: string): boolean {
  const [one, other] = [Buffer.from(right), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}
