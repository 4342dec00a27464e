import { createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyKeys, LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { timeOfId } from '#libs/platform/src/ids';
import { ErasableEnvironment } from '#libs/platform/src/storage/erasable-environment';
import { TERM_LENGTH } from '../domain/audit-trail.decider.ts';
import { monthOf } from '../domain/audit-month.decider.ts';
import { MonthKey, nextMonth } from './month-key.ts';
import { TrailKey, TrailKeys, trailKeyOf } from './trail-keys.ts';

const STORED = { bytes: Buffer.alloc(32, 7), id: 'stored', step: 0 };
const JANUARY = monthOf(Date.parse('2026-01-31T23:59:59.999Z'));
const content = JSON.stringify({ action: 'document.shared', name: 'Zoë 𝒳'.repeat(20) });

function trailKey(): TrailKey {
  return new TrailKey(STORED, JANUARY, new Map());
}

describe('the keys of a trail', () => {
  it('follow from month to month, and lead nowhere back', () => {
    const february = Date.parse('2026-02-01T00:00:00.000Z');
    expect(monthOf(february)).toBe(JANUARY + 1);
    const key = trailKey();
    const sealed = key.at(february).seal('here', content);
    expect(key.at(february)).toBe(key.ofMonth(JANUARY + 1));
    expect(new MonthKey(nextMonth(STORED.bytes)).open('here', sealed)).toBe(content);
    expect(() => key.ofMonth(JANUARY).open('here', sealed)).toThrow();
    expect(() => key.ofMonth(JANUARY + 2).open('here', sealed)).toThrow();
    expect(key.ofMonth(JANUARY + 14).open('x', new MonthKey(Array.from({ length: 14 }).reduce<Buffer>(nextMonth, STORED.bytes)).seal('x', content))).toBe(
      content,
    );
  });

  it('take what comes before the first month, by a clock that is behind, for of that', () => {
    expect(trailKey().at(0).open('x', trailKey().ofMonth(JANUARY).seal('x', content))).toBe(content);
  });

  it('are the documented ones: a ratchet of HKDF, salts, terms and digests of HMAC, a commitment of SHA-256', () => {
    const next = Buffer.from(hkdfSync('sha256', STORED.bytes, '', 'gatehouse audit trail next month', 32));
    expect(nextMonth(STORED.bytes)).toEqual(next);
    const salt = createHmac('sha256', next).update('audit_event_1').digest().subarray(0, 16);
    const month = trailKey().ofMonth(JANUARY + 1);
    expect(month.saltOf('audit_event_1')).toEqual(salt);
    expect(month.commitment('audit_event_1', content)).toBe(createHash('sha256').update(salt).update(content).digest('base64url'));
    expect(month.commitment('audit_event_2', content)).not.toBe(month.commitment('audit_event_1', content));
    const hmacOf = (purpose: string, text: string): Buffer =>
      createHmac('sha256', Buffer.from(hkdfSync('sha256', next, '', `gatehouse audit trail ${purpose}`, 32)))
        .update(text)
        .digest();
    expect(month.termOf('actor_name', 'Zoë')).toBe(hmacOf('terms', 'actor_name:Zoë').toString('base64url').slice(0, TERM_LENGTH));
    expect(month.digestOf('content', content)).toBe(hmacOf('digests', `content:${content}`).subarray(0, 16).toString('base64url'));
  });

  it('tell neither kinds nor months of terms and digests for one another', () => {
    const [january, february] = [trailKey().ofMonth(JANUARY), trailKey().ofMonth(JANUARY + 1)];
    const all = [january, february].flatMap((month) => [
      month.termOf('action', 'a'),
      month.termOf('actor_id', 'a'),
      month.termOf('action', 'b'),
      month.digestOf('key', 'a'),
      month.digestOf('content', 'a'),
    ]);
    expect(new Set(all).size).toBe(all.length);
    expect(january.termOf('action', 'a')).toHaveLength(TERM_LENGTH);
    expect(trailKey().ofMonth(JANUARY).digestOf('key', 'a')).toBe(january.digestOf('key', 'a'));
  });
});

describe('the stored keys of trails', () => {
  const directories: string[] = [];
  const opened: ErasableEnvironment[] = [];
  afterAll(async () => {
    for (const environment of opened) await environment.close();
    for (const directory of directories) rmSync(directory, { recursive: true });
  });
  const newDirectory = (): string => {
    directories.push(mkdtempSync(join(tmpdir(), 'trail-keys-')));
    return join(directories.at(-1)!, 'keys');
  };
  const fail = (): never => {
    throw new Error('The keys are gone.');
  };
  const open = async (path: string): Promise<ErasableEnvironment> => {
    opened.push(await ErasableEnvironment.open({ path, onFailure: fail, onTakenOver: fail }));
    return opened.at(-1)!;
  };
  const organization = 'org_01KF0000000000000000000000';
  const owner = { environment: 'environment_1', organization };

  it('are those of the month up to which nothing is kept, wherever they were put back from', async () => {
    const environment = await open(newDirectory());
    const keys = new TrailKeys(await LmdbKeyStore.open(environment, []));
    const made = await keys.obtain(owner);
    const month = monthOf(timeOfId(organization));
    expect(made.firstMonth).toBe(month);
    const [early, late] = [made.ofMonth(month + 1).seal('x', 'early'), made.ofMonth(month + 5).seal('x', 'late')];
    const backup = newDirectory();
    await copyKeys(environment, backup);

    const others = ['org_01KF0000000000000000000001', 'org_01KF0000000000000000000002'];
    await keys.obtain({ ...owner, organization: others[0]! });
    const months = new Map([organization, ...others].map((id) => [id, month + 3]));
    expect(await keys.advance('environment_1', months)).toBe(2);
    expect(await keys.advance('environment_1', months)).toBe(0);
    const restored = new TrailKeys(await LmdbKeyStore.open(await open(backup), []));
    expect(await restored.advance('environment_1', new Map([[organization, month + 2]]))).toBe(1);
    expect(await restored.advance('environment_1', new Map([[organization, month + 3]]))).toBe(1);
    for (const each of [keys, restored]) {
      const key = (await each.find(owner))!;
      expect(key.firstMonth).toBe(month + 3);
      expect(key.ofMonth(month + 5).open('x', late)).toBe('late');
      for (const time of [Date.UTC(1970, month + 1), Date.UTC(1970, month + 3)]) expect(() => key.at(time).open('x', early)).toThrow();
    }
    await keys.destroy(owner);
    expect(await keys.advance('environment_1', new Map([[organization, month + 9]]))).toBe(0);
    expect(await keys.find(owner)).toBeNull();
  });

  it('are looked for by whoever looks through the log', () => {
    expect(trailKeyOf({ stream: 'audit_trail-environment_1-org_1' })).toBe('trail.environment_1-org_1');
    expect(trailKeyOf({ stream: 'audit_checkpoint-environment_1-org_1' })).toBeNull();
  });
});

describe('sealed content', () => {
  const month = trailKey().ofMonth(JANUARY);

  it('opens where it belongs alone, and unaltered', () => {
    const sealed = month.seal('stream event', content);
    expect(sealed).not.toContain('document');
    expect(month.open('stream event', sealed)).toBe(content);
    expect(() => month.open('stream other', sealed)).toThrow();
    const bytes = Buffer.from(sealed, 'base64url');
    for (const at of [0, 1, 13, bytes.length - 1]) {
      const altered = Buffer.from(bytes);
      altered[at]! ^= 1;
      expect(() => month.open('stream event', altered.toString('base64url'))).toThrow();
    }
  });

  it('takes half the room of a usual event, and hardly more than its own where nothing is usual', () => {
    const usual = JSON.stringify({
      action: 'document.shared',
      actor: { id: 'user_01M83J2HJ8CFYP3SM0TM140000', metadata: { role: 'owner' }, name: 'Ada Lovelace', type: 'user' },
      context: {
        location: '192.0.2.17',
        user_agent: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
      },
      metadata: { request_id: '8b0e4f9e-2f4c-4a39-9d68-5a6b0b1fce2d' },
      occurred_at: '2026-11-23T06:10:11.123Z',
      targets: [{ id: 'document_01M83J2HJ8CFYP3SM0TM140001', metadata: {}, name: 'Plan', type: 'document' }],
      version: 1,
    });
    expect(month.seal('x', usual).length).toBeLessThan(usual.length / 2);
    const noise = randomBytes(3_000).toString('latin1');
    const sealed = month.seal('x', noise);
    expect(month.open('x', sealed)).toBe(noise);
    expect(sealed.length).toBeLessThan(Buffer.byteLength(noise) * 1.4);
  });

  it('opens what the first release sealed', () => {
    const stored = 'AWM9cJkgp0p4szq3Zbh-J_hAGZJS18_UBIc4aO4NSdMFIIglh8M';
    expect(month.open('audit_trail-environment_1-org_1 audit_event_1', stored)).toBe('{"action":"user.signed_in","metadata":{},"version":null}');
  });
});
