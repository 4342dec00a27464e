import { Injectable } from '@nestjs/common';
import {
  AuthenticationFactor,
  type AuthenticationChallenge,
  type AuthenticationChallengeVerification,
  type EnrolledAuthenticationFactor,
  type UserAuthenticationFactor,
} from '#libs/contracts/src/authentication-factors/authentication-factor';
import {
  ChallengeAuthenticationFactor,
  DeleteAuthenticationFactor,
  EnrollAuthenticationFactor,
  EnrollUserAuthenticationFactor,
  GetAuthenticationFactor,
  ListUserAuthenticationFactors,
  VerifyAuthenticationChallenge,
} from '#libs/contracts/src/authentication-factors/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { invalidField, notFound, type DomainError } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { PersonalLimits } from '../codes/personal-limits.ts';
import {
  authenticationFactorDecider,
  challengeFactor,
  deleteFactor,
  enrolFactor,
  isRemoved,
  requireFactor,
  toPublicFactor,
  type FactorEnrolled,
  type StoredFactor,
} from '../domain/authentication-factor.decider.ts';
import { credentialsVersionOf, type StoredUser } from '../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { authenticationFactorsView } from '../views/authentication-factors.view.ts';
import { usersView } from '../views/users.view.ts';
import { AuthenticationChallenges, FACTOR_TRIES, shownChallenge, type Challenge } from './authentication-challenges.ts';
import { qrCode } from './qr-code.ts';
import { anotherNumber, SecondFactors } from './second-factors.ts';
import { TextMessages } from './text-messages.ts';
import { otpauthUri, secretOfBase32, toBase32 } from './totp.ts';

const serialise = serialiserOf(AuthenticationFactor);
/** As RFC 4226 recommends. */
const SECRET_BYTES = 20;
const NAMELESS = 'Gatehouse';

type Owner = Pick<FactorEnrolled, 'user_id' | 'credentials_version'>;

interface Totp {
  readonly issuer: string;
  readonly user: string;
  /** In base 32; null: a new one. */
  readonly secret: string | null;
}

/** What people have beside a password, and how they show that they do. */
@Injectable()
export class AuthenticationFactors {
  private readonly rows: Table<StoredFactor>;
  private readonly users: Table<StoredUser>;

