import type { Position } from '../log/event-store.ts';

interface Note {
  readonly version: number;
  readonly position: Position;
}

/** How far a stream is known that only grows, and whether it is still the same. */
export class LearnedNotes {
  version = 0;
  private readonly positions = new Map<number, Position>();

  /** False for what is known already. */
  add({ version, position }: Note): boolean {
    if (version <= this.version) return false;
    this.version = version;
    this.positions.set(version, position);
    return true;
  }

  /** Whether it stands where another stood. */
  isOther({ version, position }: Note): boolean {
    return (this.positions.get(version) ?? position) !== position;
  }

  clear(): void {
    this.version = 0;
    this.positions.clear();
  }
}
