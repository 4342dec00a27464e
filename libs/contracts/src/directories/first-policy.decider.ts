import type { DirectoryPolicy } from './directory.ts';

/** What a directory begins with where nothing else is asked for. */
export const FIRST_POLICY: DirectoryPolicy = { follows: 'off', unverified_domains: 'ignore', on_delete: 'release' };
