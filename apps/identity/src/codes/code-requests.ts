import { Injectable } from '@nestjs/common';
import { addressGroup } from '#libs/platform/src/address-group';
import type { RequestContext } from '#libs/platform/src/request-context';
import { foldedEmail } from '../domain/user.decider.ts';
import { PersonalLimits } from './personal-limits.ts';

/** How many codes and tokens of a kind may be sent to a mailbox, and be asked for from one network. */
const PER_MAILBOX = { most: 3, perSeconds: 60 };
const PER_MAILBOX_AND_DAY = { most: 50, perSeconds: 24 * 60 * 60 };
const PER_NETWORK = { most: 30, perSeconds: 60 };

/** Counts who asks for codes, so that nobody's mailbox is filled by strangers. */
@Injectable()
export class CodeRequests {
  constructor(private readonly limits: PersonalLimits) {}

  /** `address`: of the person who asks, where it is known. @throws DomainError `rate_limit_exceeded`, `daily_quota_exceeded` */
  async count({ environment }: RequestContext, kind: string, email: string, address?: string | null): Promise<void> {
    if (address != null) await this.limits.count(environment, `${kind} network`, addressGroup(address), PER_NETWORK);
    const mailbox = foldedEmail(email);
    await this.limits.count(environment, `${kind} mailbox`, mailbox, PER_MAILBOX);
    await this.limits.count(environment, `${kind} mailbox`, mailbox, PER_MAILBOX_AND_DAY);
  }
}
