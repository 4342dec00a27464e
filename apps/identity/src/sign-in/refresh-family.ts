import { createHmac, timingSafeEqual } from 'node:crypto';
import { ASKED_AGAIN_WITHIN_MS } from '../domain/lost-answer.decider.ts';

const ROTATIONS_KEPT = 8;
const TOKEN = /^([0-9A-HJKMNP-TV-Z]{26})\.(0|[1-9]\d{0,14})\.([\w-]{43})$/;
const SESSION_PREFIX = 'session_';

/** All refresh tokens of a session, however often they turn. */
export interface RefreshFamily {
  /** What the tokens derive from; sealed where it is stored. */
  readonly seed: string;
  /** Of the token that is to be used next. */
  readonly generation: number;
  /** The last ones: which generation was turned into the next, and when. */
  readonly rotations: readonly (readonly [generation: number, at: number])[];
  /** The present one: null for none. */
  readonly organization_id: string | null;
  /** Milliseconds since the epoch: the session ends then, unless it is refreshed before. */
  readonly idle_until: number;
  readonly needs_secret: boolean;
}

interface ReadToken {
  readonly sessionId: string;
  readonly generation: number;
  readonly mac: string;
}

/** Says which session it is of, and can be made by nobody without the seed. */
export function refreshTokenOf(seed: Buffer, { environment, sessionId, generation }: { readonly environment: string } & Omit<ReadToken, 'mac'>): string {
  return `${sessionId.slice(SESSION_PREFIX.length)}.${generation}.${macOf(seed, environment, sessionId, generation)}`;
}

/** Null for what is no refresh token at all; what is one may still be made up. */
export function readRefreshToken(text: string): ReadToken | null {
  const [, ulid, generation, mac] = TOKEN.exec(text) ?? [];
  return ulid === undefined ? null : { sessionId: SESSION_PREFIX + ulid, generation: Number(generation), mac: mac! };
}

/** Whether the token was issued here, for a session of this environment. */
export function isGenuine(seed: Buffer, environment: string, { sessionId, generation, mac }: ReadToken): boolean {
  return timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(seed, environment, sessionId, generation)));
}

/**
 * What a genuine token is at this time. One of a later generation than the present one was issued before a crash or a restore took the record back: its session goes on
 * from there.
 */
export function roleOfToken({ generation: present, rotations }: RefreshFamily, generation: number, now: number): 'present' | 'replayed' | 'reused' {
  if (generation >= present) return 'present';
  const rotation = rotations.find(([rotated]) => rotated === generation);
  return rotation !== undefined && now - rotation[1] <= ASKED_AGAIN_WITHIN_MS ? 'replayed' : 'reused';
}

/**
 * The family once the present token, or one of a later generation, came. It turns, but not more often than can be remembered: as often within the time of a replay, the
 * same token stays the present one for a moment. So a token that is not among the rotations was turned longer ago than that, however busy an honest client is.
 */
export function rotated(
  family: RefreshFamily,
  generation: number,
  { now, ...present }: Pick<RefreshFamily, 'organization_id' | 'idle_until'> & { readonly now: number },
): RefreshFamily {
  const oldest = family.rotations.at(-ROTATIONS_KEPT);
  if (oldest !== undefined && now - oldest[1] <= ASKED_AGAIN_WITHIN_MS) return { ...family, ...present, generation };
  const rotations = [...family.rotations, [generation, now] as const].slice(-ROTATIONS_KEPT);
  return { ...family, ...present, generation: generation + 1, rotations };
}

function macOf(seed: Buffer, environment: string, sessionId: string, generation: number): string {
  return createHmac('sha256', seed).update(`refresh ${environment} ${sessionId} ${generation}`).digest('base64url');
}
