import { createHash } from 'node:crypto';
import { canonicalJson } from '#libs/platform/src/canonical-json';

/** Of what an event says, as base64url: as much as stays when it is gone. The salt keeps it from being guessed. */
export function commitmentOf(salt: Uint8Array, content: unknown): string {
  return createHash('sha256').update(salt).update(canonicalJson(content)).digest('base64url');
}

/** What the tree has of an event, in clear and for ever. */
export interface LeafFields {
  readonly environment: string;
  readonly organization_id: string;
  readonly id: string;
  /** ISO 8601. */
  readonly received_at: string;
  readonly commitment: string;
}

/** What a leaf is the hash of. */
export function leafDataOf({ environment, organization_id, id, received_at, commitment }: LeafFields): string {
  // Canonical as it is: the names stand in their order, and what ids, times and commitments are made of has one spelling.
  return JSON.stringify({ commitment, environment, id, organization_id, received_at, v: 1 });
}
