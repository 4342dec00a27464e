import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { MessageSettings, PlatformSettings } from '#libs/platform/src/config/settings';
import { StartRefused } from '#libs/platform/src/start-refused';
import { DevelopmentMailbox } from '../mailbox/development-mailbox.ts';
import { MailTransport, type Mail } from './mail-transport.ts';
import { SmtpMailTransport } from './smtp.mail-transport.ts';

/** A mail server where one is named, else the mailbox of development mode. */
@Injectable()
export class ChosenMailTransport extends MailTransport implements OnModuleInit, OnModuleDestroy {
  private readonly smtp: SmtpMailTransport | null;

  constructor(
    private readonly settings: MessageSettings,
    private readonly platform: PlatformSettings,
    private readonly mailbox: DevelopmentMailbox,
  ) {
    super();
    const isProduction = platform.GATEHOUSE_MODE === 'production';
    this.smtp = settings.SMTP_URL === null ? null : new SmtpMailTransport(settings.SMTP_URL, isProduction);
  }

  /** @throws StartRefused where nobody would get what is sent, or links would lead nowhere */
  onModuleInit(): void {
    const { MAIL, SMTP_URL, APPLICATION_URL } = this.settings;
    if (!MAIL || this.platform.GATEHOUSE_MODE !== 'production') return;
    if (SMTP_URL === null) throw new StartRefused('MAIL is on, but there is no mail server: set SMTP_URL, or MAIL=off.');
    if (APPLICATION_URL === null) throw new StartRefused('MAIL is on, but its links would lead nowhere: set APPLICATION_URL, or MAIL=off.');
  }

  onModuleDestroy(): void {
    this.smtp?.close();
  }

  async send(mail: Mail): Promise<void> {
    if (this.smtp === null) this.mailbox.put(mail);
    else await this.smtp.send(mail);
  }
}
