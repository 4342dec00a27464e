import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { givenKeys } from '#libs/testing/src/given-keys';
import type { RecordedEvent } from '../log/event-store.ts';
import { UnreadableRecord } from '../log/lazy-record.ts';
import { purposeOf } from './holders.ts';
import type { KeyStore } from './key-store.ts';
import { openedReason, sealedReason } from './reasons.ts';
import { Vault } from './vault.ts';

const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const [ADA, GRACE, STRANGER] = ['user_01HZZZZZZZZZZZZZZZZZZZZZZ1', 'user_01HZZZZZZZZZZZZZZZZZZZZZZ2', 'user_01HZZZZZZZZZZZZZZZZZZZZZZ3'];
const REASON = 'Error: ada@acme.test is taken by grace@acme.test';
const ERASED = 'It may have told of somebody who was erased since.';

describe('why something failed', () => {
  let directory: string;
  let keys: KeyStore;
  let vault: Vault;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'reasons-'));
    keys = await givenKeys(directory);
    vault = new Vault(keys);
    for (const holder of [`user.${ADA}`, `user.${GRACE}`, 'address.ab12.2026-11', 'user.other']) await keys.obtain(purposeOf(holder, ENVIRONMENT));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const record = (data: unknown, of: readonly string[] = [], key = 'x'): RecordedEvent => ({
    ...{ id: 'event', type: 'happened', shape: 1, subject: null, public: [], stream: `thing-${ENVIRONMENT}-${key}`, version: 1, position: '1', data },
    sealed: of.map((holder) => ({ of: holder, fields: ['data.email'] })),
    meta: { environment: ENVIRONMENT, actor: { id: 'a', source: 'system', name: null }, requestId: 'r', commandId: 'c', at: 0 },
  });
  const cases: readonly (readonly [string, RecordedEvent, string])[] = [
    ['whose an address in it was', record({ email: 'a@acme.test' }, ['address.ab12.2026-11']), 'address.ab12.2026-11'],
    ['whom it names', record({ by: { user_id: ADA }, other: STRANGER }), `user.${ADA}`],
    ['whom it names beside another', record({ user_id: GRACE }, ['user.other']), `user.${GRACE}`],
    ['whose stream it is in', record(null, [], GRACE), `user.${GRACE}`],
  ];

  it('is what an operator reads, and goes with anybody whom the record is about', async () => {
    const sealed = await Promise.all(cases.map(([, about]) => sealedReason(vault, about, new Error(REASON.slice('Error: '.length)))));
    for (const [index, [, about]] of cases.entries()) {
      expect(sealed[index]).not.toContain('acme');
      expect(await openedReason(vault, sealed[index]!, about)).toBe(REASON);
    }
    for (const [index, [name, about, holder]] of cases.entries()) {
      await keys.destroy(purposeOf(holder, ENVIRONMENT));
      expect([name, await openedReason(vault, sealed[index]!, about)]).toEqual([name, ERASED]);
      // Nor is it stored any more.
      expect([name, await openedReason(vault, await sealedReason(vault, about, new Error(REASON)), about)]).toEqual([name, ERASED]);
    }
  });

  it('grows little with those whom a record names', async () => {
    const people = Array.from({ length: 40 }, (_, index) => `user_01HZZZZZZZZZZZZZZZZZZZZZ${String(index).padStart(2, '0')}`);
    await Promise.all(people.map((id) => keys.obtain(purposeOf(`user.${id}`, ENVIRONMENT))));
    const about = record({ people });
    const sealed = await sealedReason(vault, about, REASON);
    expect(sealed.length).toBeLessThan(200 * people.length);
    expect(await openedReason(vault, sealed, about)).toBe(REASON);
    await keys.destroy(purposeOf(`user.${people.at(-1)!}`, ENVIRONMENT));
    expect(await openedReason(vault, sealed, about)).toBe(ERASED);
  });

  it('is stored of a record that cannot be read, or is about nobody, and was by earlier releases', async () => {
    const nobody = record({ name: 'Acme', other: STRANGER });
    const { data: _data, subject: _subject, ...envelope } = nobody;
    const unreadable = new UnreadableRecord(envelope, 'it is no JSON');
    for (const about of [nobody, unreadable]) expect(await openedReason(vault, await sealedReason(vault, about, REASON), about)).toBe(REASON);
    const former = await vault.seal(REASON, { stream: nobody.stream, field: 'error' });
    expect(await openedReason(vault, former, nobody)).toBe(REASON);
  });
});
