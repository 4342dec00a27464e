/** Failures of an account in a row: from devices that nobody signed in with before, or from one that somebody did. */
export interface FailureRun {
  readonly failures: number;
  /** When the last began (milliseconds). */
  readonly at: number;
  /** Of them, how often this password of ours was tried. */
  readonly passwords: number;
  /** Tells one password from the next; null where there is none. */
  readonly password_id: string | null;
}

/** What is thought of one more attempt. */
interface NextAttempt {
  /** How long nobody may try again (milliseconds). */
  readonly waitMs: number;
  /** Whether the password was tried so often that only a new one lets its user in. */
  readonly needsReset: boolean;
  /** With this attempt, which fails until it is told to have succeeded. */
  readonly next: FailureRun;
}

/** So many may fail before anybody has to wait: as many as may be tried in a minute. */
const FREE = 10;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
/** Of one password (NIST SP 800-63B: not more than 100). */
const MOST_OF_A_PASSWORD = 100;
/** After this silence nobody waits for what failed before. */
const FORGOTTEN_AFTER_MS = 60 * 60_000;

/** `passwordId`: of the password of ours that is compared, null where there is none; undefined where no password is. */
export function nextAttempt(run: FailureRun | null, now: number, passwordId: string | null | undefined): NextAttempt {
  const failures = run === null || now - run.at > FORGOTTEN_AFTER_MS ? 0 : run.failures;
  const isPassword = passwordId !== undefined;
  const passwords = run === null || (isPassword && run.password_id !== passwordId) ? 0 : run.passwords;
  return {
    waitMs: run === null ? 0 : Math.max(0, run.at + waitAfter(failures) - now),
    needsReset: isPassword && passwords >= MOST_OF_A_PASSWORD,
    next: {
      failures: failures + 1,
      at: now,
      passwords: passwords + (isPassword ? 1 : 0),
      password_id: isPassword ? passwordId : (run?.password_id ?? null),
    },
  };
}

/** One more try of the password by an attempt that was counted already. */
export function nextTryOfPassword(run: FailureRun | null, now: number, passwordId: string | null): Pick<NextAttempt, 'needsReset' | 'next'> {
  const { needsReset, next } = nextAttempt(run, now, passwordId);
  return { needsReset, next: { ...next, failures: Math.max(1, next.failures - 1) } };
}

/** What is left of a run once somebody was let in; null: nothing. Only the right password, or another one, ends how often it was tried. */
export function afterSuccess(run: FailureRun, byPassword: boolean): FailureRun | null {
  return byPassword || run.passwords === 0 ? null : { ...run, failures: 0 };
}

/** Twice as long with each that fails. */
function waitAfter(failures: number): number {
  return failures < FREE ? 0 : Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - FREE));
}
