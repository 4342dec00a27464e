import { torture } from './torture/torture.ts';

const ROUNDS = 50;

it(
  `loses, doubles and halves nothing when it is killed ${ROUNDS} times`,
  async () => {
    const { acknowledged, retried, allowed, deliveries } = await torture(ROUNDS, () => {});
    expect(acknowledged).toBeGreaterThan(ROUNDS);
    expect(retried).toBeGreaterThan(0);
    expect(allowed).toBeGreaterThan(0);
    expect(deliveries).toBeGreaterThan(acknowledged / 2);
  },
  10 * 60_000,
);
