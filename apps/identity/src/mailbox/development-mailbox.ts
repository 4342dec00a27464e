import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { ListMailboxMessages, type MailboxMessage } from '#libs/contracts/src/mailbox/operations';
import { Clock } from '#libs/platform/src/clock';

const MOST = 1_000;

/** As it would be sent. */
interface Message extends Omit<MailboxMessage, 'from' | 'at'> {
  readonly from: { readonly name: string; readonly address: string };
}

/** The newest messages of development mode, in memory alone: they hold codes, which are stored nowhere. A message that comes again takes its own place. */
@Injectable()
export class DevelopmentMailbox {
  private readonly messages = new Map<string, MailboxMessage>();

  constructor(private readonly clock: Clock) {}

  put({ from, ...message }: Message): void {
    this.messages.delete(message.id);
    this.messages.set(message.id, { ...message, from: `${from.name} <${from.address}>`, at: new Date(this.clock.now()).toISOString() });
    if (this.messages.size > MOST) this.messages.delete(this.messages.keys().next().value!);
  }

  @Handles(ListMailboxMessages)
  async list(): Promise<readonly MailboxMessage[]> {
    return [...this.messages.values()].reverse();
  }
}
