import { LastIds } from './last-ids.ts';

describe('the last ids of their kinds', () => {
  const asked: string[] = [];
  const idsWith = (stored: Readonly<Record<string, string>>): LastIds => new LastIds((kind) => (asked.push(kind), stored[kind] ?? ''));

  it('tell what is new from what may be there: of each kind by itself, from its first write on', () => {
    const ids = idsWith({ org_: 'org_5', '0': '07' });
    expect(ids.isNew('org_6')).toBe(false);
    ids.add('org_3');
    expect(['org_5', 'org_6'].map((id) => ids.isNew(id))).toEqual([false, true]);
    ids.add('org_8');
    expect(['org_7', 'org_8', 'org_9', 'user_9', '08'].map((id) => ids.isNew(id))).toEqual([false, false, true, false, false]);
    ids.add('01');
    expect(['07', '08', '11', 'org_9'].map((id) => ids.isNew(id))).toEqual([false, true, false, true]);
  });

  it('are asked for once a kind, and of so many kinds', () => {
    asked.length = 0;
    const ids = idsWith({});
    for (let kind = 0; kind < 1_000; kind++) for (const end of ['a', 'b']) ids.add(`kind-${kind}_${end}`);
    expect(asked).toEqual(Array.from({ length: 64 }, (_, kind) => `kind-${kind}_`));
    expect([0, 63, 64, 999].map((kind) => ids.isNew(`kind-${kind}_c`))).toEqual([true, true, false, false]);
    const other = idsWith({});
    other.add(`${'x'.repeat(32)}_a`);
    expect(other.isNew(`${'x'.repeat(32)}_b`)).toBe(false);
  });
});
