import { Injectable } from '@nestjs/common';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { Clock } from '#libs/platform/src/clock';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import type { Proof } from './grants/grant.ts';
import { invalidPendingToken } from './sign-in-refusals.ts';

const COLLECTION = 'pending_authentications';
const LIFETIME_MS = 10 * 60_000;

/** A sign-in that goes on when its client brings what was asked for. */
export interface PendingAuthentication {
  readonly client_id: string;
  readonly session_id: string;
  readonly user_id: string;
  /** The organization that the user chose; null: none yet. */
  readonly chosen: string | null;
  /** The invitation that it began with. */
  readonly invitation_id?: string;
  /** Whether the second factor was proven with this token. Absent: it was not. */
  readonly holds_factor?: true;
  /** Whether a code is still asked for, since something speaks against the sign-in. Absent: nothing did. */
  readonly is_challenged?: boolean;
}

/** What the token of a sign-in says of whoever brings it. */
export function proofOf({ session_id, chosen, is_challenged, holds_factor }: PendingAuthentication, token: string): Omit<Proof, 'user' | 'factor'> {
  return { sessionId: session_id, chosen, isChallenged: is_challenged === true, holdsFactor: holds_factor === true, token };
}

interface Stored extends PendingAuthentication {
  readonly environment: string;
}

/** Tokens by which a sign-in goes on. A rejected attempt leaves them as they are; they name their session, which begins once. */
@Injectable()
export class PendingAuthentications {
  private readonly entries: ShortLivedValues<Stored>;

  constructor(
    private readonly secrets: ShownSecrets,
    private readonly naming: Naming,
    private readonly clock: Clock,
    private readonly store: ShortLived,
  ) {
    this.entries = new ShortLivedValues(store, COLLECTION);
  }

  /** The token to go on with; a repeated command answers the same one. */
  async begin(context: RequestContext, pending: PendingAuthentication): Promise<string> {
    const token = (await this.secrets.of(context, 'pending_authentication')).toString('base64url');
    await this.entries.putIfAbsent(this.keyOf(token), { ...pending, environment: context.environment }, this.clock.now() + LIFETIME_MS);
    return token;
  }

  /** @throws DomainError `invalid_pending_authentication_token`, also where it is another client's */
  async require({ environment }: RequestContext, clientId: string, token: string): Promise<PendingAuthentication> {
    const pending = (await this.entries.get(this.keyOf(token)))?.value;
    if (pending?.environment !== environment || pending.client_id !== clientId) throw invalidPendingToken();
    return pending;
  }

  /** The same token goes on with what was chosen meanwhile, for as long as before. */
  choose(token: string, organizationId: string): Promise<void> {
    return this.change(token, { chosen: organizationId });
  }

  /** The code was shown that was asked for since something speaks against the sign-in. */
  passChallenge(token: string): Promise<void> {
    return this.change(token, { is_challenged: false });
  }

  /** A second factor was proven. */
  passFactor(token: string): Promise<void> {
    return this.change(token, { holds_factor: true });
  }

  private async change(token: string, changed: Partial<PendingAuthentication>): Promise<void> {
    const key = this.keyOf(token);
    // Two that go on with it at once may each have shown something.
    for (;;) {
      const entry = await this.entries.get(key);
      if (entry === null || (await this.entries.replace(key, entry, { ...entry.value, ...changed }))) return;
    }
  }

  /** Resolves when what was written is on disk. */
  durable(): Promise<void> {
    return this.store.durable();
  }

  /** Whoever reads the store learns no token. */
  private keyOf(token: string): string {
    return this.naming.keyOf(COLLECTION, token);
  }
}
