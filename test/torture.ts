import { parseArgs } from 'node:util';
import { torture } from './torture/torture.ts';

/** `npm run torture -- --rounds 1000` */
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '50' } } });
try {
  const outcome = await torture(Number(values.rounds), (line) => console.log(line));
  console.log(
    Object.entries(outcome)
      .map(([name, count]) => `${name}: ${count}`)
      .join(', '),
  );
} catch (error) {
  console.error(`torture: ${(error as Error).message}`);
  process.exitCode = 1;
}
