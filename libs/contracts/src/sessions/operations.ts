import { Ref } from '../fields.ts';
import { Command, empty, listOf, Operation } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { User } from '../users/user.ts';
import { Session } from './session.ts';

@Operation({
  get: '/user_management/users/{user_id}/sessions',
  owner: 'identity',
  summary: 'List the sessions of a user',
  description: 'Those that are active: neither ended nor expired.',
  answers: listOf(Session),
})
export class ListUserSessions extends PageQuery<Session> {
  @Ref(() => User, { doc: 'The user.' }) user_id!: string;
}

@Operation({
  post: '/user_management/sessions/revoke',
  owner: 'identity',
  summary: 'Revoke a session',
  description: 'It is refreshed no more, from the next request on; access tokens that were issued expire by themselves. A session that has ended stays so.',
  answers: empty(200),
  refuses: ['session_not_found'],
  emits: ['session.revoked'],
})
export class RevokeSession extends Command<void> {
  @Ref(() => Session, { doc: 'The session.' }) session_id!: string;
}
