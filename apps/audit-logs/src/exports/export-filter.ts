import type { TermKind } from '../domain/audit-trail.decider.ts';
import type { ExportedContent } from '../export-format/exported-event.ts';

/** What an export has of the events of its range: of each list that is given, one has to match. */
export interface ExportFilter {
  readonly actions?: readonly string[] | undefined;
  readonly actor_names?: readonly string[] | undefined;
  readonly actor_ids?: readonly string[] | undefined;
  readonly target_types?: readonly string[] | undefined;
}

export function isMatch({ actions, actor_names, actor_ids, target_types }: ExportFilter, { action, actor, targets }: ExportedContent): boolean {
  return (
    (actions === undefined || actions.includes(action)) &&
    (actor_names === undefined || (actor.name !== null && actor_names.includes(actor.name))) &&
    (actor_ids === undefined || actor_ids.includes(actor.id)) &&
    (target_types === undefined || targets.some(({ type }) => target_types.includes(type)))
  );
}

/** What events that match are found by: of each of these, one. */
export function soughtTerms({
  actions,
  actor_names,
  actor_ids,
  target_types,
}: ExportFilter): readonly (readonly [kind: TermKind, values: readonly string[]])[] {
  const given = { action: actions, actor_name: actor_names, actor_id: actor_ids, target_type: target_types };
  return Object.entries(given).flatMap(([kind, values]) => (values === undefined ? [] : [[kind as TermKind, values] as const]));
}
