import { eventDataOf, isPublicEventName } from '#libs/contracts/src/events';
import type { Fact, Sealed, Sealing } from '../deciding/decider.ts';
import type { SealedPart } from '../log/event-store.ts';
import { markedIn } from './marked-fields.ts';
import { covers, lasting } from './sealed-paths.ts';

/** What a decider declares, read without its types. */
export interface DeclaredSealing {
  readonly category: string;
  readonly sealed: Readonly<Record<string, readonly { readonly fields: readonly string[] }[] | null>>;
}

/** Of what each declaration names. */
const paths = new WeakMap<object, readonly string[]>();

/** What is sealed in the record of a fact. */
export function sealedPartsOf<State, Event extends Fact>(
  sealed: Sealed<State, Event>,
  fact: Event & { readonly at: string },
  about: { readonly key: string; readonly before: State; readonly after: State },
): readonly SealedPart[] {
  const sealings = (sealed[fact.type as Event['type']] ?? []) as unknown as readonly Sealing<State, Event>[];
  return sealings.map((sealing) => ({ of: sealing.of(fact, about), fields: pathsOf(sealing) }));
}

function pathsOf(sealing: { readonly fields: readonly string[] }): readonly string[] {
  let known = paths.get(sealing);
  if (known === undefined) paths.set(sealing, (known = lasting(sealing.fields.flatMap((field) => [`data.${field}`, `subject.${field}`]))));
  return known;
}

/** @throws Error where the class that an event announces marks a field as personal, and the decider does not say whose it is */
export function requireDeclared(deciders: readonly DeclaredSealing[]): void {
  for (const { category, sealed } of deciders)
    for (const [type, sealings] of Object.entries(sealed)) {
      const announced = isPublicEventName(type) ? eventDataOf(type) : null;
      const declared = (sealings ?? []).flatMap(({ fields }) => fields);
      const missing = announced === null ? [] : markedIn(announced).personal.filter((path) => !covers(declared, path));
      if (missing.length > 0)
        throw new Error(`The decider of ${category} does not declare whose ${missing.join(', ')} of ${type} are, which ${announced!.name} marks as personal.`);
    }
}

/** What a view declares, read without its types. */
interface DeclaredView {
  readonly name: string;
  readonly handles: readonly string[];
  readonly personal?: unknown;
}

/** @throws Error where a view folds facts of which something is sealed, and does not say what of its rows is personal */
export function requirePersonalDeclared(views: readonly DeclaredView[], deciders: readonly DeclaredSealing[]): void {
  const sealed = new Set(deciders.flatMap((decider) => Object.entries(decider.sealed).flatMap(([type, sealings]) => (sealings === null ? [] : [type]))));
  for (const { name, handles, personal } of views) {
    const folded = handles.filter((type) => sealed.has(type));
    if (folded.length > 0 && personal === undefined)
      throw new Error(`The view ${name} folds ${folded.join(', ')}, of which something is sealed, and does not declare what of its rows is personal.`);
  }
}
