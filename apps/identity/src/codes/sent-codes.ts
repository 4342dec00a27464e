import { Injectable } from '@nestjs/common';
import type { Decider } from '#libs/event-sourcing/src/deciding/decider';
import { mayHaveRun } from '#libs/event-sourcing/src/deciding/repeats';
import { passOver, Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf, type PrimaryView } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { notFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  codeOf,
  createCode,
  invalidCode,
  isOfUser,
  redeemCode,
  tooManyTries,
  type OneTimeCodeEvent,
  type OneTimeCodeKind,
  type OneTimeCodeState,
  type RedeemableKind,
  type StoredCode,
} from '../domain/one-time-code.decider.ts';
import { credentialsVersionOf, userDecider, verifyEmail, type AddressProof, type StoredUser } from '../domain/user.decider.ts';
import { usersView } from '../views/users.view.ts';
import { AbsentCodes } from './absent-codes.ts';
import { CodePolicies } from './code-policies.ts';
import { OneTimeCodes, type CodeName } from './one-time-codes.ts';

type DeciderOf<Kind extends OneTimeCodeKind> = Decider<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>>;
type ViewOf<Kind extends OneTimeCodeKind> = PrimaryView<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>, StoredCode<Kind>>;

interface Needs {
  readonly repository: Repository;
  readonly codes: OneTimeCodes;
  readonly absent: AbsentCodes;
  readonly clock: Clock;
  readonly policies: CodePolicies;
  readonly users: Table<StoredUser>;
}

/** What all kinds of codes that are sent to a user have in common. */
@Injectable()
export class SentCodes {
  private readonly needs: Needs;

  constructor(
    repository: Repository,
    codes: OneTimeCodes,
    absent: AbsentCodes,
    clock: Clock,
    policies: CodePolicies,
    private readonly readModels: ReadModels,
  ) {
    this.needs = { repository, codes, absent, clock, policies, users: readModels.table(tableOf(usersView)) };
  }

  of<Kind extends OneTimeCodeKind>(kind: Kind, decider: DeciderOf<Kind>, view: ViewOf<Kind>): SentCode<Kind> {
    return new SentCode(kind, decider, { ...this.needs, rows: this.readModels.table(tableOf(view)) });
  }
}

/** Codes of one kind. */
export class SentCode<Kind extends OneTimeCodeKind> {
  constructor(
    private readonly kind: Kind,
    private readonly decider: DeciderOf<Kind>,
    private readonly needs: Needs & { readonly rows: Table<StoredCode<Kind>> },
  ) {}

  /** Whether this very command made one before: it is answered again, and not counted again. */
  async isMade(context: RequestContext): Promise<boolean> {
    if (!mayHaveRun(context)) return false;
    const values = [`${this.kind}_${derivedId(context.commandId, 0)}`];
    return (await this.needs.rows.findBy(context, { index: 'id', values })) !== null;
  }

  async create(context: RequestContext, user: StoredUser, lifetime: number): Promise<StoredCode<Kind>> {
    const { id: user_id, email } = user;
    if (email === null) throw notFound('User', user_id);
    const decision = createCode(this.kind, { user_id, email, credentials_version: credentialsVersionOf(user), lifetime });
    const { state } = await this.needs.repository.transact(this.decider, context, user_id, decision);
    const code = codeOf(state);
    if (code === null) throw notFound('User', user_id);
    return code;
  }

  /** @throws DomainError `forbidden`; `entity_not_found`, also where its user is gone */
  async read(context: RequestContext, id: string): Promise<{ readonly code: StoredCode<Kind>; readonly user: StoredUser }> {
    await this.needs.policies.requireReadable(context);
    const found = await this.find(context, id);
    if (found === null) throw notFound(this.needs.rows.definition.noun!, id);
    return found;
  }

  /** Null where there is none, another has taken its place, or its user is gone. */
  async find(context: RequestContext, id: string): Promise<{ readonly code: StoredCode<Kind>; readonly user: StoredUser } | null> {
    const row = await this.needs.rows.findBy(context, { index: 'id', values: [id] });
    const user = row === null ? null : await this.needs.users.find(context, row.id);
    return row === null || user === null ? null : { code: contentOf(row), user: contentOf(user) };
  }

  /** The one that could be redeemed, or null. */
  async working({ environment }: RequestContext, user: StoredUser): Promise<StoredCode<Kind> | null> {
    const code = await this.latest(environment, user);
    const isWorking = code !== null && code.redemption === null && Date.parse(code.expires_at) > this.needs.clock.now();
    return isWorking ? code : null;
  }

  digits({ environment }: RequestContext, { id }: StoredCode): Promise<string> {
    return this.needs.codes.digits(this.nameOf(environment, id));
  }

  token({ environment }: RequestContext, { id }: StoredCode): Promise<string> {
    return this.needs.codes.token(this.nameOf(environment, id));
  }

  isToken({ environment }: RequestContext, { id }: StoredCode, given: string): Promise<boolean> {
    return this.needs.codes.isToken(this.nameOf(environment, id), given);
  }

  /**
   * Spends the code that was sent last, and verifies the address that it was sent to. Whoever does not know the code learns nothing of it, not even whether there is one.
   * `id`: of the code that is meant, where one is named; `mailbox`: where whoever asks is not to learn whether somebody reads it. Answers the user as the end of the log
   * says.
   * @throws DomainError as `MagicAuths.redeem` says
   */
  async redeem<Redeemable extends Kind & RedeemableKind>(
    this: SentCode<Redeemable>,
    context: RequestContext,
    user: StoredUser | null,
    { given, by, hasPassword, id, mailbox }: Omit<AddressProof, 'email'> & { readonly given: string; readonly id?: string; readonly mailbox?: string },
  ): Promise<{ readonly code: StoredCode<Redeemable>; readonly user: StoredUser }> {
    const { repository, codes, absent } = this.needs;
    const code = user === null ? null : await this.latest(context.environment, user);
    if (user === null || code === null || (id !== undefined && id !== code.id)) {
      if (mailbox !== undefined && !(await absent.mayTry(context, this.kind, mailbox))) throw tooManyTries();
      throw invalidCode();
    }
    const tried = await codes.tryDigits(this.nameOf(context.environment, code.id), given);
    if (tried === 'too_many') throw tooManyTries();
    if (tried === 'wrong') throw invalidCode();
    await repository.transact(this.decider, context, user.id, redeemCode(this.kind, code.id, by));
    if (user.email_verified) passOver(context);
    else await repository.transact(userDecider, context, user.id, verifyEmail(user.id, { email: code.email!, by, hasPassword }));
    // What is decided next goes by this user: a reset may have come while the code was compared.
    const present = await repository.load(userDecider, context.environment, user.id);
    if (present?.object !== 'user' || !isOfUser(code, present)) throw invalidCode();
    return { code, user: present };
  }

  /** As the log has it, which is never behind; null where it is of no use to the user any more. */
  private async latest(environment: string, user: StoredUser): Promise<StoredCode<Kind> | null> {
    const code = codeOf(await this.needs.repository.load(this.decider, environment, user.id));
    return code === null || !isOfUser(code, user) ? null : code;
  }

  private nameOf(environment: string, id: string): CodeName {
    return { environment, kind: this.kind, id, round: 0 };
  }
}
