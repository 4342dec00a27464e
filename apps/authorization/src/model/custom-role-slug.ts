import { CUSTOM_ROLE } from '#libs/contracts/src/roles/role';

const MAX = 48;

/** A slug made of a name, and of the command so that two roles of one name have one each: a repeated command makes the same. */
export function customRoleSlug(name: string, commandId: string): string {
  const suffix = `-${commandId.slice(-12, -4).toLowerCase()}`;
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX - CUSTOM_ROLE.length - suffix.length)
    .replace(/^-+|-+$/g, '');
  return `${CUSTOM_ROLE}${words || 'role'}${suffix}`;
}
