import { Injectable } from '@nestjs/common';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { countingFactors, isRemoved, type BegunSignIn, type StoredFactor } from '../domain/authentication-factor.decider.ts';
import type { StoredUser } from '../domain/user.decider.ts';
import { authenticationFactorsView } from '../views/authentication-factors.view.ts';

const PAGE = 100;

/** The factors of users as the end of the log says: a sign-in is decided on nothing older. */
@Injectable()
export class SecondFactors {
  private readonly rows: Table<StoredFactor>;

  constructor(
    private readonly views: ReadYourWrites,
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
    return countingFactors(
      factors.filter((factor) => !isRemoved(factor, user)),
      begun,
    );
  }
}
