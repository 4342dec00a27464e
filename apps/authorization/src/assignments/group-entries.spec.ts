import { derivedId, isIdOf, newCommandId } from '#libs/platform/src/ids';
import { areOfSameTime, boundsOfSameTime, groupEntryId, mayBeGroupEntry } from './group-entries.ts';

const command = newCommandId(Date.parse('2026-01-15T12:00:00.000Z'));
const assignment = `gra_${derivedId(command, 0)}`;
const another = `gra_${derivedId(command, 1)}`;
const later = `gra_${newCommandId(Date.parse('2026-01-15T12:00:00.001Z'))}`;
const member = (number: number) => `om_${derivedId('01KEZQS4C00000000000000000', number)}`;

describe('the id of what a membership has through a group', () => {
  const id = groupEntryId(assignment, member(0));

  it('is that of a role assignment, and always the same', () => {
    expect(isIdOf('role_assignment', id)).toBe(true);
    expect(groupEntryId(assignment, member(0))).toBe(id);
  });

  it('is another for each assignment and each member', () => {
    const members = Array.from({ length: 5_000 }, (_, number) => member(number));
    const ids = [assignment, another, later].flatMap((each) => members.map((one) => groupEntryId(each, one)));
    expect(new Set(ids).size).toBe(15_000);
    // Also where only as many bits are looked at as so many random ones may need: neighbours give nothing alike.
    const parts = (from: number, to: number) => new Set(ids.map((each) => each.slice(from, to))).size;
    for (const from of [26, 30, 34]) expect(parts(from, from + 6)).toBeGreaterThan(14_985);
  });

  it('is told from the id of an assignment that is stored', () => {
    expect(mayBeGroupEntry(id)).toBe(true);
    expect(mayBeGroupEntry(`role_assignment_${command}`)).toBe(false);
  });

  it('lies beside those of the assignments of its millisecond, between earlier and later ones', () => {
    const { from, to } = boundsOfSameTime(id);
    for (const each of [assignment, another]) expect(each >= from && each <= to).toBe(true);
    expect(later > to).toBe(true);
    expect(areOfSameTime(assignment, another)).toBe(true);
    expect(areOfSameTime(assignment, later)).toBe(false);
    expect(groupEntryId(later, member(0)) > id).toBe(true);
  });
});
