import { Const, Id, OneOf, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';
import { User } from '../users/user.ts';

const INVITATION_STATES = ['pending', 'accepted', 'expired', 'revoked'] as const;
export type InvitationState = (typeof INVITATION_STATES)[number];

/** Somebody was asked, by mail, to use the application, or to join an organization in it. Events show it without the token. */
export class Invitation {
  @Const('invitation') object!: 'invitation';
  @Id('invitation', { doc: 'Identifies it; not a secret.' }) id!: string;
  @Text({ doc: 'Who is invited; empty once the person was erased.', max: 254, personal: true, example: 'ada@acme.test' }) email!: string;
  @OneOf(INVITATION_STATES, { doc: 'Only a pending invitation can be accepted.' }) state!: InvitationState;
  @Time({ doc: 'When it was accepted.', nullable: true }) accepted_at!: string | null;
  @Time({ doc: 'When it was revoked.', nullable: true }) revoked_at!: string | null;
  @Time({ doc: 'When it stops working.' }) expires_at!: string;
  @Ref(() => Organization, { doc: 'The organization to join; null: none.', nullable: true }) organization_id!: string | null;
  @Ref(() => User, { doc: 'On whose behalf it was sent.', nullable: true }) inviter_user_id!: string | null;
  @Ref(() => User, { doc: 'Who accepted it.', nullable: true }) accepted_user_id!: string | null;
  @Text({ doc: 'The role that the membership will have; null: the default.', max: 48, nullable: true, example: 'admin' }) role_slug!: string | null;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

export class InvitationWithToken extends Invitation {
  @Text({ doc: 'To be sent to the address and to nobody else. Another one takes its place when the invitation is sent again.', secret: true }) token!: string;
  @Text({ doc: 'The page of your application (`APPLICATION_URL`) with the token.', secret: true, example: 'https://acme.test/invite?invitation_token=…' })
  accept_invitation_url!: string;
}
