import { Injectable } from '@nestjs/common';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { addressGroup } from '#libs/platform/src/address-group';
import { Clock } from '#libs/platform/src/clock';
import { ShortLived, type Entry } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import { foldedEmail } from '../domain/user.decider.ts';
import { afterSuccess, nextAttempt, nextTryOfPassword, type FailureRun } from './failure-run.ts';
import type { KnownOfAttempt } from './list-entries.ts';

const DAY_MS = 24 * 60 * 60_000;
const FAILURES = 'risk_failures';
const REMEMBERED_MS = 30 * DAY_MS;
const DEVICES = 'risk_devices';
const DEVICE_KNOWN_MS = 90 * DAY_MS;
const ADDRESSES = 'risk_addresses';
const ACCOUNTS_OF_ADDRESSES = 'risk_accounts_of_addresses';
const WINDOW_MS = 10 * 60_000;

/** What an attempt is counted under: keyed digests, by which the store knows nobody. */
export interface CountedAttempt {
  /** Where failures in a row are counted; null: they are not. */
  readonly run: string | null;
  readonly byPassword: boolean;
  /** Null where nobody knows where the person is. */
  readonly address: AddressCount | null;
  /** Of the account; null where nothing tells one device from another. */
  readonly device: string | null;
}

interface AddressCount {
  readonly key: string;
  /** When its window ends. */
  readonly end: number;
  /** Whether the account was tried from there for the first time. */
  readonly isNewAccount: boolean;
}

/** How often things fail, counted over all replicas: whatever is not told to have succeeded counts as a failure. */
@Injectable()
export class AttemptCounts {
  private readonly failures: ShortLivedValues<FailureRun>;

  constructor(
    private readonly store: ShortLived,
    private readonly naming: Naming,
    private readonly clock: Clock,
  ) {
    this.failures = new ShortLivedValues(store, FAILURES);
  }

  accountOf(email: string): string {
    return this.naming.keyOf('risk account', foldedEmail(email));
  }

  /** What the device is called beside this account. An address and a browser together tell one as well; a browser alone anybody has. */
  deviceOf({ email, ipAddress, userAgent, deviceId }: KnownOfAttempt): string | null {
    if (deviceId !== null) return this.naming.keyOf('risk device', foldedEmail(email), 'id', deviceId);
    if (ipAddress === null || userAgent === null) return null;
    return this.naming.keyOf('risk device', foldedEmail(email), 'browser', addressGroup(ipAddress), userAgent);
  }

  /**
   * One more attempt for an account: a device that somebody signed in with before has a count of its own, so that no stranger uses it up. Of many at once, each meets the
   * one before it. One that has to wait (`isHeld`) is not counted.
   */
  async countForAccount(
    environment: string,
    account: string,
    {
      device,
      passwordId,
      isHeld,
    }: { readonly device: string | null; readonly passwordId: string | null | undefined; readonly isHeld: (waitMs: number, needsReset: boolean) => boolean },
  ): Promise<{ readonly run: string; readonly waitMs: number; readonly needsReset: boolean }> {
    const isKnown = device !== null && (await this.store.get(DEVICES, `${environment} ${device}`)) !== null;
    const run = `${environment} ${isKnown ? device : account}`;
    for (;;) {
      const entry = await this.failures.get(run);
      const { next, waitMs, needsReset } = nextAttempt(entry?.value ?? null, this.clock.now(), passwordId);
      if (isHeld(waitMs, needsReset) || (await this.replace(run, entry, next))) return { run, waitMs, needsReset };
    }
  }

  /** An attempt that was counted before goes on to try a password of ours: whether that was tried too often. */
  async countTryOfPassword(run: string, passwordId: string | null): Promise<boolean> {
    for (;;) {
      const entry = await this.failures.get(run);
      const { next, needsReset } = nextTryOfPassword(entry?.value ?? null, this.clock.now(), passwordId);
      if (needsReset || (await this.replace(run, entry, next))) return needsReset;
    }
  }

  /** One more attempt from an address: how many failed from there in ten minutes, and for how many accounts. */
  async countForAddress(
    environment: string,
    account: string,
    ipAddress: string,
  ): Promise<{ readonly address: AddressCount; readonly attempts: number; readonly accounts: number }> {
    const now = this.clock.now();
    const end = now - (now % WINDOW_MS) + WINDOW_MS;
    const key = `${environment} ${this.naming.keyOf('risk address', addressGroup(ipAddress))} ${end}`;
    const attempts = await this.store.add(ADDRESSES, key, 1, end);
    const { stored: isNewAccount } = await this.store.putIfAbsent(ACCOUNTS_OF_ADDRESSES, `${key} ${account}`, '', end);
    const accounts = isNewAccount
      ? await this.store.add(ACCOUNTS_OF_ADDRESSES, key, 1, end)
      : Number((await this.store.get(ACCOUNTS_OF_ADDRESSES, key))?.value ?? 0);
    return { address: { key, end, isNewAccount }, attempts, accounts };
  }

  /** Somebody showed who they are: this was no failure, and ends those in a row. */
  async succeeded({ run, byPassword, address }: CountedAttempt): Promise<void> {
    if (run !== null) await this.endRun(run, byPassword);
    if (address === null || address.end <= this.clock.now()) return;
    await this.store.add(ADDRESSES, address.key, -1, address.end);
    if (address.isNewAccount) await this.store.add(ACCOUNTS_OF_ADDRESSES, address.key, -1, address.end);
  }

  /** Somebody signed in with it. */
  async remember(environment: string, device: string | null): Promise<void> {
    if (device !== null) await this.store.put(DEVICES, `${environment} ${device}`, '', this.clock.now() + DEVICE_KNOWN_MS);
  }

  /** False where another was faster. */
  private async replace(run: string, entry: Entry<FailureRun> | null, next: FailureRun): Promise<boolean> {
    const expiresAt = this.clock.now() + REMEMBERED_MS;
    return entry === null ? (await this.failures.putIfAbsent(run, next, expiresAt)).stored : this.failures.replace(run, entry, next, expiresAt);
  }

  private async endRun(run: string, byPassword: boolean): Promise<void> {
    for (;;) {
      const entry = await this.failures.get(run);
      if (entry === null) return;
      const left = afterSuccess(entry.value, byPassword);
      if (left === null) return void (await this.failures.take(run));
      if (await this.failures.replace(run, entry, left)) return;
    }
  }
}
