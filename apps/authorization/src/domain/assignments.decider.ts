import type { Decider, Decision, Fact, Parent, Sealed } from '#libs/event-sourcing/src/deciding/decider';
import { type DomainError, notFound } from '#libs/platform/src/domain-error';

import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import type { AuthorizationModelEvent } from './authorization-model.decider.ts';
import type { OrganizationRolesEvent } from './organization-roles.decider.ts';
import type { ResourceEvent } from './resource.events.ts';

// These types are the storage format: a stored name or shape is never edited.

export interface AssignedRole {
  readonly id: string;
  readonly slug: string;
}

export interface AssignedResource {
  readonly id: string;
  readonly external_id: string;
  readonly resource_type_slug: string;
}

/** What is given, whoever has it. */
interface Given {
  readonly organization_id: string;
  readonly role: AssignedRole;
  readonly resource: AssignedResource;
}

/** A role on a resource for whoever the field `Holder` names. Ids decide what it means; the texts beside them never change. */
export type Assigned<Holder extends string> = Given & { readonly [Name in Holder]: string };

export type NewAssignment<Holder extends string> = { readonly id: string } & Assigned<Holder>;

/** One that was not deleted. */
export type StoredAssignment<Category extends string, Holder extends string> = NewAssignment<Holder> & {
  readonly object: Category;
  readonly created_at: string;
};

/** Says which of the assignments of this role on this resource was the last. */
interface DeletedAssignment<Category extends string> {
  readonly object: `deleted_${Category}`;
  readonly id: string;
  readonly organization_id: string;
}

export type AssignmentState<Category extends string, Holder extends string> = StoredAssignment<Category, Holder> | DeletedAssignment<Category> | null;

export type AssignmentEvent<Category extends string, Holder extends string> =
  Fact<`${Category}.created`, NewAssignment<Holder>> | Fact<`${Category}.deleted`, { readonly id: string }>;

/** What tells one kind of assignment from another. */
interface Kind<Category extends string, Holder extends string> {
  readonly category: Category;
  /** The field that names whoever has the role. */
  readonly holder: Holder;
  /** The fact by which a holder ends, and the index that finds what it has. */
  readonly holderEnds: Parent;
  readonly sealed: Sealed<AssignmentState<Category, Holder>, AssignmentEvent<Category, Holder>>;
  readonly idPrefix: string;
  readonly noun: string;
  /** The answer to who gives a role that the holder has on the resource already; null: it stays as it is. */
  readonly duplicate: ((given: Given) => DomainError) | null;
}

/** One stream for each role that a holder may have on a resource: of two who give it at once, one does. */
export function assignments<Category extends string, Holder extends string>(kind: Kind<Category, Holder>) {
  type State = AssignmentState<Category, Holder>;
  type Event = AssignmentEvent<Category, Holder>;
  type Stored = StoredAssignment<Category, Holder>;
  type Decide = Decision<State, Event>;

  const { category, holder, idPrefix, noun, duplicate } = kind;

  const created = (data: NewAssignment<Holder>): readonly Event[] => [{ type: `${category}.created`, data }];
  const deleted = ({ id }: { readonly id: string }): readonly Event[] => [{ type: `${category}.deleted`, data: { id } }];

  const keyOf = (holderId: string, roleId: string, resourceId: string): string => `${holderId}.${roleId}.${resourceId}`;

  const evolve = (state: State, { data, at }: Event & { readonly at: string }): State => {
    // What begins says which role it gives.
    if ('role' in data) return { object: category, ...data, created_at: at };
    return state?.id === data.id ? { object: `deleted_${category}`, id: state.id, organization_id: state.organization_id } : state;
  };

  const live = (state: State): Stored | null => (state !== null && 'role' in state ? state : null);

  const assign =
    (given: Assigned<Holder>): Decide =>
    (state, context) => {
      const id = context.id(idPrefix);
      const present = live(state);
      if (present !== null) {
        if (duplicate !== null && present.id !== id) throw duplicate(given);
        return [];
      }
      // A repeated command meets what it made; once that was deleted, it stays deleted.
      if (state?.id === id) throw notFound(noun, id);
      return created({ id, ...given });
    };

  /** As one of the set that the holder is to have: what is there stays. `ordinal`: its place in what the command asks for. */
  const keep =
    (given: Assigned<Holder>, ordinal: number): Decide =>
    (state, context) => {
      const id = context.id(idPrefix, ordinal);
      // Deleted by somebody else since this very command made it.
      return live(state) !== null || state?.id === id ? [] : created({ id, ...given });
    };

  /** Whichever assignment of the role there is. */
  const removeAny = (): Decide => (state) => {
    const present = live(state);
    return present === null ? [] : deleted(present);
  };

  /** Nothing happens where another was made since. */
  const remove =
    (id: string): Decide =>
    (state) =>
      live(state)?.id === id ? deleted({ id }) : [];

  /** @throws DomainError `entity_not_found` where it is no more, or another by now */
  const require = (state: State, id: string): Stored => {
    const present = live(state);
    if (present?.id !== id) throw notFound(noun, id);
    return present;
  };

  const decider: Decider<State, Event> = {
    category,
    foldVersion: 1,
    initial: null,
    sealed: kind.sealed,
    evolve,
    organization: (state) => state?.organization_id,
    toPublicEvent: () => null,
    hangsOn: {
      reaction: 'delete-assignments-of-what-is-gone',
      parents: [
        kind.holderEnds,
        { ends: 'role.deleted' satisfies AuthorizationModelEvent['type'], index: 'role' },
        { ends: 'organization_role.deleted' satisfies OrganizationRolesEvent['type'], index: 'role' },
        { ends: 'resource.deleted' satisfies ResourceEvent['type'], index: 'resource' },
        { ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization' },
      ],
      keyOf: (row: Stored) => keyOf(row[holder], row.role.id, row.resource.id),
      end: remove,
    },
  };

  return { decider, keyOf, live, assign, keep, removeAny, remove, require };
}
