import type { ManagedBy } from '#apps/identity/src/domain/membership.decider';
import { grown, IdTable, NO_INT32, NO_UINT8 } from './id-table.ts';

const NONE = -1;
const [PRESENT, INACTIVE, GONE] = [0, 1, 2];

/**
 * People of directories who decide about memberships of one organization: those who manage one, those who wait for one, and those who may not work or are gone. What is said
 * of them holds at once; that it is recorded of the membership follows. Memberships go by their numbers.
 */
export class Managers {
  private readonly people = new IdTable('directory_user');
  private states = NO_UINT8;
  /** Numbers of directories, each one more than it is; 0: not known. */
  private directoryOf = NO_INT32;
  private readonly directories: string[] = [];
  private readonly endedDirectories = new Set<number>();
  /** The number of the person who manages a membership, one more than it is; 0: nobody. */
  private managerOf = NO_INT32;
  private readonly successors = new Map<number, Set<number>>();
  private readonly waitsFor = new Map<number, number>();

  get bytes(): number {
    const { people, states, directoryOf, managerOf, directories, waitsFor } = this;
    return people.bytes + states.byteLength + directoryOf.byteLength + managerOf.byteLength + 200 * directories.length + 400 * waitsFor.size;
  }

  /** Whether nobody manages it, or whoever does may work; or, once they are gone, somebody who waits for it. */
  allow(membership: number): boolean {
    const person = (membership < this.managerOf.length ? this.managerOf[membership]! : 0) - 1;
    if (person === NONE || this.isPresent(person)) return true;
    if (!this.isGone(person)) return false;
    for (const successor of this.successors.get(membership) ?? []) if (this.isPresent(successor)) return true;
    return false;
  }

  /** The number of the person by whom it goes: whoever manages it, or, once they are gone, the first by id of those who wait for it and may work; -1: nobody. */
  decider(membership: number): number {
    const manager = (membership < this.managerOf.length ? this.managerOf[membership]! : 0) - 1;
    if (manager === NONE || !this.isGone(manager)) return manager;
    let first = NONE;
    for (const successor of this.successors.get(membership) ?? [])
      if (this.isPresent(successor) && (first === NONE || this.people.compare(successor, first) < 0)) first = successor;
    return first;
  }

  /** -1 where nothing is known of the person. */
  numberOf(id: string): number {
    return this.people.numberOf(id);
  }

  /** Null: nobody does. */
  manages(managed_by: ManagedBy | null, membership: number): void {
    if (managed_by === null && membership >= this.managerOf.length) return;
    this.managerOf = grown(this.managerOf, membership + 1);
    this.managerOf[membership] = managed_by === null ? 0 : this.person(managed_by.directory_user_id, managed_by.directory_id) + 1;
  }

  present(id: string): void {
    const person = this.people.numberOf(id);
    if (person !== NONE) this.states[person] = PRESENT;
  }

  /** `is_gone`: for good. */
  absent({ id, directory_id, is_gone }: { readonly id: string; readonly directory_id: string; readonly is_gone: boolean }): void {
    // Before the array is read: a person who is new may make another one of it.
    const person = this.person(id, directory_id);
    this.states[person] = is_gone ? GONE : INACTIVE;
  }

  /** The memberships of the directory end with it. */
  endDirectory(id: string): void {
    this.endedDirectories.add(this.directory(id));
  }

  /** The person takes the membership over when whoever manages it is gone. */
  waits(id: string, directoryId: string, membership: number): void {
    const person = this.person(id, directoryId);
    this.waitsNoMore(id);
    this.waitsFor.set(person, membership);
    this.successors.set(membership, (this.successors.get(membership) ?? new Set<number>()).add(person));
  }

  waitsNoMore(id: string): void {
    const person = this.people.numberOf(id);
    const membership = this.waitsFor.get(person);
    if (membership === undefined) return;
    this.waitsFor.delete(person);
    const waiting = this.successors.get(membership)!;
    waiting.delete(person);
    if (waiting.size === 0) this.successors.delete(membership);
  }

  /** The number of the person, whether anything is known of them already or not. */
  person(id: string, directoryId: string): number {
    const person = this.people.add(id);
    this.states = grown(this.states, person + 1);
    this.directoryOf = grown(this.directoryOf, person + 1);
    this.directoryOf[person] = this.directory(directoryId) + 1;
    return person;
  }

  private isPresent(person: number): boolean {
    return this.states[person] === PRESENT && !this.isGone(person);
  }

  private isGone(person: number): boolean {
    return this.states[person] === GONE || (this.endedDirectories.size > 0 && this.endedDirectories.has(this.directoryOf[person]! - 1));
  }

  private directory(id: string): number {
    const known = this.directories.indexOf(id);
    return known === -1 ? this.directories.push(id) - 1 : known;
  }
}
