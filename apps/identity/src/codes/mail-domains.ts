/** Knows of the outside world which domains take mail. */
export abstract class MailDomains {
  /** False only where it is certain that mail to the domain reaches nobody: a server that is slow, away or broken says nothing. */
  abstract takesMail(domain: string): Promise<boolean>;
}
