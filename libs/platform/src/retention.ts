/** How long each kind of data is kept: the one table that the docs print and the sweepers work from. `null`: for ever. */
export const RETENTION = {
  log: { data: 'The event log', setting: null },
  events_feed: { data: 'The events feed', setting: 'EVENTS_RETENTION' },
  webhook_deliveries: { data: 'Webhook deliveries and their attempts', setting: 'DELIVERIES_RETENTION' },
  sessions: { data: 'Sessions that are over; up to a day longer', setting: 'SESSIONS_RETENTION' },
  audit_trails: {
    data: 'Audit trails of organizations that were deleted: so long at most; audit events whose time has passed: up to an hour longer',
    setting: 'SWEEP_INTERVAL',
  },
  administration_origins: { data: 'From where an environment was administered: a year and so long at most', setting: 'SWEEP_INTERVAL' },
  audit_exports: {
    data: 'Files of exports of audit trails, when their seven days are over or their organization is deleted: so long at most',
    setting: 'SWEEP_INTERVAL',
  },
  short_lived: { data: 'Idempotency keys with their answers, counters, leases', setting: 'IDEMPOTENCY_RETENTION' },
} as const satisfies Record<string, { readonly data: string; readonly setting: string | null }>;

/** What a sweeper may be registered for. */
export type SweptData = { [Name in keyof typeof RETENTION]: (typeof RETENTION)[Name]['setting'] extends null ? never : Name }[keyof typeof RETENTION];

/** The counter of what was removed, labelled with the data's name. */
export const SWEPT_METRIC = 'gatehouse_swept_total';
