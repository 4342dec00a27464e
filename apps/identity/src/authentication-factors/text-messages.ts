import { Injectable } from '@nestjs/common';
import { PlatformSettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import { Metrics } from '#libs/platform/src/metrics';
import type { RequestContext } from '#libs/platform/src/request-context';
import { PersonalLimits, type PersonalLimit } from '../codes/personal-limits.ts';
import { holderOfFactor, type StoredFactor } from '../domain/authentication-factor.decider.ts';
import type { StoredSettings } from '../domain/environment-settings.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { phoneNumberOf, wrongNumber, type PhoneNumber } from './phone-numbers.ts';

const DAY = 24 * 60 * 60;
const PER_NUMBER = { most: 3, perSeconds: 60 * 60 };
const PER_PERSON = { most: 5, perSeconds: DAY };
const LIMITS = ['person', 'number', 'budget'] as const;

/** Who may be sent a text, and how many: whoever rents numbers earns by each that is sent there. */
@Injectable()
export class TextMessages {
  private readonly reached;

  constructor(
    private readonly settings: EnvironmentSettingsReader,
    private readonly limits: PersonalLimits,
    private readonly platform: PlatformSettings,
    metrics: Metrics,
  ) {
    this.reached = metrics.counter({
      name: 'text_limits_reached_total',
      help: 'Texts that were asked for and not sent: as many as may be for a person or a number, or as the environment may spend on a day, were sent.',
      labels: ['limit'],
    });
    for (const limit of LIMITS) this.reached.inc({ limit }, 0);
  }

  /** How texts to this number are sent; null where they are not. */
  async wayTo({ environment }: Pick<RequestContext, 'environment'>, { country }: PhoneNumber): Promise<StoredSettings['sms'] | null> {
    const { sms } = await this.settings.settings({ environment });
    return this.isOn(sms) && country !== null && sms.countries.includes(country) ? sms : null;
  }

  /** @throws DomainError `sms_not_available`, `invalid_request_parameters` */
  async require(context: RequestContext, number: string): Promise<PhoneNumber> {
    const { sms } = await this.settings.settings(context);
    if (!this.isOn(sms)) throw notAvailable(sms);
    const found = await phoneNumberOf(number);
    if (found.country === null || !sms.countries.includes(found.country))
      throw wrongNumber('country_not_allowed', 'The settings of the environment send no texts to the country of phone_number.');
    return found;
  }

  /**
   * Counts a text before it is sent: for its person, its number, and of what the environment may spend on a day, in this order, so that whoever is refused takes
   * nothing from others.
   * @throws DomainError `daily_quota_exceeded`, `rate_limit_exceeded`
   */
  async count(context: RequestContext, factor: StoredFactor, { number }: PhoneNumber): Promise<void> {
    const { environment } = context;
    // Of whom nobody knows who it is, the number stands for the person: factors of one number may be many.
    const person = factor.user_id === null ? number : holderOfFactor(factor);
    const { daily_budget } = (await this.settings.settings(context)).sms;
    await this.countOne(environment, 'person', person, PER_PERSON);
    await this.countOne(environment, 'number', number, PER_NUMBER);
    await this.countOne(environment, 'budget', environment, { most: daily_budget, perSeconds: DAY });
  }

  private async countOne(environment: string, what: (typeof LIMITS)[number], whom: string, limit: PersonalLimit): Promise<void> {
    try {
      await this.limits.count(environment, `sms ${what}`, whom, limit);
    } catch (error) {
      if (error instanceof DomainError && error.kind === 'limited') this.reached.inc({ limit: what });
      throw error;
    }
  }

  /** Development mode without a webhook shows texts in its mailbox. */
  private isOn({ countries, webhook_url, webhook_secret }: StoredSettings['sms']): boolean {
    const isShown = webhook_url === null && this.platform.GATEHOUSE_MODE === 'development';
    return countries.length > 0 && (isShown || (webhook_url !== null && webhook_secret !== null));
  }
}

function notAvailable({ countries, webhook_url }: StoredSettings['sms']): DomainError {
  const missing = countries.length === 0 ? 'countries' : webhook_url === null ? 'webhook_url' : 'webhook_secret';
  return new DomainError('conflict', 'sms_not_available', `The settings of the environment have no sms.${missing}: no text messages are sent.`);
}
