import { Const, Integer, ListOf, OneOf, Picked, Ref, Text, Time } from '../fields.ts';
import { AuditLogEvent } from '../audit-logs/audit-log-event.ts';

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const HASH = { pattern: BASE64, example: 'zzutuPVe00TYre4V0ypbVRktq+Kiw9Chfh5LGuaOApE=' } as const;
const HASHES = { text: { pattern: BASE64 } } as const;

/** What a trail was at a time, signed. */
export class AuditLogCheckpoint {
  @Const('audit_log_checkpoint') object!: 'audit_log_checkpoint';
  @Picked(AuditLogEvent) organization_id!: string;
  @Integer({ doc: 'How many events had arrived.', minimum: 0, example: 1000 }) size!: number;
  @Text({ doc: 'Root of the tree of these events (RFC 9162), base64.', ...HASH }) root_hash!: string;
  @Text({
    doc: 'The signed text (https://c2sp.org/tlog-checkpoint): keep it where nobody who runs the server can reach it. Its last line but the signature is the time.',
    example:
      'gatehouse/environment_01J…/org_01J…\n1000\nzzutuPVe00TYre4V0ypbVRktq+Kiw9Chfh5LGuaOApE=\ntime 2026-01-15T12:00:00.000Z\n\n— gatehouse/environment_01J…/org_01J… dremZDyT…\n',
  })
  checkpoint!: string;
  @OneOf(['intact', 'shorter', 'altered'], {
    doc: 'Whether the trail of now begins with what was signed: `shorter` where it has lost events, `altered` where it has others. Then nothing is signed any more.',
  })
  trail!: 'intact' | 'shorter' | 'altered';
  @Time({ doc: 'When it was signed.' }) created_at!: string;
}

/** That an event is in a trail. */
export class AuditLogInclusion {
  @Const('audit_log_inclusion') object!: 'audit_log_inclusion';
  @Picked(AuditLogCheckpoint) organization_id!: string;
  @Ref(() => AuditLogEvent, { doc: 'The event.' }) event_id!: string;
  @Picked(AuditLogEvent) leaf_index!: number;
  @Integer({ doc: 'Of the tree that it is proven to be in.', minimum: 1, example: 1000 }) size!: number;
  @Text({ doc: 'What the leaf is the hash of (after a byte 0): canonical JSON with the commitment of the content.', example: '{"commitment":"…","v":1}' })
  leaf_data!: string;
  @Text({
    doc: 'The commitment is SHA-256 of this (hexadecimal) and the canonical JSON of the content.',
    pattern: /^[0-9a-f]*$/,
    example: '8c1f00a3b2d44e5f60718293a4b5c6d7',
  })
  salt!: string;
  @ListOf(HASHES, { doc: 'The hashes beside its way to the root, from the leaf upwards, base64.' }) hashes!: readonly string[];
}

/** That a trail has only grown. */
export class AuditLogConsistency {
  @Const('audit_log_consistency') object!: 'audit_log_consistency';
  @Picked(AuditLogCheckpoint) organization_id!: string;
  @Integer({ doc: 'Size of the older tree.', minimum: 1, example: 1000 }) from!: number;
  @Integer({ doc: 'Size of the newer tree.', minimum: 1, example: 2000 }) to!: number;
  @ListOf(HASHES, { doc: 'The proof of RFC 9162, base64.' }) hashes!: readonly string[];
}

/** A key by which checkpoints are verified. */
export class AuditLogKey {
  @Const('audit_log_key') object!: 'audit_log_key';
  @OneOf(['Ed25519'], { doc: 'Kind of key.' }) algorithm!: 'Ed25519';
  @Text({ doc: 'Its 32 bytes, base64.', pattern: BASE64, example: 'A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=' }) public_key!: string;
  @Time({ doc: 'From when on it signs.' }) signs_from!: string;
  @Time({ doc: 'When it ended signing; null while it signs.', nullable: true }) signs_until!: string | null;
}

/** All keys that ever signed a checkpoint of an environment. */
export class AuditLogKeySet {
  @Const('list') object!: 'list';
  @ListOf(() => AuditLogKey, { doc: 'The newest last. None is ever taken away.' }) data!: readonly AuditLogKey[];
}
