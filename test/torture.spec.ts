import { failedSeeds, seedOf } from '#libs/testing/src/seed';
import { torture } from './torture/torture.ts';

/** `npm run proofs -- torture` does many more. */
const ROUNDS = 8;

it.each([seedOf('torture'), ...failedSeeds('torture')])(
  `loses, doubles and halves nothing when it is killed ${ROUNDS} times (seed %i)`,
  async (seed) => {
    const { acknowledged, retried, allowed, told, deliveries } = await torture({ rounds: ROUNDS, seed });
    expect(acknowledged).toBeGreaterThan(ROUNDS);
    expect(retried).toBeGreaterThan(0);
    expect(allowed).toBeGreaterThan(0);
    expect(told).toBeGreaterThan(0);
    expect(deliveries).toBeGreaterThan((acknowledged - told) / 2);
  },
  4 * 60_000,
);
