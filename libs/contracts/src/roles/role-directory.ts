/** The view in which identity keeps which roles there are. Whoever takes one away answers when that is known there. */
export const ROLE_DIRECTORY = { name: 'role_directory', version: 3 } as const;
