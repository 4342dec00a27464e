import { Injectable } from '@nestjs/common';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';

/** What an environment's settings allow to be done with codes. */
@Injectable()
export class CodePolicies {
  constructor(private readonly reader: EnvironmentSettingsReader) {}

  /** Codes are for those who read the mail: an environment may keep them from whoever has an API key. @throws DomainError `forbidden` */
  async requireReadable(context: RequestContext): Promise<void> {
    const { readable_codes } = await this.reader.settings(context);
    if (!readable_codes) throw new DomainError('forbidden', 'forbidden', 'The settings of the environment forbid reading codes and tokens.');
  }

  /** Whether those who are not known yet may sign up. @throws DomainError `authentication_method_not_allowed` */
  async requireMagicAuth(context: RequestContext): Promise<{ readonly maySignUp: boolean }> {
    const { sign_in_methods, sign_up } = await this.reader.settings(context);
    if (!sign_in_methods.magic_auth) throw new DomainError('forbidden', 'authentication_method_not_allowed', 'Nobody signs in with a code here.');
    return { maySignUp: sign_up };
  }

  /** @throws DomainError `email_password_auth_disabled` */
  async requirePasswords(context: RequestContext): Promise<void> {
    const { sign_in_methods } = await this.reader.settings(context);
    if (!sign_in_methods.password) throw new DomainError('forbidden', 'email_password_auth_disabled', 'Nobody signs in with a password here.');
  }
}
