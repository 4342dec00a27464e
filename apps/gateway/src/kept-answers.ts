import type { Clock } from '#libs/platform/src/clock';
import type { HttpAnswer } from './http-answer.ts';

const MAX_ANSWERS = 1_000;
/** Clients may keep them far longer; so short a time nobody notices, and it saves the way to the service under any load. */
const KEPT_FOR = 1_000;

/** Answers that are the same for everybody, by what was asked. */
export class KeptAnswers {
  private readonly answers = new Map<string, { readonly answer: HttpAnswer; readonly until: number }>();

  constructor(private readonly clock: Clock) {}

  get(url: string): HttpAnswer | null {
    const kept = this.answers.get(url);
    return kept !== undefined && kept.until > this.clock.now() ? kept.answer : null;
  }

  /** Refusals are looked at anew. */
  keep(url: string, answer: HttpAnswer): void {
    if (answer.status !== 200) return;
    this.answers.delete(url);
    if (this.answers.size >= MAX_ANSWERS) this.answers.delete(this.answers.keys().next().value!);
    this.answers.set(url, { answer, until: this.clock.now() + KEPT_FOR });
  }
}
