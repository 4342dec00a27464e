import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { ListMailboxMessages, type MailboxMessage } from '#libs/contracts/src/mailbox/operations';
import { Clock } from '#libs/platform/src/clock';
import type { Mail } from './mail-transport.ts';

const MOST = 1_000;

/** The newest messages of development mode, in memory alone: they hold codes, which are stored nowhere. A message that comes again takes its own place. */
@Injectable()
export class DevelopmentMailbox {
  private readonly messages = new Map<string, MailboxMessage>();

  constructor(private readonly clock: Clock) {}

  put({ from, ...mail }: Mail): void {
    this.messages.delete(mail.id);
    this.messages.set(mail.id, { ...mail, from: `${from.name} <${from.address}>`, at: new Date(this.clock.now()).toISOString() });
    if (this.messages.size > MOST) this.messages.delete(this.messages.keys().next().value!);
  }

  @Handles(ListMailboxMessages)
  async list(): Promise<readonly MailboxMessage[]> {
    return [...this.messages.values()].reverse();
  }
}
