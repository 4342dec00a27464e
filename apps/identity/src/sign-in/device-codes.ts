import { randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import type { Authorization } from './authorization-codes.ts';
import { invalidGrant } from './sign-in-refusals.ts';

const COLLECTION = 'device_codes';
const USER_CODES = 'device_user_codes';
const POLLS = 'device_polls';
const LIFETIME_MS = 300_000;
/** So long a device is told that its code has expired; after that, that there is none. */
const REMEMBERED_MS = 600_000;
const INTERVAL_MS = 5_000;
/** No vowels, and nothing that is taken for another (RFC 8628, 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const USER_CODE_LENGTH = 8;

interface Stored {
  readonly environment: string;
  readonly client_id: string;
  readonly expires_at: number;
  /** Null: nobody has decided yet. */
  readonly decision: Omit<Authorization, 'client_id'> | 'denied' | null;
}

/** Codes by which a device without a keyboard is signed in on another one (RFC 8628). */
@Injectable()
export class DeviceCodes {
  private readonly entries: ShortLivedValues<Stored>;

  constructor(
    private readonly secrets: ShownSecrets,
    private readonly store: ShortLived,
    private readonly naming: Naming,
    private readonly clock: Clock,
  ) {
    this.entries = new ShortLivedValues(store, COLLECTION);
  }

  /** The code that the device asks with, and the one that its user types elsewhere. */
  async issue(context: RequestContext, client_id: string): Promise<{ readonly deviceCode: string; readonly userCode: string }> {
    const { environment } = context;
    const deviceCode = (await this.secrets.of(context, 'device_code')).toString('base64url');
    const expires_at = this.clock.now() + LIFETIME_MS;
    const stored: Stored = { environment, client_id, expires_at, decision: null };
    await this.entries.put(this.keyOf(deviceCode), stored, expires_at + REMEMBERED_MS);
    for (;;) {
      const userCode = Array.from({ length: USER_CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]!).join('');
      const { stored: isOurs } = await this.store.putIfAbsent(USER_CODES, this.userKeyOf(environment, userCode), this.keyOf(deviceCode), expires_at);
      if (isOurs) return { deviceCode, userCode: `${userCode.slice(0, 4)}-${userCode.slice(4)}` };
    }
  }

  /** The user let the device in, or did not: once. False for a code that there is not, has expired, or was decided. */
  async decide({ environment }: RequestContext, userCode: string, decision: NonNullable<Stored['decision']>): Promise<boolean> {
    const taken = await this.store.take(USER_CODES, this.userKeyOf(environment, userCode));
    const entry = taken === null ? null : await this.entries.get(taken.value);
    return taken !== null && entry !== null && this.entries.replace(taken.value, entry, { ...entry.value, decision });
  }

  /** @throws DomainError `invalid_grant`, `expired_token`, `access_denied`, `authorization_pending`, `slow_down` */
  async require({ environment }: RequestContext, clientId: string, deviceCode: string): Promise<Authorization> {
    const key = this.keyOf(deviceCode);
    const stored = (await this.entries.get(key))?.value;
    if (stored?.environment !== environment || stored.client_id !== clientId) throw invalidGrant();
    const { decision, expires_at } = stored;
    if (decision === 'denied') throw new DomainError('forbidden', 'access_denied', 'The user did not let the device in.');
    const now = this.clock.now();
    if (expires_at <= now) throw new DomainError('invalid', 'expired_token', 'The device code has expired: begin anew.');
    if (decision !== null) return { ...decision, client_id: clientId };
    const { stored: isInTime } = await this.store.putIfAbsent(POLLS, key, '', now + INTERVAL_MS);
    throw isInTime
      ? new DomainError('invalid', 'authorization_pending', 'The user has not decided yet.')
      : new DomainError('limited', 'slow_down', `Ask every ${INTERVAL_MS / 1_000} seconds, and 5 seconds less often from now on.`);
  }

  /** Whoever reads the store learns no code. */
  private keyOf(deviceCode: string): string {
    return this.naming.keyOf(COLLECTION, deviceCode);
  }

  /** However it is typed. */
  private userKeyOf(environment: string, userCode: string): string {
    return this.naming.keyOf(USER_CODES, environment, userCode.toUpperCase().replaceAll(/[^A-Z]/g, ''));
  }
}
