import { Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, created, ok, Operation, Query } from '../operation.ts';
import { User } from '../users/user.ts';
import { CreatedMagicAuth, MagicAuth, MagicAuthWithCode } from './magic-auth.ts';

@Operation({
  post: '/user_management/magic_auth',
  owner: 'identity',
  summary: 'Create a code to sign in with',
  description:
    'Creates the user where nobody has the address. The code works once, for 10 minutes and five tries, and another one takes its place. Three in 60 seconds and 50 a day for an address; whatever else is sent is not stored.',
  answers: created(CreatedMagicAuth),
  refuses: ['invitation_invalid', 'authentication_method_not_allowed', 'sign_up_not_allowed', 'email_domain_not_deliverable', 'daily_quota_exceeded'],
  emits: ['magic_auth.created', 'user.created'],
})
export class CreateMagicAuth extends Command<CreatedMagicAuth> {
  @Picked(User) email!: string;
  @Optional()
  @Text({ doc: 'From an invitation to this address: whoever is invited may sign up where others may not. Accepted at sign-in.', max: 1_024, secret: true })
  invitation_token?: string;
  @Optional() @Text({ doc: 'Address of the person who asks, which has limits of its own. Not stored.', max: 64, nullable: true }) ip_address?: string | null;
  @Optional() @Text({ doc: 'Browser of the person who asks. Not stored.', max: 2048, nullable: true }) user_agent?: string | null;
  @Optional() @Text({ doc: 'Signals of the browser. Not stored.', max: 255, nullable: true }) signals_id?: string | null;
  @Optional()
  @Text({
    doc: 'An attempt that was assessed for this address (`POST /radar/attempts`). Without one, an attempt is assessed where `ip_address` and `user_agent` are given.',
    max: 128,
    nullable: true,
  })
  radar_auth_attempt_id?: string | null;
}

@Operation({
  get: '/user_management/magic_auth/{id}',
  owner: 'identity',
  summary: 'Get a code to sign in with',
  description: 'Until another one has taken its place. The setting `readable_codes` of the environment may forbid it.',
  answers: ok(MagicAuthWithCode),
  refuses: ['forbidden'],
})
export class GetMagicAuth extends Query<MagicAuthWithCode> {
  @Ref(() => MagicAuth, { doc: 'The code, by its id.' }) id!: string;
}
