import { Text, Time } from '../fields.ts';
import { arrayOf, Operation, Query } from '../operation.ts';

// For the page of the development mailbox: nothing of it is reachable by an API key, and none is needed there.

/** A message that was not sent, since there is no mail server. */
export class MailboxMessage {
  @Text({ doc: 'Its Message-ID, without the brackets.' }) id!: string;
  @Text({ doc: 'To whom.' }) to!: string;
  @Text({ doc: 'From whom.' }) from!: string;
  @Text({ doc: 'What it is about.' }) subject!: string;
  @Text({ doc: 'As text.', secret: true }) text!: string;
  @Text({ doc: 'As HTML.', secret: true }) html!: string;
  @Time({ doc: 'When it arrived.' }) at!: string;
}

@Operation({ internal: true, owner: 'identity', summary: 'List the messages of the development mailbox, the newest first', answers: arrayOf(MailboxMessage) })
export class ListMailboxMessages extends Query<readonly MailboxMessage[]> {}
