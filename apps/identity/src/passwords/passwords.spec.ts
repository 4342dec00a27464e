import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { Metrics } from '#libs/platform/src/metrics';
import { givenKeys } from '#libs/testing/src/given-keys';
import type { StoredPassword } from '../domain/stored-password.ts';
import { PasswordWork } from './password-work.ts';
import { Passwords } from './passwords.ts';

const directory = mkdtempSync(join(tmpdir(), 'passwords-'));
afterAll(() => rmSync(directory, { recursive: true }));

const later = (): number => Date.now() + 60_000;
const newWork = (): PasswordWork => new PasswordWork(new SystemClock(), new Metrics());
const cost = (PASSWORD_HASH_COST: string): IdentitySettings => readSettings(IdentitySettings, { PASSWORD_HASH_COST });
const newPasswords = async (keys = 'keys', settings = cost('4')): Promise<Passwords> =>
  new Passwords(await givenKeys(join(directory, keys)), newWork(), settings);

describe('a password', () => {
  it('is right for itself alone, also after a restart', async () => {
    const stored = await (await newPasswords()).stored({ password: 'ride-a-giraffe' }, later());
    expect(stored).toEqual({ type: 'bcrypt-hmac', hash: expect.stringMatching(/^\$2b\$04\$/) });
    const passwords = await newPasswords();
    expect(await passwords.matches(stored!, 'ride-a-giraffe', later())).toBe(true);
    for (const wrong of ['ride-a-giraffE', 'ride-a-giraffe ', '']) expect(await passwords.matches(stored!, wrong, later())).toBe(false);
  });

  it('is hashed at the cost that is set, 12 where none is, and stays right when that changes', async () => {
    const stored = await (await newPasswords('keys', readSettings(IdentitySettings, {}))).stored({ password: 'ride-a-giraffe' }, later());
    expect(stored!.hash).toMatch(/^\$2b\$12\$/);
    const changed = await newPasswords('keys', cost('5'));
    expect((await changed.stored({ password: 'ride-a-giraffe' }, later()))!.hash).toMatch(/^\$2b\$05\$/);
    expect(await changed.matches(stored!, 'ride-a-giraffe', later())).toBe(true);
    expect(await changed.matches(stored!, 'ride-a-giraffE', later())).toBe(false);
  });

  it('counts beyond 72 bytes', async () => {
    const passwords = await newPasswords();
    const long = 'x'.repeat(100);
    const stored = await passwords.stored({ password: `${long}1` }, later());
    expect(await passwords.matches(stored!, `${long}1`, later())).toBe(true);
    expect(await passwords.matches(stored!, `${long}2`, later())).toBe(false);
  });

  it('is the same however an accent is typed', async () => {
    const passwords = await newPasswords();
    const stored = await passwords.stored({ password: 'caf\u00e9-au-lait' }, later());
    expect(await passwords.matches(stored!, 'cafe\u0301-au-lait', later())).toBe(true);
  });

  it('cannot be tried without the key', async () => {
    const stored = await (await newPasswords()).stored({ password: 'ride-a-giraffe' }, later());
    expect(await (await newPasswords('other-keys')).matches(stored!, 'ride-a-giraffe', later())).toBe(false);
  });

  it('that came hashed is verified by the function that hashed it', async () => {
    const passwords = await newPasswords();
    const password_hash = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
    const stored = await passwords.stored({ password_hash, password_hash_type: 'argon2' }, later());
    expect(await passwords.matches(stored!, 'password', later())).toBe(true);
    expect(await passwords.matches(stored!, 'passwort', later())).toBe(false);
  });

  it.each<[string, () => Promise<StoredPassword | null>]>([
    ['came hashed', async () => ({ type: 'ssha', hash: `{SSHA}${Buffer.alloc(24).toString('base64')}` })],
    ['was hashed at a lower cost', async () => (await newPasswords()).stored({ password: 'ride-a-giraffe' }, later())],
  ])('that %s takes no less than a new one, or it would tell that somebody has it', async (_, made) => {
    const [work, stored] = [newWork(), await made()];
    const passwords = new Passwords(await givenKeys(join(directory, 'keys')), work, cost('11'));
    const cheaper = work.bcrypt(later(), 'ride-a-giraffe', 7).then(() => 'cheaper');
    expect(await Promise.race([passwords.matches(stored!, 'ride-a-giraffE', later()), cheaper])).toBe('cheaper');
  });

  it('is hashed while others are served', async () => {
    const passwords = await newPasswords('keys', cost('10'));
    let turns = 0;
    const turning = setInterval(() => turns++, 5);
    await passwords.stored({ password: 'ride-a-giraffe' }, later());
    clearInterval(turning);
    expect(turns).toBeGreaterThan(5);
  });

  it.each([
    ['password_too_short', ''],
    ['password_too_short', 'short'],
    ['password_too_short', '😀😀😀😀😀'],
    ['password_too_common', 'password123'],
    ['password_too_common', '1234567890'],
    ['password_too_common', 'QwertyUiop'],
  ])('is refused as %s: %s', async (code, password) => {
    const refused = (await newPasswords()).stored({ password }, later());
    await expect(refused).rejects.toMatchObject({ code: 'password_strength_error', details: { errors: [{ code, field: 'password' }] } });
  });
});

