import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import { isGenuine, readRefreshToken, refreshTokenOf, type RefreshFamily } from './refresh-family.ts';

const COLLECTION = 'refresh';
/** Seeds that are kept open: a session is refreshed again and again, mostly by the replica that knows it. Each takes some 300 bytes. */
const MOST_OPEN = 10_000;

/** Session ids are of one environment each: the record says of which. */
interface StoredFamily extends RefreshFamily {
  readonly environment: string;
}

/** A family as it was read: whoever replaces it meanwhile wins. */
export interface ReadFamily {
  readonly sessionId: string;
  readonly family: StoredFamily;
  /** Opened. */
  readonly seed: Buffer;
  readonly version: number;
  readonly expiresAt: number;
}

/** The refresh tokens of every session, in a store with expiry: a session is refreshed without a word in the log. */
@Injectable()
export class RefreshFamilies {
  private readonly entries: ShortLivedValues<StoredFamily>;
  private readonly open = new BoundedMap<{ readonly sealed: string; readonly seed: Buffer }>(MOST_OPEN);

  constructor(
    private readonly store: ShortLived,
    private readonly vault: Vault,
  ) {
    this.entries = new ShortLivedValues(store, COLLECTION);
  }

  /** The family of a session that begins, until `expiresAt`; where a repeated command has made it already, that one. */
  async begin(
    environment: string,
    sessionId: string,
    family: Omit<RefreshFamily, 'seed' | 'generation' | 'rotations'>,
    expiresAt: number,
  ): Promise<ReadFamily> {
    const text = randomBytes(32).toString('base64url');
    const sealed = await this.vault.seal(text, place(environment, sessionId));
    const begun: StoredFamily = { environment, seed: sealed, generation: 0, rotations: [], ...family };
    const { stored, entry } = await this.entries.putIfAbsent(sessionId, begun, expiresAt);
    // What was sealed a moment ago is not opened for that.
    if (!stored) return (await this.read(environment, sessionId))!;
    const seed = Buffer.from(text, 'base64url');
    this.open.set(environment, sessionId, { sealed, seed });
    return { sessionId, family: entry.value, seed, version: entry.version, expiresAt: entry.expiresAt };
  }

  /** Null for whatever is no token of this environment, and where its session has ended. */
  async ofToken(environment: string, text: string): Promise<(ReadFamily & { readonly tokenGeneration: number }) | null> {
    const token = readRefreshToken(text);
    const read = token === null ? null : await this.read(environment, token.sessionId);
    if (token === null || read === null || !isGenuine(read.seed, environment, token)) return null;
    return { ...read, tokenGeneration: token.generation };
  }

  async read(environment: string, sessionId: string): Promise<ReadFamily | null> {
    const entry = await this.entries.get(sessionId);
    if (entry?.value.environment !== environment) return null;
    const { value: family, version, expiresAt } = entry;
    return { sessionId, family, seed: await this.opened(environment, sessionId, family.seed), version, expiresAt };
  }

  /** Another text of the same session, as after a restore, is opened anew. */
  private async opened(environment: string, sessionId: string, sealed: string): Promise<Buffer> {
    const known = this.open.get(environment, sessionId);
    if (known?.sealed === sealed) return known.seed;
    const seed = Buffer.from(await this.vault.open(sealed, place(environment, sessionId)), 'base64url');
    this.open.set(environment, sessionId, { sealed, seed });
    return seed;
  }

  /** False when another was faster. The expiry stays that of the session. */
  replace(read: ReadFamily, family: RefreshFamily): Promise<boolean> {
    return this.entries.replace(read.sessionId, read, { environment: read.family.environment, ...family });
  }

  /**
   * The family of a session that has begun in this organization: where two chose at once, the log has one session, and the family may be what the other stored. One that has
   * turned goes by its last refresh.
   */
  async settled(read: ReadFamily, organization_id: string | null): Promise<ReadFamily> {
    const { family } = read;
    const hasTurned = family.generation > 0 || family.rotations.length > 0;
    if (hasTurned || family.organization_id === organization_id) return read;
    await this.replace(read, { ...family, organization_id });
    return (await this.read(family.environment, read.sessionId)) ?? read;
  }

  /** The environment of a session, by its id alone; null where it has ended, or never was. */
  async environmentOf(sessionId: string): Promise<string | null> {
    return (await this.entries.get(sessionId))?.value.environment ?? null;
  }

  /** Until when the session may be left alone; null where it cannot be refreshed any more. */
  async idleUntil(environment: string, sessionId: string): Promise<number | null> {
    const family = (await this.entries.get(sessionId))?.value;
    return family?.environment === environment ? family.idle_until : null;
  }

  /** The token of the present generation. */
  present({ sessionId, family: { environment }, seed }: ReadFamily, generation: number): string {
    return refreshTokenOf(seed, { environment, sessionId, generation });
  }

  /** The session has ended: nothing of it is of use any more. */
  async end(sessionId: string): Promise<void> {
    const taken = await this.entries.take(sessionId);
    if (taken !== null) this.open.delete(taken.value.environment, sessionId);
  }

  /** Resolves when what was written is on disk. */
  durable(): Promise<void> {
    return this.store.durable();
  }
}

/** Where the seed belongs: moved to another session, it does not open. */
function place(environment: string, sessionId: string) {
  return { stream: streamName('session', environment, sessionId), field: 'refresh_seed' };
}
