import { Const, Id, OneOf, Optional, Picked, Ref, Text, Time } from '../fields.ts';
import { User } from '../users/user.ts';

/** What an entry of a list is compared with. */
export const RADAR_LIST_TYPES = ['ip_address', 'domain', 'email', 'device', 'user_agent', 'device_fingerprint', 'country'] as const;
export type RadarListType = (typeof RADAR_LIST_TYPES)[number];

export const RADAR_LIST_ACTIONS = ['allow', 'block'] as const;
export type RadarListAction = (typeof RADAR_LIST_ACTIONS)[number];

export const RADAR_AUTH_METHODS = ['Password', 'Passkey', 'Authenticator', 'SMS_OTP', 'Email_OTP', 'Social', 'SSO', 'Other'] as const;
export type RadarAuthMethod = (typeof RADAR_AUTH_METHODS)[number];

export type RadarVerdict = 'allow' | 'challenge' | 'block';

/** Clients throw at a word that they do not know: what else there is to find is told by one of these. */
const RADAR_CONTROLS = [
  'bot_detection',
  'brute_force_attack',
  'impossible_travel',
  'repeat_sign_up',
  'stale_account',
  'unrecognized_device',
  'restriction',
] as const;
export type RadarControl = (typeof RADAR_CONTROLS)[number];

/** What is thought of an attempt to sign in or to sign up. */
export class RadarAssessment {
  @OneOf(['allow', 'challenge', 'block'], { doc: 'What to do: let the person in, ask for another proof first, or refuse.' }) verdict!: RadarVerdict;
  @Text({ doc: 'Why, for people.', max: 255, example: 'Nothing speaks against this attempt.' }) reason!: string;
  @Id('radar_att', { doc: 'Identifies the attempt, for ten minutes.' }) attempt_id!: string;
  @Optional() @OneOf(RADAR_CONTROLS, { doc: 'The control that found something; absent where the verdict is `allow`.' }) control?: RadarControl;
  @Optional()
  @OneOf(RADAR_LIST_TYPES, { doc: 'What of the attempt is on the block list; only where `control` is `restriction`.' })
  blocklist_type?: RadarListType;
}

/** A code that is asked for since something speaks against a sign-in. */
export class RadarChallenge {
  @Const('radar_challenge') object!: 'radar_challenge';
  @Id('radar_challenge', { doc: 'Identifies the challenge; not a secret.' }) id!: string;
  @Const('email') type!: 'email';
  @Ref(() => User, { doc: 'Who signs in.' }) user_id!: string;
  @Picked(User) email!: string;
  @Time({ doc: 'When the code stops working.' }) expires_at!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

export class RadarChallengeWithCode extends RadarChallenge {
  @Text({ doc: 'Six digits, to be sent to the address and to nobody else. They work once.', secret: true, example: '123456' }) code!: string;
}

/** An attempt, as operations name it. */
export class RadarAttempt {
  @Const('radar_attempt') object!: 'radar_attempt';
  @Id('radar_att', { doc: 'Identifies the attempt, for ten minutes.' }) id!: string;
}

/** What was done with a list. */
export class RadarListAnswer {
  @Text({ doc: 'What was done, for people.', max: 255, example: 'The entry is on the list.' }) message!: string;
}
