/** The roles that somebody has: those that were given and live, and `fallback` where none is left. Every service that knows of roles answers by this. */
export function effectiveRoles<Role>(held: readonly Role[], isDeleted: (role: Role) => boolean, fallback: Role): readonly Role[] {
  const live = held.filter((role) => !isDeleted(role));
  return live.length > 0 ? live : [fallback];
}
