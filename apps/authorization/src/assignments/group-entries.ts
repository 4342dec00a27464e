import { readUlid, ulidOf, ULID_WORDS } from '#libs/platform/src/ulid-words';

const PREFIX = 'role_assignment_';
const GROUP_PREFIX = 'gra_';
const TIME_CHARACTERS = 10;
const RANDOM_CHARACTERS = 16;
/** An id that a command gives counts what the command creates in its last characters, and an assignment is the first: it never ends like this. */
const MARK = 'ZZ';
const MARK_BITS = 0x3ff;

const words = new Uint32Array(2 * ULID_WORDS);
const [ofGroup, ofMembership] = [words.subarray(0, ULID_WORDS), words.subarray(ULID_WORDS)];
const entry = new Uint32Array(ULID_WORDS);

/**
 * The id of the entry that a membership has because of an assignment of its group: as old as that, and always the same, so that lists show it in one place. 70
 * bits tell the entries of one millisecond apart. Nobody chooses ids, so they need no hash that withstands anybody; a page may make up thousands of them.
 */
export function groupEntryId(groupAssignmentId: string, membershipId: string): string {
  if (!readUlid('gra', groupAssignmentId, ofGroup) || !readUlid('om', membershipId, ofMembership))
    throw new Error(`${groupAssignmentId} and ${membershipId} are no ids of an assignment and a member.`);
  let [one, two, three] = [0x243f6a88, 0x85a308d3, 0x13198a2e];
  // Once to bring every word in, once more so that each bit of the three depends on all of them.
  for (let index = 0; index < 2 * words.length; index++) {
    one = Math.imul(one ^ words[index & 7]!, 0x9e3779b1) + three;
    one ^= one >>> 15;
    two = Math.imul(two ^ one, 0x85ebca77);
    two ^= two >>> 13;
    three = Math.imul(three + two, 0xc2b2ae3d);
    three ^= three >>> 16;
  }
  entry[0] = ofGroup[0]!;
  entry[1] = (ofGroup[1]! & 0xffff0000) | (one >>> 16);
  entry[2] = two;
  entry[3] = three | MARK_BITS;
  return PREFIX + ulidOf(entry, 0);
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
