import { refuseWeakPassword, type PasswordRules } from './password-policy.ts';

const rules: PasswordRules = { policy: 'default', hasSecondFactor: false, email: 'ada.lovelace@acme.test' };
const nist: PasswordRules = { ...rules, policy: 'nist' };
const beside: PasswordRules = { ...nist, hasSecondFactor: true };
const wrongWith = (password: string, of: PasswordRules): readonly string[] => {
  try {
    refuseWeakPassword(password, of);
    return [];
  } catch (error) {
    return (error as { details: { errors: { code: string }[] } }).details.errors.map(({ code }) => code);
  }
};

describe('a new password', () => {
  it.each<[string, PasswordRules, readonly string[]]>([
    ['ride-a-gir', rules, []],
    ['ride-a-gi', rules, ['password_too_short']],
    ['ride-a-giraffe', nist, ['password_too_short']],
    ['ride-a-giraffe-', nist, []],
    ['ride-a-g', beside, []],
    ['ride-a-', beside, ['password_too_short']],
    ['password', beside, ['password_too_common']],
    ['Password123', rules, ['password_too_common']],
    ['Ada.Lovelace@Acme.Test', nist, ['password_contains_email']],
    ['my ada.lovelace@acme.test 7', nist, ['password_contains_email']],
    ['Ada.Lovelace', nist, ['password_too_short', 'password_contains_email']],
    ['ada.lovelace rides a giraffe', nist, []],
    ['ada.lovelace@acme.test', { ...nist, email: null }, []],
  ])('%s', (password, of, codes) => expect(wrongWith(password, of)).toEqual(codes));
});
