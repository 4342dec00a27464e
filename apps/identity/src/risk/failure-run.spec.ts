import { afterSuccess, nextAttempt, type FailureRun } from './failure-run.ts';

const SECOND = 1_000;
/** That many attempts, each as soon as it may be. */
function failed(
  times: number,
  passwordId: string | null | undefined = 'password_1',
  run: FailureRun | null = null,
): { run: FailureRun | null; waits: number[]; now: number } {
  const waits: number[] = [];
  let now = run?.at ?? 0;
  for (let index = 0; index < times; index++) {
    const { waitMs } = nextAttempt(run, now, passwordId);
    waits.push(waitMs / SECOND);
    now += waitMs;
    run = nextAttempt(run, now, passwordId).next;
  }
  return { run, waits, now };
}

describe('failures of an account in a row', () => {
  it('make it wait longer and longer, up to a minute, once ten have failed', () =>
    expect(failed(19).waits).toEqual([...Array.from({ length: 10 }, () => 0), 1, 2, 4, 8, 16, 32, 60, 60, 60]));
  it('are forgotten in an hour without any, but for those of the password', () => {
    const { run, now } = failed(20);
    const { waitMs, next } = nextAttempt(run, now + 60 * 60 * SECOND + 1, 'password_1');
    expect([waitMs, next.failures, next.passwords]).toEqual([0, 1, 21]);
  });
  it('take a password out of use once it was tried 100 times', () => {
    const { run, now } = failed(100);
    expect(nextAttempt(failed(99).run, now, 'password_1').needsReset).toBe(false);
    expect(nextAttempt(run, now, 'password_1').needsReset).toBe(true);
  });
  it('are of the password that there was: another one works', () => {
    const { run, now } = failed(100);
    expect(nextAttempt(run, now, 'password_2')).toMatchObject({ needsReset: false, next: { passwords: 1, password_id: 'password_2' } });
  });
  it('are counted alike for an address that nobody has', () => expect(nextAttempt(failed(100, null).run, 0, null).needsReset).toBe(true));
  it('keep nobody from a code by mail, whatever was tried of the password', () => {
    const { run, now } = failed(100);
    expect(nextAttempt(run, now, undefined)).toMatchObject({ needsReset: false, next: { passwords: 100, password_id: 'password_1' } });
  });
  it('end with the right password; a code leaves what was tried of it', () => {
    const { run } = failed(12);
    expect(afterSuccess(run!, true)).toBeNull();
    expect(afterSuccess(run!, false)).toEqual({ ...run, failures: 0 });
    expect(afterSuccess(nextAttempt(null, 0, undefined).next, false)).toBeNull();
  });
});
