import { newUlid } from '#libs/platform/src/ids';
import { GrantTable, groupSubject, membershipSubject } from './grant-table.ts';
import { GroupMembers } from './group-members.ts';
import { hashOfRead, IdTable, readId } from './id-table.ts';
import { MembershipOrder } from './membership-order.ts';
import { MembershipRoutes } from './membership-routes.ts';
import type { OrganizationIndex } from './organization-index.ts';

/** The same numbers in every run. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const idsOf = (count: number): string[] => Array.from({ length: count }, () => `om_${newUlid(Date.now())}`);

describe('a table of ids', () => {
  it('gives each the next number, once, and tells both ways', () => {
    const [table, ids] = [new IdTable('om'), idsOf(1_000)];
    expect(ids.map((id) => table.add(id))).toEqual(ids.map((_, number) => number));
    expect(ids.map((id) => table.add(id))).toEqual(ids.map((_, number) => number));
    expect(ids.map((id) => table.numberOf(id))).toEqual(ids.map((_, number) => number));
    expect(ids.map((_, number) => table.idOf(number))).toEqual(ids);
    for (const id of [...idsOf(100), 'om_', 'nothing', `org_${ids[0]!.slice(3)}`]) expect(table.numberOf(id)).toBe(-1);
    expect(() => table.add('om_1')).toThrow(RangeError);
    expect(table.bytes / table.size).toBeLessThan(40);
  });
});

describe('a table of grants', () => {
  /** Each holds the permission of its own number alone. */
  const ROLES = [0, 1, 2, 3].map((role) => ({ grants: (permission: number) => permission === role }));

  it('says what a list of them says, after any history', () => {
    for (const isCollected of [false, true]) {
      const [next, table, known] = [chance(7), new GrantTable(), new Map<string, readonly [number, number, number]>()];
      if (isCollected) table.collect();
      for (let step = 0; step < 10_000; step++) {
        if (isCollected && step === 5_000) expect([...table.index()].length).toBeGreaterThan(0);
        const subject = next(3) === 0 ? groupSubject(next(5)) : membershipSubject(next(40));
        const [node, role] = [next(60), next(4)];
        const key = `${subject} ${node} ${role}`;
        switch (next(isCollected && step < 5_000 ? 2 : 12)) {
          case 0:
            table.remove(subject, node, role);
            known.delete(key);
            break;
          case 10:
            if (step % 50 > 0) break;
            table.removeNode(node);
            for (const [other, grant] of known) if (grant[1] === node) known.delete(other);
            break;
          case 11:
            if (step % 50 > 0) break;
            table.removeSubject(subject);
            for (const [other, grant] of known) if (grant[0] === subject) known.delete(other);
            break;
          default:
            // While they are collected, each is known to come once.
            if (isCollected && step < 5_000 && known.has(key)) break;
            if (table.add(subject, node, role) === known.has(key)) throw new Error(`${key} is not taken for what it is.`);
            known.set(key, [subject, node, role]);
        }
        if (step % 997 === 0 && (!isCollected || step > 5_000)) isAs(table, [...known.values()]);
      }
      isAs(table, [...known.values()]);
    }
  });

  function isAs(table: GrantTable, known: readonly (readonly [number, number, number])[]): void {
    expect(table.size).toBe(known.length);
    const text = (grants: readonly (readonly [number, number, number])[]) => grants.map((grant) => grant.join(' ')).sort();
    const wrong: string[] = [];
    const byNode: [number, number, number][] = [];
    const bySubject: [number, number, number][] = [];
    const looked: [number, number, number][] = [];
    const collect = (into: [number, number, number][], grant: number) => into.push([table.subjectOf(grant), table.nodeOf(grant), table.roleOf(grant)]);
    for (let node = 0; node < 60; node++) for (let grant = table.firstOn(node); grant !== -1; grant = table.nextOn(grant)) collect(byNode, grant);
    const subjects = [...Array.from({ length: 5 }, (_, group) => groupSubject(group)), ...Array.from({ length: 40 }, (_, each) => membershipSubject(each))];
    for (const subject of subjects) {
      for (let grant = table.firstOf(subject); grant !== -1; grant = table.nextOf(grant)) collect(bySubject, grant);
      for (let node = 0; node < 60; node++) {
        const roles = [...table.rolesOf(subject, node)];
        looked.push(...roles.map((role): [number, number, number] => [subject, node, role]));
        for (let role = 0; role < 4; role++) if (table.some(subject, node, ROLES, role) !== roles.includes(role)) wrong.push(`${subject} ${node} ${role}`);
      }
    }
    expect(wrong).toEqual([]);
    for (const found of [byNode, bySubject, looked]) expect(text(found)).toEqual(text(known));
  }
});

