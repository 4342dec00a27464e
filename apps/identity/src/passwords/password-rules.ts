import { Injectable } from '@nestjs/common';
import type { RequestContext } from '#libs/platform/src/request-context';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import type { PasswordRules } from './password-policy.ts';

/** What the settings of an environment ask of new passwords. */
@Injectable()
export class EnvironmentPasswordRules {
  constructor(private readonly settings: EnvironmentSettingsReader) {}

  /** `email`: of whoever it is for; null: not known. */
  async of(context: RequestContext, email: string | null): Promise<PasswordRules> {
    const { password_policy: policy, mfa } = await this.settings.settings(context);
    // A factor that a user has by choice may be given up, and the password stays.
    return { policy, hasSecondFactor: mfa === 'required', email };
  }
}
