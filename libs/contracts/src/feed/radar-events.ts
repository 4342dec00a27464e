import {
  RADAR_AUTH_METHODS,
  RADAR_LIST_TYPES,
  RadarAssessment,
  RadarChallenge,
  type RadarAuthMethod,
  type RadarControl,
  type RadarListType,
} from '../radar/radar.ts';
import { Const, OneOf, Picked, Ref } from '../fields.ts';
import { User } from '../users/user.ts';
import { AuthenticationEvent } from './authentication-event.ts';
import { EventUser } from './event-data.ts';

/** Something spoke against a sign-in of a user, whatever was done about it. */
export class RadarRiskDetected {
  @OneOf(RADAR_AUTH_METHODS, { doc: 'By what the person was about to show who it is.' }) auth_method!: RadarAuthMethod;
  @OneOf(['signup', 'login'], { doc: 'What was tried.' }) action!: 'signup' | 'login';
  @Picked(RadarAssessment) control!: RadarControl;
  @OneOf(RADAR_LIST_TYPES, { doc: 'What of it is on the block list; null: nothing.', nullable: true }) blocklist_type!: RadarListType | null;
  @Picked(AuthenticationEvent) ip_address!: string | null;
  @Picked(AuthenticationEvent) user_agent!: string | null;
  @Ref(() => User, { doc: 'The user.' }) user_id!: string;
  @Picked(AuthenticationEvent) email!: string | null;
}

/** A code was sent since something spoke against a sign-in. */
export class RadarChallengeCreated {
  @Const('email', { doc: 'How it was sent.' }) type!: 'email';
  @Ref(() => RadarChallenge, { doc: 'The challenge.' }) radar_challenge_id!: string;
  @Ref(() => User, { doc: 'Who signs in.' }) user_id!: string;
  @Picked(EventUser) email!: string;
}
