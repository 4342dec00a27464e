import { lived } from '../testing/given-history.ts';

const SEEDS = [1, 2, 3, 4, 5];
const [TIMES, STEPS] = [40, 25];

let [none, one, several] = [0, 0, 0];

it.each(SEEDS)('what groups of directories give a membership is what a few maps say (seed %i)', (seed) => {
  for (const { index, history, naive } of lived(seed, STEPS, TIMES))
    for (const id of history.memberships) {
      const membership = index.membershipNumber(id);
      if (membership === -1) continue;
      const roles = index.mapped.of(membership).map((role) => role.id);
      const meant = naive.of(id);
      if (roles.join() !== meant.join()) expect(roles).toEqual(meant);
      if (meant.length === 0) none++;
      else if (meant.length === 1) one++;
      else several++;
    }
});

it('and hundreds had none, one and several', () => {
  expect(Math.min(none, one, several)).toBeGreaterThan(100);
});
