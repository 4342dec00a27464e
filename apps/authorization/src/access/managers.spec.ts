import { newUlid } from '#libs/platform/src/ids';
import { Managers } from './managers.ts';

const [directory_id, elsewhere] = ['directory_1', 'directory_2'];
const people = Array.from({ length: 100 }, (_, number) => `directory_user_${newUlid(1_700_000_000_000 + number)}`);

it('everybody of whom is first heard that they may not work, may not, however many they are', () => {
  const managers = new Managers();
  for (const id of people) managers.absent({ id, directory_id, is_gone: false });
  for (const [membership, directory_user_id] of people.entries()) managers.manages({ directory_id, directory_user_id }, membership);
  expect(people.filter((_, membership) => managers.allow(membership))).toEqual([]);
});

it('a membership goes by whoever manages it, and once they are gone, by the first of those who wait for it and may work', () => {
  const managers = new Managers();
  const [manager, first, second] = people as [string, string, string];
  const decider = (): string | undefined => people.find((id) => managers.numberOf(id) === managers.decider(0));
  expect(managers.decider(0)).toBe(-1);
  managers.manages({ directory_id, directory_user_id: manager }, 0);
  managers.waits(second, elsewhere, 0);
  managers.waits(first, elsewhere, 0);
  expect(decider()).toBe(manager);
  managers.absent({ id: manager, directory_id, is_gone: false });
  expect(decider()).toBe(manager);
  managers.absent({ id: manager, directory_id, is_gone: true });
  expect(decider()).toBe(first);
  managers.absent({ id: first, directory_id: elsewhere, is_gone: false });
  expect(decider()).toBe(second);
  managers.endDirectory(elsewhere);
  expect(managers.decider(0)).toBe(-1);
});
