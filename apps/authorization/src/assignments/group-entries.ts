import { hash } from 'node:crypto';
import { BASE_32 } from '#libs/platform/src/ids';

const PREFIX = 'role_assignment_';
const GROUP_PREFIX = 'gra_';
const TIME_CHARACTERS = 10;
const RANDOM_CHARACTERS = 16;
/** An id that a command gives counts what the command creates in its last characters, and an assignment is the first: it never ends like this. */
const MARK = 'ZZ';

/**
 * The id of the entry that a membership has because of an assignment of its group: as old as that, and always the same, so that lists show it in one place. 70
 * bits tell the entries of one millisecond apart.
 */
export function groupEntryId(groupAssignmentId: string, membershipId: string): string {
  const digest = hash('sha256', `${groupAssignmentId} ${membershipId}`, 'buffer');
  let random = '';
  for (let index = 0; index < RANDOM_CHARACTERS - MARK.length; index++) random += BASE_32[digest[index]! & 31];
  return PREFIX + timeIn(groupAssignmentId, GROUP_PREFIX) + random + MARK;
}

/** Whether an id may be that of such an entry: those are not stored, so nothing else tells. */
export function mayBeGroupEntry(id: string): boolean {
  return id.endsWith(MARK);
}

/** What the ids of the groups' assignments are bounded by whose entries are as old as this one. */
export function boundsOfSameTime(entryId: string): { readonly from: string; readonly to: string } {
  const time = GROUP_PREFIX + timeIn(entryId, PREFIX);
  return { from: time, to: time + 'Z'.repeat(RANDOM_CHARACTERS) };
}

/** Whether the entries of two groups' assignments may lie between one another. */
export function areOfSameTime(one: string, other: string): boolean {
  return timeIn(one, GROUP_PREFIX) === timeIn(other, GROUP_PREFIX);
}

function timeIn(id: string, prefix: string): string {
  return id.slice(prefix.length, prefix.length + TIME_CHARACTERS);
}
