import { organizationRolesDecider } from '#apps/authorization/src/domain/organization-roles.decider';
import { membershipDecider } from '#apps/identity/src/domain/membership.decider';
import { organizationDecider } from '#apps/identity/src/domain/organization.decider';
import { SHAPES, type EventShapes, type Upcast } from '#libs/contracts/src/shapes';

/** With `?writes=1`: the release before that, which reads the second shape and does not write it yet. */
const writes = new URL(import.meta.url).searchParams.get('writes');

/** The first release that has a second shape of the events of a type, as its contract and its decider say. */
function declare(decider: EventShapes, type: string, upcast: Upcast): void {
  const shapes: EventShapes = { upcasts: { [type]: [upcast] }, ...(writes !== null && { writes: { [type]: Number(writes) } }) };
  Object.assign(decider, shapes);
  (SHAPES as EventShapes[]).push(shapes);
}

// Imported before a program of the build, it makes that one of a later release: two builds of one source would differ in this, and in their own names.
declare(organizationDecider, 'organization.updated', ({ data, subject }) => ({
  data,
  // Where it can be seen: the feed shows it.
  subject: { ...(subject as object), metadata: { read_as: 'second shape' } },
}));
declare(organizationRolesDecider, 'organization_role.updated', (event) => event);
declare(membershipDecider, 'organization_membership.updated', (event) => event);