/** Of Linux: how far each thread of this process gives way to others. */
function priorities(): readonly number[] {
  return readdirSync('/proc/self/task').map((thread) => {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
  });
}

describe('work on passwords', () => {
  const never = new Promise<never>(() => {});

  it('is done in a thread that gives way to everything else, and ends with the process that asked for it', async () => {
    const work = newWork();
    const [before, own] = [priorities(), getPriority()];
    expect(await work.bcrypt(later(), 'ride-a-giraffe', 4)).toMatch(/^\$2b\$04\$/);
    const behind = (all: readonly number[]): number => all.filter((priority) => priority > own).length;
    expect(behind(priorities())).toBe(behind(before) + 1);
    expect(getPriority()).toBe(own);
    await work.onModuleDestroy();
    expect(behind(priorities())).toBe(behind(before));
  });

  it('goes on in another thread after one has failed', async () => {
    const work = newWork();
    await expect(work.bcrypt(later(), 'ride-a-giraffe', 'no salt')).rejects.toThrow('salt');
    expect(await work.bcrypt(later(), 'ride-a-giraffe', 4)).toMatch(/^\$2b\$04\$/);
    await work.onModuleDestroy();
  });

  it('is refused at once where too much waits', async () => {
    const work = newWork();
    const held = Array.from({ length: 200 }, () => work.run(later(), () => never));
    const refused = held.map((running) => running.catch(({ code }: { code: string }) => code));
    const answers = await Promise.all(refused.map((running) => Promise.race([running, pause(50, 'waits')])));
    expect(answers.filter((answer) => answer === 'waits').length).toBeLessThan(100);
    expect(new Set(answers)).toEqual(new Set(['waits', 'service_unavailable']));
  });

  it('is not begun past its deadline, and leaves its place to the next', async () => {
    const work = newWork();
    let begun = 0;
    const slow = Array.from({ length: 4 }, () => work.run(later(), () => pause(30)));
    const late = Array.from({ length: 4 }, () => work.run(Date.now() - 1, async () => begun++).catch(({ code }: { code: string }) => code));
    const last = work.run(later(), async () => 'done');
    await Promise.all(slow);
    expect(await Promise.all(late)).toEqual(Array.from({ length: 4 }, () => 'service_unavailable'));
    expect(await last).toBe('done');
    expect(begun).toBe(0);
  });

  it('that is large goes on one at a time, and leaves the other places to what is small', async () => {
    const work = newWork();
    let large = 0;
    let most = 0;
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const running = Array.from({ length: 4 }, () =>
      work.run(
        later(),
        async () => {
          most = Math.max(most, ++large);
          await gate;
          large--;
        },
        { isLarge: true },
      ),
    );
    expect(await work.run(later(), async () => 'done')).toBe('done');
    open();
    await Promise.all(running);
    expect(most).toBe(1);
  });

  it('that is large is refused at once where too much of it waits, and then nothing else is', async () => {
    const work = newWork();
    const large = Array.from({ length: 20 }, () => work.run(later(), () => never, { isLarge: true }).catch(({ code }: { code: string }) => code));
    const answers = await Promise.all(large.map((running) => Promise.race([running, pause(50, 'waits')])));
    expect(answers.filter((answer) => answer === 'waits').length).toBeLessThan(12);
    expect(new Set(answers)).toEqual(new Set(['waits', 'service_unavailable']));
    expect(await work.run(later(), async () => 'done')).toBe('done');
  });

  it('on a large hash from elsewhere waits for another such, and on a small one does not', async () => {
    const metrics = new Metrics();
    const work = new PasswordWork(new SystemClock(), metrics);
    const passwords = new Passwords(await givenKeys(join(directory, 'keys')), work, cost('4'));
    let open = (): void => {};
    const held = work.run(later(), () => new Promise<void>((resolve) => (open = resolve)), { isLarge: true });
    const large = { type: 'pbkdf2', hash: '$pbkdf2-sha256$i=600000$0ZrzXitFSGltTQnBWOsdAw$Y11AchqV4b0sUisdZd0Xr97KWoymNE0LNNrnEgY4H9M' } as const;
    const waits = passwords.matches(large, 'password', later());
    expect(await metrics.text()).toMatch(/^gatehouse_passwords_waiting 1$/m);
    expect(await passwords.matches({ ...large, hash: large.hash.replace('600000', '6400') }, 'password', later())).toBe(true);
    open();
    await held;
    expect(await waits).toBe(false);
  });

  it('that fails leaves its place to the next', async () => {
    const work = newWork();
    const failing = Array.from({ length: 8 }, () => work.run(later(), () => Promise.reject(new Error('broken'))).catch(String));
    expect(new Set(await Promise.all(failing))).toEqual(new Set(['Error: broken']));
    expect(await work.run(later(), async () => 'done')).toBe('done');
  });
});
