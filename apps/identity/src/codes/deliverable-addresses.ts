import { Injectable } from '@nestjs/common';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import type { StoredUser } from '../domain/user.decider.ts';
import { MailDomains } from './mail-domains.ts';

/** Whether what is sent to an address could reach anybody. */
@Injectable()
export class DeliverableAddresses {
  constructor(
    private readonly domains: MailDomains,
    private readonly settings: IdentitySettings,
  ) {}

  /** `findUser`: whoever has the address. One that was proven is reached, whatever is said of its domain at the moment. @throws DomainError `email_domain_not_deliverable` */
  async require(email: string, findUser: () => Promise<Pick<StoredUser, 'email_verified'> | null>): Promise<void> {
    if (!this.settings.CHECK_MAIL_DOMAINS) return;
    const domain = email.slice(email.lastIndexOf('@') + 1);
    if (await this.domains.takesMail(domain)) return;
    if ((await findUser())?.email_verified !== true) throw new DomainError('invalid', 'email_domain_not_deliverable', `The domain '${domain}' takes no mail.`);
  }
}
