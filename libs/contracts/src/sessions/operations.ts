import { Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { redirect, type Redirection } from '../redirection.ts';
import { User } from '../users/user.ts';
import { Session, SessionEnvironment } from './session.ts';

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

@Operation({
  get: '/user_management/sessions/logout',
  owner: 'identity',
  environmentFrom: 'session_id',
  summary: 'Sign out',
  description:
    'For the browser of the person: it ends the session and goes on to `return_to`. Without one it goes on to the first of the `sign_out_uris` in the settings, or to `login_uri`. After a session that is over, or never was, it goes on to a `return_to` that the settings of any environment list.',
  answers: redirect,
  refuses: ['session_not_found'],
  emits: ['session.revoked'],
})
export class LogOut extends Command<Redirection> {
  @Ref(() => Session, { doc: 'The session: `sid` of its access tokens.' }) session_id!: string;
  @Optional() @Text({ doc: 'Where the browser goes on: one of the `sign_out_uris` in the settings, as it stands there.', max: 2_048 }) return_to?: string;
}

@Operation({
  internal: true,
  owner: 'identity',
  summary: 'Find the environment of a session, or one whose settings list where a browser wants to go on to after a session that is over',
  answers: ok(SessionEnvironment),
  refuses: ['session_not_found'],
})
export class FindSessionEnvironment extends Query<SessionEnvironment> {
  @Ref(() => Session, { doc: 'The session.' }) session_id!: string;
  @Optional() @Picked(LogOut) return_to?: string;
}
