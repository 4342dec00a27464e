import { parseArgs } from 'node:util';
import { torture } from './torture/torture.ts';

/** `npm run torture -- --rounds 1000 --seed 7` */
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '50' }, seed: { type: 'string' } } });
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
try {
  console.log(`torture of ${values.rounds} rounds from seed ${seed}`);
  const outcome = await torture({ rounds: Number(values.rounds), seed, tell: (line) => console.log(line) });
  console.log(
    Object.entries(outcome)
      .map(([name, count]) => `${name}: ${count}`)
      .join(', '),
  );
} catch (error) {
  console.error(`torture: ${(error as Error).message}`);
  process.exitCode = 1;
}
