/** The view in which audit logs keep events, and which organizations there are. Whoever takes one away answers when that is known there. */
export const AUDIT_TRAIL_VIEW = { name: 'audit_trail', version: 3 } as const;
