/** The view in which directory sync keeps which organizations there are. Whoever takes one away answers when that is known there. */
export const ORGANIZATIONS_OF_DIRECTORIES = { name: 'organizations_of_directories', version: 1 } as const;
