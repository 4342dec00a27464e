import { Injectable, type OnModuleInit } from '@nestjs/common';
import { EventStore, START } from '#libs/event-sourcing/src/log/event-store';
import { KeyMissing, KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { Log } from '#libs/platform/src/log';
import { patiently } from '#libs/platform/src/patience';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { StoredPassword } from '../domain/stored-password.ts';

/**
 * The key that goes into every password hash is made before anything is recorded, and never again once a password was hashed with it: under another one no password
 * would be right any more, and nobody could tell that from a wrong one.
 */
@Injectable()
export class PasswordKey implements OnModuleInit {
  constructor(
    private readonly events: EventStore,
    private readonly keys: KeyStore,
    private readonly log: Log,
  ) {}

  /** @throws StartRefused */
  onModuleInit(): Promise<void> {
    return patiently(() => this.requireKey(), { log: this.log, what: 'The key of passwords' });
  }

  private async requireKey(): Promise<void> {
    // The head first: whoever recorded something had the key before, so it is found after.
    const head = await this.events.head();
    const isLost = head !== START && !(await this.keys.findMany(['passwords'])).has('passwords') && (await this.isUsed(head));
    if (isLost)
      throw new StartRefused(
        'There are passwords, but the key that they were hashed with is missing: put the keys back that belong to this log, or restore both.',
      );
    await this.keys.obtain('passwords');
  }

  /** Reads the whole log, once: a log of an earlier release may be without the key because it is without passwords. */
  private async isUsed(head: string): Promise<boolean> {
    const reading = new AbortController();
    for await (const batch of this.events.subscribe(START, reading.signal)) {
      if (batch.some((event) => event.type === 'user.password_set' && isHashedHere(() => event.data as { readonly password: StoredPassword | null })))
        return true;
      if (batch.at(-1)!.position >= head) return false;
    }
    return false;
  }
}

/** What cannot be read counts: whoever lost its key may have lost this one too. Imported hashes, and those of erased people, need none. */
function isHashedHere(read: () => { readonly password: StoredPassword | null }): boolean {
  try {
    return read().password?.type === 'bcrypt-hmac';
  } catch (error) {
    if (error instanceof KeyMissing) return true;
    throw error;
  }
}
