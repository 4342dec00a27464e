/** A message, ready to be sent. */
export interface Mail {
  /** The same whenever it is sent again, so that a mailbox can tell. */
  readonly id: string;
  readonly from: { readonly name: string; readonly address: string };
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** Hands mail over to whoever delivers it. */
export abstract class MailTransport {
  /** @throws MailRefused where this message will never be taken; DomainError `service_unavailable` where nobody is there to take any; whatever else may go by */
  abstract send(mail: Mail): Promise<void>;
}

/** The server does not want this message, and will not want it later. Neither the address nor the answer is told: they are personal. */
export class MailRefused extends Error {
  constructor(code: number | string) {
    super(`The mail server refused a message for good (${code}).`);
  }
}
