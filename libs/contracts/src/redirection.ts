import { Text } from './fields.ts';
import type { AnswerShape } from './operation.ts';

/** Where a browser is sent. */
export class Redirection {
  @Text({ doc: 'The address.' }) location!: string;
}

export const redirect: AnswerShape<Redirection> = { status: 302, of: Redirection, shape: 'redirect' };
