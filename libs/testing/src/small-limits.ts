/** Limits that a spec can reach: settings of the cluster that specs share, and of a suite of whose limits a spec says something. */
export const SMALL_LIMITS = { MEMBERS_PER_GROUP: '3', RESOURCES_PER_TYPE: '20', WEBHOOK_ENDPOINTS_PER_ENVIRONMENT: '5' } as const;
