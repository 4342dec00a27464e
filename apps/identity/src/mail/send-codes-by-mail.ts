import { Injectable } from '@nestjs/common';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { Clock } from '#libs/platform/src/clock';
import { MessageSettings } from '#libs/platform/src/config/settings';
import { isUnavailable } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { systemContext } from '#libs/platform/src/system-context';
import { ApplicationLinks } from '../codes/application-links.ts';
import { SentCodes, type SentCode } from '../codes/sent-codes.ts';
import {
  emailVerificationDecider,
  isOfUser,
  magicAuthDecider,
  passwordResetDecider,
  radarChallengeDecider,
  type CodeCreatedType,
  type OneTimeCodeEvent,
  type OneTimeCodeKind,
} from '../domain/one-time-code.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { emailVerificationsView, magicAuthsView, passwordResetsView, radarChallengesView } from '../views/one-time-codes.view.ts';
import { InvitationLetters, type InvitationSent } from './invitation-letters.ts';
import { letterOf, type Addressed } from './mail-templates.ts';
import { MailRefused, MailTransport } from './mail-transport.ts';

type CodeCreated = Extract<OneTimeCodeEvent<OneTimeCodeKind>, { readonly type: CodeCreatedType }>;

const KINDS: Readonly<Record<CodeCreatedType, OneTimeCodeKind>> = {
  'magic_auth.created': 'magic_auth',
  'email_verification.created': 'email_verification',
  'radar.challenge_created': 'radar_challenge',
  'password_reset.created': 'password_reset',
};
const MINUTE = 60_000;

/**
 * Sends each code and link to its mailbox, at least once, in the order of the log. While the mail server is away, the first that waits is tried again for as long as it is of
 * use; what the server does not want is set aside.
 */
@Injectable()
export class SendCodesByMail implements Reaction<CodeCreated | InvitationSent> {
  readonly name = 'send-codes-by-mail';
  readonly handles = [
    'magic_auth.created',
    'email_verification.created',
    'radar.challenge_created',
    'password_reset.created',
    'invitation.created',
    'invitation.resent',
  ] as const;
  /** What lies before was asked for when nobody sent mail. */
  readonly from = 'head';
  private readonly kinds: Readonly<Record<OneTimeCodeKind, SentCode<OneTimeCodeKind>>>;
  private readonly outcomes;

  constructor(
    private readonly settings: MessageSettings,
    private readonly environments: EnvironmentSettingsReader,
    private readonly repository: Repository,
    private readonly transport: MailTransport,
    private readonly links: ApplicationLinks,
    private readonly invitations: InvitationLetters,
    private readonly clock: Clock,
    private readonly log: Log,
    metrics: Metrics,
    codes: SentCodes,
  ) {
    this.kinds = {
      magic_auth: codes.of('magic_auth', magicAuthDecider, magicAuthsView),
      email_verification: codes.of('email_verification', emailVerificationDecider, emailVerificationsView),
      radar_challenge: codes.of('radar_challenge', radarChallengeDecider, radarChallengesView),
      password_reset: codes.of('password_reset', passwordResetDecider, passwordResetsView),
    } as unknown as typeof this.kinds;
    this.outcomes = metrics.counter({
      name: 'mails_total',
      help: 'Messages that were handed to the mail server (sent), that it refused for good (refused), or that were of no use any more (late).',
      labels: ['kind', 'outcome'],
    });
  }

  async react(event: Recorded<CodeCreated | InvitationSent>): Promise<void> {
    if (!this.settings.MAIL) return;
    const { environment } = event.meta;
    const kind = isOfCode(event) ? KINDS[event.type] : 'invitation';
    const { mail, branding } = await this.environments.settings({ environment });
    if (!mail[kind]) return;
    const letter = isOfCode(event) ? await this.codeOf(event) : await this.invitations.of(event);
    if (letter === null) return this.outcomes.inc({ kind, outcome: 'late' });
    const name = await this.environments.shownName({ environment });
    const { to, ...content } = letter;
    const written = letterOf({ kind, ...content, brand: { ...branding, name } });
    const { MAIL_FROM: address } = this.settings;
    const id = `${event.id}@${address.slice(address.indexOf('@') + 1)}`;
    try {
      await this.transport.send({ id, from: { name, address }, to, ...written });
      this.outcomes.inc({ kind, outcome: 'sent' });
    } catch (error) {
      if (error instanceof MailRefused) {
        this.outcomes.inc({ kind, outcome: 'refused' });
        this.log.warn('A message was refused by the mail server, and is not sent again.', { kind, event: event.id, reason: error.message });
        return;
      }
      if (isUnavailable(error)) this.log.warn('The mail server is away; the message waits.', { kind, event: event.id, reason: (error as Error).message });
      throw error;
    }
  }

  /** Null where nobody waits for it: it was used or replaced, or its user is gone or elsewhere. */
  private async codeOf({ type, data, meta: { environment } }: Recorded<CodeCreated>): Promise<Addressed | null> {
    const context = systemContext(environment, this.clock.now());
    const kind = KINDS[type];
    const sent = this.kinds[kind];
    const found = await sent.find(context, data.id);
    const left = found === null ? 0 : Date.parse(found.code.expires_at) - this.clock.now();
    if (found === null || left <= 0 || found.code.redemption !== null || !isOfUser(found.code, found.user)) return null;
    const secret =
      kind === 'password_reset' ? { link: this.links.passwordReset(await sent.token(context, found.code)) } : { code: await sent.digits(context, found.code) };
    return { to: found.code.email!, secret, time: Math.max(1, Math.round(left / MINUTE)), locale: found.user.locale };
  }
}

function isOfCode(event: Recorded<CodeCreated | InvitationSent>): event is Recorded<CodeCreated> {
  return event.type !== 'invitation.created' && event.type !== 'invitation.resent';
}
