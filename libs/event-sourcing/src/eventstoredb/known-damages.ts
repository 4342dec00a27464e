import type { Damage, DamageCause } from '../log/log-damage.ts';

/** Somebody else may write to a stream of ours without an end: so many places are named, and the next ones once these are skipped. */
const NAMED = 10;
/** Somebody else may write to streams that are called like ours without an end: what is not remembered is met by whoever reads the stream. */
const MOST = 10_000;
const CAUSES: Readonly<Record<DamageCause, true>> = { foreign: true, misplaced: true, unreadable: true, missing: true, truncated: true, deleted: true };

export interface Known {
  damage: Damage;
  /** Others know of it, and whoever starts later. */
  isTold: boolean;
  /** It was over before others knew of it. */
  isMended?: boolean;
}

/** What is damaged, and not over. */
export class KnownDamages {
  private readonly all = new Map<string, Known>();
  private readonly streams = new Map<string, Map<string, Known>>();

  /** The oldest first. */
  list(): readonly Known[] {
    return [...this.all.values()];
  }

  of(stream: string): readonly Known[] {
    return [...(this.streams.get(stream)?.values() ?? [])];
  }

  get(damage: Damage): Known | undefined {
    return this.all.get(keyOf(damage));
  }

  /** False where as much is known as is remembered. */
  add(known: Known): boolean {
    const { stream } = known.damage;
    const key = keyOf(known.damage);
    const ofStream = this.streams.get(stream) ?? new Map<string, Known>();
    if (ofStream.size >= NAMED || this.all.size >= MOST) return false;
    this.streams.set(stream, ofStream.set(key, known));
    this.all.set(key, known);
    return true;
  }

  delete(damage: Damage): void {
    const key = keyOf(damage);
    const ofStream = this.streams.get(damage.stream);
    this.all.delete(key);
    ofStream?.delete(key);
    if (ofStream?.size === 0) this.streams.delete(damage.stream);
  }

  clear(): void {
    this.all.clear();
    this.streams.clear();
  }
}

/** Which of several of a stream. */
export function keyOf({ stream, cause, revision }: Damage): string {
  return `${stream} ${cause} ${revision}`;
}

/** Whether it was written by one of us: others may write to any stream. */
export function isDamage(data: unknown): data is Damage {
  const { stream, cause, revision, from, position } = (data ?? {}) as Partial<Record<keyof Damage, unknown>>;
  if (typeof stream !== 'string' || !Object.hasOwn(CAUSES, String(cause)) || (position !== null && typeof position !== 'string')) return false;
  if (cause === 'truncated' || cause === 'deleted') return revision === null;
  return isRevision(revision) && (cause === 'missing' ? isRevision(from) && from <= revision : from === undefined);
}

export function isRevision(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
