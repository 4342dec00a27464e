import { Integer, OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, created, listOf, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { User } from '../users/user.ts';
import { Invitation, InvitationWithToken } from './invitation.ts';

/** The languages that existing SDKs name. Mail comes in those that there are templates for, else in English. */
const LOCALES = [
  ...['af', 'am', 'ar', 'bg', 'bn', 'bs', 'ca', 'cs', 'da', 'de', 'de-DE', 'el', 'en', 'en-AU', 'en-CA', 'en-GB', 'en-US', 'es', 'es-419', 'es-ES', 'es-US'],
  ...['et', 'fa', 'fi', 'fil', 'fr', 'fr-BE', 'fr-CA', 'fr-FR', 'fy', 'gl', 'gu', 'ha', 'he', 'hi', 'hr', 'hu', 'hy', 'id', 'is', 'it', 'it-IT', 'ja', 'jv'],
  ...['ka', 'kk', 'km', 'kn', 'ko', 'lt', 'lv', 'mk', 'ml', 'mn', 'mr', 'ms', 'my', 'nb', 'ne', 'nl', 'nl-BE', 'nl-NL', 'nn', 'no', 'pa', 'pl', 'pt', 'pt-BR'],
  ...['pt-PT', 'ro', 'ru', 'sk', 'sl', 'sq', 'sr', 'sv', 'sw', 'ta', 'te', 'th', 'tr', 'uk', 'ur', 'uz', 'vi', 'zh', 'zh-CN', 'zh-HK', 'zh-TW', 'zu'],
];
const LOCALE = { doc: 'The language of the mail; absent: that of the user, else English.', example: 'en' } as const;

@Operation({
  post: '/user_management/invitations',
  owner: 'identity',
  summary: 'Invite somebody',
  description:
    'An address has one invitation at a time in each organization, and one to the application alone. A user who has the address is a `pending` member of the organization until the invitation is accepted, and no member once it ends otherwise. Three in 60 seconds and 50 a day are sent to an address.',
  answers: created(InvitationWithToken),
  refuses: [
    'email_already_invited_to_organization',
    'user_already_organization_member',
    'email_already_invited',
    'user_already_exists',
    'expires_in_days_too_short',
    'expires_in_days_too_long',
    'invalid_role_of_invitation',
    'organization_blocked_from_sending_invites',
    'email_domain_not_deliverable',
    'daily_quota_exceeded',
  ],
  emits: ['invitation.created', 'organization_membership.created'],
})
export class SendInvitation extends Command<InvitationWithToken> {
  @Picked(User) email!: string;
  @Optional() @Ref(() => Organization, { doc: 'The organization to join; absent: none.' }) organization_id?: string;
  @Optional() @Text({ doc: 'The role that the membership will have. Needs `organization_id`.', min: 1, max: 48, example: 'admin' }) role_slug?: string;
  @Optional() @Integer({ doc: 'How long it works, from 1 to 30 days.', default: 7 }) expires_in_days!: number;
  @Optional() @Ref(() => User, { doc: 'On whose behalf it is sent: the mail names them.' }) inviter_user_id?: string;
  @Optional() @OneOf(LOCALES, LOCALE) locale?: string;
}

@Operation({
  get: '/user_management/invitations',
  owner: 'identity',
  summary: 'List invitations',
  description: 'Those of one organization, to one address, or both; without a filter, all.',
  answers: listOf(InvitationWithToken),
})
export class ListInvitations extends PageQuery<InvitationWithToken> {
  @Optional() @Ref(() => Organization, { doc: 'Invitations to this organization.' }) organization_id?: string;
  @Optional() @Text({ doc: 'Invitations to this address, in any case.', min: 1, max: 1024, example: 'ada@acme.test' }) email?: string;
}

@Operation({
  get: '/user_management/invitations/{id}',
  owner: 'identity',
  summary: 'Get an invitation',
  answers: ok(InvitationWithToken),
})
export class GetInvitation extends Query<InvitationWithToken> {
  @Ref(() => Invitation, { doc: 'The invitation.' }) id!: string;
}

@Operation({
  get: '/user_management/invitations/by_token/{token}',
  owner: 'identity',
  summary: 'Find an invitation by its token',
  description: 'Also one that was accepted, revoked or has expired. A token that was replaced is not found.',
  answers: ok(InvitationWithToken),
})
export class FindInvitationByToken extends Query<InvitationWithToken> {
  @Text({ doc: 'The token that was sent last.', min: 1, max: 255, secret: true }) token!: string;
}

@Operation({
  post: '/user_management/invitations/{id}/accept',
  owner: 'identity',
  summary: 'Accept an invitation',
  description:
    'For the user who has the address. Who that is has to be known to your application: the address is not verified by it. Sign-in accepts an invitation by its token.',
  answers: ok(InvitationWithToken),
  refuses: ['invalid_invite', 'invite_not_pending', 'invite_has_accepted_user_id'],
  emits: ['invitation.accepted', 'organization_membership.created', 'organization_membership.updated'],
})
export class AcceptInvitation extends Command<InvitationWithToken> {
  @Ref(() => Invitation, { doc: 'The invitation.' }) id!: string;
}

@Operation({
  post: '/user_management/invitations/{id}/resend',
  owner: 'identity',
  summary: 'Send an invitation again',
  description: 'With another token: the one before works no more. It works for as many days as at first, from now on.',
  answers: ok(InvitationWithToken),
  refuses: [
    'invite_expired',
    'invite_revoked',
    'invite_accepted',
    'organization_blocked_from_sending_invites',
    'email_domain_not_deliverable',
    'daily_quota_exceeded',
  ],
  emits: ['invitation.resent'],
})
export class ResendInvitation extends Command<InvitationWithToken> {
  @Ref(() => Invitation, { doc: 'The invitation.' }) id!: string;
  @Optional() @OneOf(LOCALES, { ...LOCALE, doc: 'The language of the mail; absent: as before.' }) locale?: string;
}

@Operation({
  post: '/user_management/invitations/{id}/revoke',
  owner: 'identity',
  summary: 'Revoke an invitation',
  answers: ok(InvitationWithToken),
  refuses: ['invite_not_pending'],
  emits: ['invitation.revoked', 'organization_membership.deleted'],
})
export class RevokeInvitation extends Command<InvitationWithToken> {
  @Ref(() => Invitation, { doc: 'The invitation.' }) id!: string;
}
