import { ScimError, invalidValue } from '../domain/scim-domain-error.ts';
import { fits, termsOf, type ScimFilter } from '../domain/scim-filter.decider.ts';
import type { PatchOperation } from '../domain/scim-patch.decider.ts';
import { GROUP_SCHEMA, isObject, textOf, valueOf, type Attributes } from '../domain/scim-values.decider.ts';

/** What one operation does to the members of a group. */
export type MemberOperation =
  | { readonly op: 'add' | 'remove' | 'replace'; readonly ids: readonly string[] }
  /** Those that fit. */
  | { readonly op: 'remove_fitting'; readonly filter: ScimFilter };

const OWN = GROUP_SCHEMA.toLowerCase();
const MAX_MEMBERS = 100_000;
/** Comparisons of members with parts of filters that one PATCH may take: nobody else is answered meanwhile. */
const MAX_COMPARISONS = 1_000_000;

/** @throws ScimError `invalidPath`, `invalidValue` */
export function memberOperation({ op, path: { filter, sub }, value }: PatchOperation): MemberOperation {
  if (sub !== null && sub.toLowerCase() !== 'value') throw new ScimError(400, 'mutability', 'Members are added and removed, and not changed.');
  if (filter !== null) {
    if (op !== 'remove') throw new ScimError(400, 'mutability', 'Members are added and removed, and not changed.');
    const ids = namedIn(filter);
    return ids === null ? { op: 'remove_fitting', filter } : { op: 'remove', ids };
  }
  // Without a value, all of them.
  if (op === 'remove') return value === undefined || value === null ? { op: 'replace', ids: [] } : { op: 'remove', ids: memberIds(value) };
  return { op, ids: memberIds(value) };
}

/** The members that a whole group is sent with, their name as it is or with that of the schema; undefined where they are not named. */
export function membersSent(body: Attributes): unknown {
  let sent = valueOf(body, 'members');
  for (const [name, value] of Object.entries(body)) {
    const folded = name.toLowerCase();
    if (folded === `${OWN}:members`) sent = value;
    else if (folded === OWN && isObject(value)) sent = membersSent(value) ?? sent;
  }
  return sent;
}

/** The ids of members as they are sent. @throws ScimError `invalidValue` */
export function memberIds(value: unknown): readonly string[] {
  const items = Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];
  if (items.length > MAX_MEMBERS) throw invalidValue(`A request names at most ${MAX_MEMBERS} members.`);
  const ids = items.map((item) => (isObject(item) ? textOf(valueOf(item, 'value')) : textOf(item)));
  if (ids.includes(null)) throw invalidValue('A member has the id of a User as its value.');
  return [...new Set(ids as string[])];
}

/** The ids that a filter names and that alone fit it; null where it says more. */
function namedIn(filter: ScimFilter): readonly string[] | null {
  if (filter.op === 'or') {
    const named = filter.filters.map(namedIn);
    return named.includes(null) ? null : (named as (readonly string[])[]).flat();
  }
  return filter.op === 'eq' && filter.path.toLowerCase() === 'value' && typeof filter.value === 'string' ? [filter.value] : null;
}

/** Whether who is a member has to be known of everybody, and not of those alone who are named. */
export function needsAll(operations: readonly MemberOperation[]): boolean {
  return operations.some(({ op }) => op === 'replace' || op === 'remove_fitting');
}

export function namedBy(operations: readonly MemberOperation[]): readonly string[] {
  return [...new Set(operations.flatMap((operation) => ('ids' in operation ? operation.ids : [])))];
}

/** Members after the operations, one after the other, of those who were looked at. @throws ScimError `tooMany` where filters have too much to look at */
export function membersAfter(before: ReadonlySet<string>, operations: readonly MemberOperation[]): ReadonlySet<string> {
  let members = new Set(before);
  let comparisons = 0;
  for (const operation of operations) {
    if (operation.op === 'remove_fitting' && (comparisons += members.size * termsOf(operation.filter)) > MAX_COMPARISONS)
      throw new ScimError(400, 'tooMany', 'The filters leave too many members to be looked at: name the members.');
    if (operation.op === 'remove_fitting') members = new Set([...members].filter((id) => !fits({ value: id, type: 'User' }, operation.filter, 'members.')));
    else if (operation.op === 'replace') members = new Set(operation.ids);
    else if (operation.op === 'add') for (const id of operation.ids) members.add(id);
    else for (const id of operation.ids) members.delete(id);
  }
  return members;
}