describe('members of groups', () => {
  it('are what a list of pairs says, after any history', () => {
    const [next, members, known] = [chance(3), new GroupMembers(), new Set<string>()];
    for (let step = 0; step < 10_000; step++) {
      const [group, membership] = [next(8), next(50)];
      const kind = next(40);
      if (kind === 0) members.removeGroup(group);
      else if (kind === 1) members.removeMembership(membership);
      else if (kind < 15) members.remove(group, membership);
      else members.add(group, membership);
      for (const pair of [...known]) {
        const [ofGroup, ofMembership] = pair.split(' ').map(Number);
        if ((kind === 0 && ofGroup === group) || (kind === 1 && ofMembership === membership)) known.delete(pair);
      }
      if (kind >= 15) known.add(`${group} ${membership}`);
      else if (kind > 1) known.delete(`${group} ${membership}`);
      if (step % 501 > 0) continue;
      expect(members.size).toBe(known.size);
      const byGroup = Array.from({ length: 8 }, (_, each) => [...members.of(each)].map((member) => `${each} ${member}`)).flat();
      expect(byGroup.sort()).toEqual([...known].sort());
      const byMembership: string[] = [];
      for (let each = 0; each < 50; each++)
        for (let pair = members.firstPair(each); pair !== -1; pair = members.nextPair(pair)) byMembership.push(`${members.groupOf(pair)} ${each}`);
      expect(byMembership.sort()).toEqual([...known].sort());
      for (let each = 0; each < 8; each++) expect(members.countOf(each)).toBe([...members.of(each)].length);
    }
    expect(members.bytes).toBeLessThan(20_000);
  });
});

it('memberships stand in the order of their ids, in whatever order they come', () => {
  const next = chance(11);
  for (const isMixed of [false, true]) {
    const ids = idsOf(500);
    const coming = isMixed ? ids.toSorted(() => next(3) - 1) : ids;
    const table = new IdTable('om');
    const order = new MembershipOrder(table);
    for (const id of coming) {
      table.add(id);
      order.add();
    }
    const sorted = ids.toSorted();
    expect(Array.from({ length: order.size }, (_, place) => table.idOf(order.at(place)))).toEqual(sorted);
    expect(sorted.map((id) => order.placeOf(id))).toEqual(sorted.map((_, place) => place));
    expect([order.placeOf('om_00000000000000000000000000'), order.placeOf('om_7ZZZZZZZZZZZZZZZZZZZZZZZZZ')]).toEqual([0, 500]);
    expect(order.bytes > 0).toBe(isMixed);
  }
});

it('a membership leads to its organization until that is forgotten', () => {
  const routes = new MembershipRoutes();
  const organizations = Array.from({ length: 20 }, () => ({ ids: new Set(idsOf(100)) }) as unknown as OrganizationIndex & { ids: Set<string> });
  const find = (id: string): OrganizationIndex | null => {
    readId('om', id);
    return routes.find(hashOfRead(), (organization) => (organization as (typeof organizations)[number]).ids.has(id));
  };
  const add = (organization: (typeof organizations)[number]): void => {
    for (const id of organization.ids) {
      readId('om', id);
      routes.add(hashOfRead(), organization);
    }
  };
  for (const organization of organizations) add(organization);
  for (let round = 0; round < 20; round++) {
    routes.forget(organizations[round]!);
    for (const [place, organization] of organizations.entries())
      expect([...organization.ids].every((id) => find(id) === (place === round ? null : organization))).toBe(true);
    add(organizations[round]!);
  }
  expect(routes.bytes / 2_000).toBeLessThan(34);
});
