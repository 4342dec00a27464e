/** What a mode allows of `PASSWORD_HASH_COST`: specs hash passwords by the hundred. */
export const LEAST_HASH_COST = { development: '4', production: '10' } as const;
