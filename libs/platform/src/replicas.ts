import { newUlid } from './ids.ts';

/** Which processes may still be working on what they have reserved in the stores that they share. */
export abstract class Replicas {
  /** Names this process; never the same after a restart. */
  readonly id = newUlid(Date.now());
  abstract mayBeAlive(id: string): boolean;
}

/** This process is the only one on its data: whatever another one reserved, that one is gone. */
export class OnlyReplica extends Replicas {
  mayBeAlive(id: string): boolean {
    return id === this.id;
  }
}

/** Others work on the same data, and nobody can tell whether they are gone or slow: what they reserved is theirs until its deadline. */
export class ManyReplicas extends Replicas {
  mayBeAlive(): boolean {
    return true;
  }
}
