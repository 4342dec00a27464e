/** The roles that somebody has: those that were given and live, and `fallback` where none is left. Every service that knows of roles answers by this. */
export function effectiveRoles<Role>(held: readonly Role[], isDeleted: (role: Role) => boolean, fallback: Role): readonly Role[] {
  const living = held.filter((role) => !isDeleted(role));
  return living.length > 0 ? living : [fallback];
}
