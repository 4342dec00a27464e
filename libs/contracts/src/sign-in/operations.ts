import { Nested, Optional, Text } from '../fields.ts';
import { Command, ok, Operation } from '../operation.ts';
import { Authentication, SessionSealing } from './authentication.ts';

/** Beyond what any code or token of this server has. */
const LONG = 1_024;
const GRANTS = `| \`grant_type\` | fields |
| --- | --- |
| \`password\` | \`client_secret\`, \`email\`, \`password\`; \`invitation_token\` to accept an invitation |
| \`authorization_code\` | \`code\`; \`code_verifier\` where the sign-in began with a code challenge; without \`client_secret\` always |
| \`urn:ietf:params:oauth:grant-type:device_code\` | \`device_code\` |
| \`refresh_token\` | \`refresh_token\`; \`organization_id\` to switch; \`client_secret\` where the session began with one |
| \`urn:workos:oauth:grant-type:magic-auth:code\` | \`client_secret\`, \`email\`, \`code\`; \`invitation_token\` to accept an invitation |
| \`urn:workos:oauth:grant-type:email-verification:code\` | \`client_secret\`, \`code\`, \`pending_authentication_token\` |
| \`urn:workos:oauth:grant-type:radar-email-challenge:code\` | \`client_secret\`, \`code\`, \`radar_challenge_id\`, \`pending_authentication_token\` |
| \`urn:workos:oauth:grant-type:mfa-totp\` | \`client_secret\`, \`code\`, \`authentication_challenge_id\`, \`pending_authentication_token\` |
| \`urn:workos:oauth:grant-type:organization-selection\` | \`client_secret\`, \`organization_id\`, \`pending_authentication_token\` |

Where more is asked for, the answer is 403 (400 for what only another way to sign in helps with) with a \`code\` that says what, and a \`pending_authentication_token\` to go on with for ten minutes.

The first proof of an address that comes without the password of its user, such as a magic code, removes password, factors and sessions of before: somebody else may have set them.`;

@Operation({
  post: '/user_management/authenticate',
  owner: 'identity',
  environmentFrom: 'client_id',
  isOAuth: true,
  summary: 'Sign in, or go on being signed in',
  description: GRANTS,
  answers: ok(Authentication),
  refuses: [
    'invalid_request',
    'invalid_client',
    'invalid_grant',
    'code_challenge_not_found',
    'authorization_pending',
    'slow_down',
    'access_denied',
    'expired_token',
    'invalid_credentials',
    'invalid_one_time_code',
    'one_time_code_previously_used',
    'one_time_code_expired',
    'one_time_code_too_many_attempts',
    'user_mismatch',
    'invalid_pending_authentication_token',
    'invalid_organization_id',
    'organization_membership_not_found',
    'invitation_invalid',
    'invitation_cannot_be_used_for_email',
    'email_password_auth_disabled',
    'authentication_method_not_allowed',
    'sign_in_blocked',
    'password_reset_required',
    'radar_challenge',
    'email_verification_required',
    'mfa_enrollment',
    'mfa_enrollment_at_refresh',
    'mfa_challenge',
    'sso_required',
    'organization_authentication_methods_required',
    'organization_selection_required',
    'token_too_big',
    'too_many_requests',
  ],
  emits: [
    'authentication.password_succeeded',
    'authentication.password_failed',
    'authentication.magic_auth_succeeded',
    'authentication.magic_auth_failed',
    'authentication.email_verification_succeeded',
    'authentication.email_verification_failed',
    'authentication.radar_risk_detected',
    'radar.challenge_created',
    'authentication.mfa_succeeded',
    'authentication.mfa_failed',
    'email_verification.created',
    'user.updated',
    'invitation.accepted',
    'organization_membership.created',
    'organization_membership.updated',
    'session.created',
    'session.revoked',
  ],
})
export class Authenticate extends Command<Authentication> {
  @Text({ doc: 'Names the environment.', max: 128, example: 'client_01JG8K3M0Q5R7T9V1X3Z5B7D9F' }) client_id!: string;
  @Optional() @Text({ doc: 'What is shown, as the table has it.', max: 255, example: 'password' }) grant_type?: string;
  @Optional() @Text({ doc: 'An API key of the environment: an application that can keep a secret shows it.', max: 512, secret: true }) client_secret?: string;
  @Optional() @Text({ doc: 'The address of the user.', max: 1_024, example: 'ada@acme.test' }) email?: string;
  @Optional() @Text({ doc: 'The password of the user.', max: 1_024, secret: true }) password?: string;
  @Optional() @Text({ doc: 'The code that the user was sent.', max: LONG, secret: true }) code?: string;
  @Optional() @Text({ doc: 'What the code challenge of the sign-in was made of (RFC 7636).', max: LONG, secret: true }) code_verifier?: string;
  @Optional() @Text({ doc: 'The code of the device.', max: LONG, secret: true }) device_code?: string;
  @Optional() @Text({ doc: 'From the last answer.', max: LONG, secret: true }) refresh_token?: string;
  @Optional() @Text({ doc: 'From the answer that asked for more.', max: LONG, secret: true }) pending_authentication_token?: string;
  @Optional()
  @Text({ doc: 'The challenge whose code this is: of a factor that the answer named, or of the first that the user enrols.', max: 128 })
  authentication_challenge_id?: string;
  @Optional() @Text({ doc: 'The organization that the user chose.', max: 128 }) organization_id?: string;
  @Optional()
  @Text({ doc: 'From an invitation to this address: it is accepted where the session begins, in its organization.', max: LONG, secret: true })
  invitation_token?: string;
  @Optional() @Text({ doc: 'The challenge that was told of.', max: LONG }) radar_challenge_id?: string;
  @Optional()
  @Text({ doc: 'An attempt that was assessed in the last ten minutes, for the same address: its verdict counts for this sign-in, once.', max: 128 })
  radar_auth_attempt_id?: string;
  @Optional() @Text({ doc: 'What you call the device of the person. Read beside `client_secret` alone.', max: 1_024 }) device_id?: string;
  @Optional() @Nested(() => SessionSealing, { doc: 'To have the session sealed for a cookie, at a refresh.' }) session?: SessionSealing;
  @Optional() @Text({ doc: 'Address of the person. Read beside `client_secret` alone; else the connection tells it.', max: 64 }) ip_address?: string;
  @Optional() @Text({ doc: 'Browser of the person. Read beside `client_secret` alone; else the connection tells it.', max: 2_048 }) user_agent?: string;
}
