import { Injectable } from '@nestjs/common';
import { EventStore, type Position } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  authenticationFactorDecider,
  countingFactors,
  isRemoved,
  type AuthenticationFactorEvent,
  type BegunSignIn,
  type StoredFactor,
} from '../domain/authentication-factor.decider.ts';
import type { StoredUser } from '../domain/user.decider.ts';
import { authenticationFactorsView } from '../views/authentication-factors.view.ts';

const PAGE = 100;

/** The factors of users as the end of the log says: a sign-in is decided on nothing older. */
@Injectable()
export class SecondFactors {
  private readonly rows: Table<StoredFactor>;

  constructor(
    private readonly views: ReadYourWrites,
    private readonly events: EventStore,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(authenticationFactorsView));
  }

  /** Those that count for a sign-in of the user, the oldest first. `begun`: null where it begins now. */
  async counting({ environment, deadline }: RequestContext, user: StoredUser, begun: BegunSignIn | null): Promise<readonly StoredFactor[]> {
    await this.views.waitForHead(deadline, this.rows.definition.name);
    const where = { index: 'user_of_verified', values: [user.id] };
    const factors: StoredFactor[] = [];
    for (let after: string | undefined, more = true; more;) {
      const page = await this.rows.page(environment, { where, order: 'asc', limit: PAGE, after });
      factors.push(...page.rows.map(contentOf));
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
    const own = factors.filter((factor) => !isRemoved(factor, user));
    return countingFactors(await this.ofFirstNumber(environment, own), begun);
  }

  /** Of one that was just verified. @throws DomainError `verified_phone_number_exists` where another number of the user was verified in the same instant, and came first */
  async requireHolding(context: RequestContext, user: StoredUser, { id, type }: StoredFactor): Promise<void> {
    if (type !== 'sms' || (await this.counting(context, user, null)).some((factor) => factor.id === id)) return;
    throw anotherNumber();
  }

  /** Two numbers may be verified before either is known to be: the log says which came first, to whoever asks, and the other one does not count beside it. */
  private async ofFirstNumber(environment: string, factors: readonly StoredFactor[]): Promise<readonly StoredFactor[]> {
    const texted = factors.filter(({ type }) => type === 'sms');
    if (new Set(texted.map(({ phone_number }) => phone_number)).size < 2) return factors;
    const verified = await Promise.all(texted.map(async (factor) => ({ factor, position: await this.verifiedAt(environment, factor) })));
    const [first] = verified.sort((one, other) => (one.position < other.position ? -1 : 1));
    return factors.filter(({ type, phone_number }) => type !== 'sms' || phone_number === first!.factor.phone_number);
  }

  private async verifiedAt(environment: string, { id }: StoredFactor): Promise<Position> {
    const records = await this.events.read(streamName(authenticationFactorDecider.category, environment, id));
    return records.find(({ type }) => type === ('authentication_factor.verified' satisfies AuthenticationFactorEvent['type']))!.position;
  }
}

export function anotherNumber(): DomainError {
  return new DomainError(
    'conflict',
    'verified_phone_number_exists',
    'The user has verified another number: codes go there alone, until that factor is deleted.',
  );
}