  constructor(
    private readonly repository: Repository,
    private readonly challenges: AuthenticationChallenges,
    private readonly settings: EnvironmentSettingsReader,
    private readonly limits: PersonalLimits,
    private readonly texts: TextMessages,
    private readonly factors: SecondFactors,
    private readonly secrets: ShownSecrets,
    private readonly vault: Vault,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(authenticationFactorsView));
    this.users = readModels.table(tableOf(usersView));
  }

  @Handles(EnrollAuthenticationFactor)
  async enroll({ context, type, totp_issuer, totp_user, phone_number, ...given }: EnrollAuthenticationFactor): Promise<EnrolledAuthenticationFactor> {
    const user_id = given.user_id ?? null;
    const user = user_id === null ? null : contentOf(await this.users.require(context, user_id));
    const owner = ownedBy(user);
    if (type === 'sms') {
      if (phone_number === undefined) throw missing('phone_number', type);
      const { number } = await this.texts.require(context, phone_number);
      await this.requireNoOther(context, user, number);
      return toPublicFactor(await this.enrolled(context, { ...NOTHING, ...owner, type, phone_number: number })) as EnrolledAuthenticationFactor;
    }
    if (type === 'generic_otp') return toPublicFactor(await this.enrolled(context, { ...NOTHING, ...owner, type })) as EnrolledAuthenticationFactor;
    if (totp_issuer === undefined) throw missing('totp_issuer', type);
    if (totp_user === undefined) throw missing('totp_user', type);
    return (await this.enrolledTotp(context, owner, { issuer: totp_issuer, user: totp_user, secret: null })).shown;
  }

  @Handles(EnrollUserAuthenticationFactor)
  async enrollOfUser({ context, user_id, totp_issuer, totp_user, totp_secret }: EnrollUserAuthenticationFactor): Promise<UserAuthenticationFactor> {
    const user = contentOf(await this.users.require(context, user_id));
    const { branding } = await this.settings.settings(context);
    const { factor, shown } = await this.enrolledTotp(context, ownedBy(user), {
      issuer: totp_issuer || (branding.name ?? NAMELESS),
      user: totp_user || (user.email ?? user_id),
      secret: totp_secret || null,
    });
    return { authentication_factor: shown, authentication_challenge: shownChallenge(await this.challenges.create(context, factor)) };
  }

  @Handles(GetAuthenticationFactor)
  async get({ context, id }: GetAuthenticationFactor): Promise<AuthenticationFactor> {
    return toPublicFactor(await this.require(context, id));
  }

  @Handles(ListUserAuthenticationFactors)
  async list(query: ListUserAuthenticationFactors): Promise<Serialised<List<AuthenticationFactor>>> {
    const { context, user_id } = query;
    const user = contentOf(await this.users.require(context, user_id));
    return filteredPage(this.rows, query, {
      idPrefix: 'auth_factor',
      where: { index: 'user', values: [user_id] },
      textsOf: async (rows) => rows.map(contentOf).map((factor) => (isRemoved(factor, user) ? null : serialise(toPublicFactor(factor)))),
    });
  }

  @Handles(DeleteAuthenticationFactor)
  async delete({ context, id }: DeleteAuthenticationFactor): Promise<void> {
    await this.deletions.once({ context, what: 'Authentication factor', id }, async () => {
      await this.require(context, id);
      return this.repository.transact(authenticationFactorDecider, context, id, deleteFactor(id));
    });
  }

  @Handles(ChallengeAuthenticationFactor)
  async challenge({ context, id, sms_template }: ChallengeAuthenticationFactor): Promise<AuthenticationChallenge> {
    const factor = await this.require(context, id);
    if (factor.type === 'sms') return shownChallenge(await this.challengeByText(context, factor, sms_template ?? null));
    const challenge = await this.challenges.create(context, factor);
    return { ...shownChallenge(challenge), ...(factor.type === 'generic_otp' && { code: await this.challenges.digits(context, challenge) }) };
  }

  @Handles(VerifyAuthenticationChallenge)
  async verify({ context, id, code }: VerifyAuthenticationChallenge): Promise<AuthenticationChallengeVerification> {
    const { challenge, factor } = await this.challenges.require(context, id);
    const row = factor.user_id === null ? null : await this.users.find(context, factor.user_id);
    const user = row === null ? null : contentOf(row);
    if (factor.user_id !== null && (user === null || isRemoved(factor, user))) throw notFound('Authentication challenge', id);
    // Its code may have been sent before the other number was verified.
    if (user !== null && factor.phone_number !== null && factor.verified_at === null) await this.requireNoOther(context, user, factor.phone_number);
    await this.limits.count(context.environment, FACTOR_TRIES.what, factor.id, FACTOR_TRIES.limit);
    const verified = await this.challenges.verify(context, factor, id, { code, by: context.commandId });
    if (user !== null && verified !== null) await this.factors.requireHolding(context, user, factor);
    return { challenge: shownChallenge(verified ?? challenge), valid: verified !== null };
  }

  /** @throws DomainError `sms_not_available`, `verified_phone_number_exists`, `rate_limit_exceeded`, `daily_quota_exceeded`; `entity_not_found` */
  private async challengeByText(context: RequestContext, factor: StoredFactor, sms_template: string | null): Promise<Challenge> {
    const { id, user_id, phone_number } = factor;
    if (phone_number === null) throw notFound('Authentication factor', id);
    if (!(await this.challenges.isMade(context))) {
      const number = await this.texts.require(context, phone_number);
      await this.requireNoOther(context, user_id === null ? null : contentOf(await this.users.require(context, user_id)), number.number);
      await this.texts.count(context, factor, number);
    }
    const challenge = await this.challenges.create(context, factor);
    const challenged = { id, user_id, challenge_id: challenge.id, sms_template, expires_at: challenge.expires_at! };
    await this.repository.transact(authenticationFactorDecider, context, id, challengeFactor(challenged));
    return challenge;
  }

  /** A user who has shown to have a number gets codes there alone: whoever acts for them cannot have codes sent to a number of their own. */
  private async requireNoOther(context: RequestContext, user: StoredUser | null, number: string): Promise<void> {
    if (user === null) return;
    const verified = (await this.factors.counting(context, user, null)).filter(({ type }) => type === 'sms');
    if (verified.length === 0 || verified.some(({ phone_number }) => phone_number === number)) return;
    throw anotherNumber();
  }

  /** @throws DomainError `entity_not_found`, also where its user is gone, or it went with the first proof of their address, and its own end is still to be recorded */
  private async require(context: RequestContext, id: string): Promise<StoredFactor> {
    const factor = contentOf(await this.rows.require(context, id));
    if (factor.user_id === null) return factor;
    const user = await this.users.find(context, factor.user_id);
    if (user === null || isRemoved(factor, contentOf(user))) throw notFound('Authentication factor', id);
    return factor;
  }

  private async enrolledTotp(
    context: RequestContext,
    owner: Owner,
    { issuer, user, secret: given }: Totp,
  ): Promise<{ readonly factor: StoredFactor; readonly shown: EnrolledAuthenticationFactor }> {
    const secret = given === null ? toBase32((await this.secrets.of(context, 'totp')).subarray(0, SECRET_BYTES)) : normalised(given);
    const uri = otpauthUri({ issuer, user, secret });
    const qr_code = qrCode(uri);
    if (qr_code === null) throw invalidField('too_long', 'totp_user', 'totp_issuer and totp_user are too long together for a QR code.');
    const place = {
      stream: streamName(authenticationFactorDecider.category, context.environment, `auth_factor_${derivedId(context.commandId, 0)}`),
      field: 'totp_secret',
    };
    const totp_secret = await this.vault.seal(secret, place);
    const factor = await this.enrolled(context, { ...NOTHING, ...owner, type: 'totp', totp_issuer: issuer, totp_user: user, totp_secret });
    return { factor, shown: { ...toPublicFactor(factor), totp: { issuer, user, secret, qr_code, uri } } };
  }

  private async enrolled(context: RequestContext, factor: Omit<FactorEnrolled, 'id'>): Promise<StoredFactor> {
    const id = `auth_factor_${derivedId(context.commandId, 0)}`;
    const { state } = await this.repository.transact(authenticationFactorDecider, context, id, enrolFactor(factor));
    return requireFactor(state, id);
  }
}

/** Null: the application knows whose it is. */
function ownedBy(user: StoredUser | null): Owner {
  return user === null ? { user_id: null } : { user_id: user.id, credentials_version: credentialsVersionOf(user) };
}

const NOTHING = { totp_issuer: null, totp_user: null, totp_secret: null, phone_number: null } as const;

/** @throws DomainError `invalid_request_parameters` */
function normalised(given: string): string {
  const secret = secretOfBase32(given);
  if (secret === null) throw invalidField('invalid', 'totp_secret', 'totp_secret must be base 32, of 80 bits or more.');
  return toBase32(secret);
}

function missing(field: string, type: string): DomainError {
  return invalidField('required', field, `${field} is required for a factor of type ${type}.`);
}
