import { OneOf, Optional, Ref, Text } from '../fields.ts';
import { Command, empty, ok, Operation, Query } from '../operation.ts';
import {
  RADAR_AUTH_METHODS,
  RADAR_LIST_ACTIONS,
  RADAR_LIST_TYPES,
  RadarAssessment,
  RadarAttempt,
  RadarChallenge,
  RadarChallengeWithCode,
  RadarListAnswer,
  type RadarAuthMethod,
  type RadarListAction,
  type RadarListType,
} from './radar.ts';

@Operation({
  post: '/radar/attempts',
  owner: 'identity',
  summary: 'Assess an attempt to sign in or to sign up',
  description:
    'For applications that check passwords or codes themselves; a sign-in of this API is assessed the same way, with the same counts. An attempt counts as a failure until it is told to have succeeded.',
  answers: ok(RadarAssessment),
  refuses: ['radar_not_enabled'],
})
export class CreateRadarAttempt extends Command<RadarAssessment> {
  @Text({ doc: 'Address of the person. An IPv6 address stands for its first 64 bits.', min: 1, max: 64, example: '192.0.2.1' }) ip_address!: string;
  @Text({ doc: 'Browser of the person.', max: 2_048, example: 'Mozilla/5.0' }) user_agent!: string;
  @Text({ doc: 'The address of the account that is tried.', format: 'email', example: 'ada@acme.test' }) email!: string;
  @OneOf(RADAR_AUTH_METHODS, { doc: 'By what the person shows who it is.', example: 'Password' }) auth_method!: RadarAuthMethod;
  @OneOf(['sign-up', 'sign-in', 'signup', 'login'], { doc: 'What is tried; `signup` and `login` are the same in other words.', example: 'sign-in' }) action!:
    'sign-up' | 'sign-in' | 'signup' | 'login';
  @Optional() @Text({ doc: 'Signals of the browser. Not read.', max: 255, nullable: true }) signals_id?: string | null;
}

@Operation({
  put: '/radar/attempts/{id}',
  owner: 'identity',
  summary: 'Tell how an attempt went on',
  description:
    'An attempt that succeeded ends the failures in a row of its account, and makes its device one that signed in before. What succeeded before stays so. Known for ten minutes.',
  answers: empty(204),
})
export class UpdateRadarAttempt extends Command<void> {
  @Ref(() => RadarAttempt, { doc: 'The attempt.' }) id!: string;
  @Optional() @OneOf(['success'], { doc: 'That the other proof was given that was asked for.', nullable: true }) challenge_status?: 'success' | null;
  @Optional() @OneOf(['success'], { doc: 'That the person was let in.', nullable: true }) attempt_status?: 'success' | null;
}

@Operation({
  post: '/radar/lists/{type}/{action}',
  owner: 'identity',
  summary: 'Put an entry on a list',
  description:
    'What is on an allow list passes block lists and every control but the counts of its account. Of an entry only a keyed digest is stored, so that a list cannot be read. No attempt says its country: entries of `country` are refused, and those that were stored before can be taken away.',
  answers: ok(RadarListAnswer),
  refuses: ['invalid_radar_list_entry', 'bad_request'],
})
export class AddRadarListEntry extends Command<RadarListAnswer> {
  @OneOf(RADAR_LIST_TYPES, { doc: 'What the entry is.', example: 'ip_address' }) type!: RadarListType;
  @OneOf(RADAR_LIST_ACTIONS, { doc: 'Which list.', example: 'block' }) action!: RadarListAction;
  @Text({ doc: 'The entry, in any spelling. An IPv6 address stands for its first 64 bits.', min: 1, max: 2_048, example: '203.0.113.7' }) entry!: string;
}

@Operation({
  delete: '/radar/lists/{type}/{action}',
  owner: 'identity',
  summary: 'Take an entry from a list',
  answers: empty(204),
  body: true,
  refuses: ['invalid_radar_list_entry'],
})
export class RemoveRadarListEntry extends Command<void> {
  @OneOf(RADAR_LIST_TYPES, { doc: 'What the entry is.', example: 'ip_address' }) type!: RadarListType;
  @OneOf(RADAR_LIST_ACTIONS, { doc: 'Which list.', example: 'block' }) action!: RadarListAction;
  @Text({ doc: 'The entry, in any spelling.', min: 1, max: 2_048, example: '203.0.113.7' }) entry!: string;
}

@Operation({
  get: '/user_management/radar_challenges/{id}',
  owner: 'identity',
  summary: 'Get a code that a sign-in was challenged with',
  description: 'For whoever sends their own mail. Until another one has taken its place. The setting `readable_codes` of the environment may forbid it.',
  answers: ok(RadarChallengeWithCode),
  refuses: ['forbidden'],
})
export class GetRadarChallenge extends Query<RadarChallengeWithCode> {
  @Ref(() => RadarChallenge, { doc: 'The challenge: `radar_challenge_id` of the answer that asked for it.' }) id!: string;
}
