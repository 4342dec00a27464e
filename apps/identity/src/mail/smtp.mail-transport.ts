import type { Transporter } from 'nodemailer';
import { unavailable } from '#libs/platform/src/domain-error';
import { MailRefused, MailTransport, type Mail } from './mail-transport.ts';

const TIMEOUT = 10_000;
/** Seconds. */
const AWAY = 1;

interface SmtpFailure {
  readonly code?: string;
  readonly command?: string;
  readonly responseCode?: number;
}

/** Sends by SMTP, over connections that stay open for the next message. */
export class SmtpMailTransport extends MailTransport {
  private transporter: Promise<Transporter> | null = null;

  /** `requireTls`: what begins in clear goes on under TLS, or not at all. */
  constructor(
    private readonly url: string,
    private readonly requireTls: boolean,
  ) {
    super();
  }

  async send({ id, from, to, ...content }: Mail): Promise<void> {
    const transporter = await (this.transporter ??= this.opened());
    try {
      // An address of its own, so that nothing in it is read as another one.
      await transporter.sendMail({ messageId: `<${id}>`, from, to: { name: '', address: to }, ...content });
    } catch (error) {
      throw failureOf(error as SmtpFailure);
    }
  }

  close(): void {
    void this.transporter?.then((transporter) => transporter.close());
  }

  /** With the first message: most processes send none. */
  private async opened(): Promise<Transporter> {
    const { createTransport } = await import('nodemailer');
    const timeouts = { connectionTimeout: TIMEOUT, greetingTimeout: TIMEOUT, socketTimeout: TIMEOUT };
    const limits = { disableFileAccess: true, disableUrlAccess: true };
    return createTransport({ url: this.url, pool: true, maxConnections: 1, requireTLS: this.requireTls, ...timeouts, ...limits } as never);
  }
}

/** What the server said may quote the message: codes alone are told. */
function failureOf({ responseCode, code = 'unknown', command }: SmtpFailure): Error {
  const isAboutUs = responseCode === undefined || code === 'EAUTH' || command === 'CONN' || responseCode === 421;
  if (code === 'EENVELOPE' && responseCode === undefined) return new MailRefused(code);
  if (isAboutUs) return unavailable(`The mail server takes no mail (${responseCode ?? code}).`, AWAY);
  return responseCode >= 500 ? new MailRefused(responseCode) : new Error(`The mail server did not take a message (${responseCode}).`);
}
