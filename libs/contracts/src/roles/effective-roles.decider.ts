/** The roles that somebody was given: by hand, and by groups of a directory. */
export interface GivenRoles<Role> {
  readonly manual: readonly Role[];
  readonly mapped: readonly Role[];
}

/** The roles that somebody has: of those that live, what groups give, or else what was given by hand; `fallback` where none is left. Every service that knows of roles answers by this. */
export function effectiveRoles<Role>({ manual, mapped }: GivenRoles<Role>, isDeleted: (role: Role) => boolean, fallback: Role): readonly Role[] {
  for (const given of [mapped, manual]) {
    const live = given.filter((role) => !isDeleted(role));
    if (live.length > 0) return live;
  }
  return [fallback];
}
