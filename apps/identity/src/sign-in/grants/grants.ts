import { Injectable } from '@nestjs/common';
import type { Authenticate } from '#libs/contracts/src/sign-in/operations';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import type { SignInClient } from '../sign-in-client.ts';
import { invalidRequest } from '../sign-in-refusals.ts';
import { AuthorizationCodeGrant } from './authorization-code.grant.ts';
import { DeviceCodeGrant } from './device-code.grant.ts';
import { EmailVerificationGrant } from './email-verification.grant.ts';
import type { Given, Grant, RenewingGrant } from './grant.ts';
import { MagicAuthGrant } from './magic-auth.grant.ts';
import { MfaTotpGrant } from './mfa-totp.grant.ts';
import { OrganizationSelectionGrant } from './organization-selection.grant.ts';
import { PasswordGrant } from './password.grant.ts';
import { RadarEmailChallengeGrant } from './radar-email-challenge.grant.ts';
import { RefreshTokenGrant } from './refresh-token.grant.ts';

const OWN_VENDOR = 'gatehouse';
/** Existing SDKs can send it; nothing here asks for a code by text message, so that there is none to show. */
const RADAR_SMS_CHALLENGE = 'urn:{vendor}:oauth:grant-type:radar-sms-challenge:code';

/** Every grant that there is. */
export const GRANTS = [
  PasswordGrant,
  MagicAuthGrant,
  EmailVerificationGrant,
  RadarEmailChallengeGrant,
  MfaTotpGrant,
  OrganizationSelectionGrant,
  RefreshTokenGrant,
  AuthorizationCodeGrant,
  DeviceCodeGrant,
];

/** Finds the grant that a request names. */
@Injectable()
export class Grants {
  private readonly byType: ReadonlyMap<string, Grant | RenewingGrant>;
  private readonly smsTypes: ReadonlySet<string>;

  constructor(
    password: PasswordGrant,
    magicAuth: MagicAuthGrant,
    emailVerification: EmailVerificationGrant,
    radarEmailChallenge: RadarEmailChallengeGrant,
    mfaTotp: MfaTotpGrant,
    organizationSelection: OrganizationSelectionGrant,
    refreshToken: RefreshTokenGrant,
    authorizationCode: AuthorizationCodeGrant,
    deviceCode: DeviceCodeGrant,
    { GRANT_TYPE_VENDOR }: IdentitySettings,
  ) {
    const all = [password, magicAuth, emailVerification, radarEmailChallenge, mfaTotp, organizationSelection, refreshToken, authorizationCode, deviceCode];
    const vendors = [GRANT_TYPE_VENDOR, OWN_VENDOR];
    this.smsTypes = new Set(vendors.map((vendor) => RADAR_SMS_CHALLENGE.replace('{vendor}', vendor)));
    this.byType = new Map(all.flatMap((grant) => vendors.map((vendor) => [grant.type.replace('{vendor}', vendor), grant] as const)));
  }

  /** @throws DomainError `invalid_request` */
  named(type: string | undefined): Grant | RenewingGrant {
    const grant = this.byType.get(type ?? '');
    if (type !== undefined && this.smsTypes.has(type)) throw invalidRequest(`'${type}' is not supported: this server sends no challenges by text message.`);
    // Not what was given: whoever mixes fields up may have put a token there.
    if (grant === undefined) throw invalidRequest(type === undefined ? 'grant_type is required.' : 'grant_type is none of this server.');
    return grant;
  }
}

/** What the grant needs, is there. @throws DomainError `invalid_request` that names the first that is missing */
export function requireGiven({ needs, needsSecret }: Grant | RenewingGrant, operation: Authenticate, { hasSecret }: SignInClient): Given {
  for (const name of needs) if (!operation[name]) throw invalidRequest(`${name} is required.`);
  if (needsSecret && !hasSecret) throw invalidRequest('client_secret is required.');
  return operation as Given;
}
