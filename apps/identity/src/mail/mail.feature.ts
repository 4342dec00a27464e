import { feature } from '#libs/runtime/src/feature';
import { DevelopmentMailbox } from '../mailbox/development-mailbox.ts';
import { ChosenMailTransport } from './chosen.mail-transport.ts';
import { InvitationLetters } from './invitation-letters.ts';
import { MailTransport } from './mail-transport.ts';
import { SendCodesByMail } from './send-codes-by-mail.ts';

export const mail = feature({
  providers: [DevelopmentMailbox, InvitationLetters, { provide: MailTransport, useClass: ChosenMailTransport }],
  reactions: [SendCodesByMail],
});
