import { environmentVariables } from '#libs/platform/src/config/environment';
import { failedSeeds, seedOf } from '#libs/testing/src/seed';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { live, type Tally } from './histories/history.ts';
import { RecordedLog } from './histories/recorded-log.ts';

const { SUITE, HISTORIES, HISTORIES_SEED } = environmentVariables();
/** `HISTORIES=500 npm test test/histories.spec.ts`; with `HISTORIES_SEED`, those from that one on. A seed does the same alone as beside others. */
const FIRST_SEED = Number(HISTORIES_SEED ?? seedOf('histories'));
const SEEDS = [
  ...Array.from({ length: Number(HISTORIES ?? (SUITE === 'processes' ? 4 : 6)) }, (_none, index) => FIRST_SEED + index),
  ...failedSeeds('histories'),
];
const COUNT = SEEDS.length;
/** How many live at a time, each in an environment of its own. */
const AT_A_TIME = 8;
/** For each of them, on a machine that does much else. */
const LONGEST = SUITE === 'processes' ? 150_000 : 20_000;

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

it(
  `answers every question in ${COUNT} histories as the log does (from seed ${FIRST_SEED})`,
  async () => {
    const log = new RecordedLog(suite, await suite.head());
    const tally: Tally = { questions: 0, allowed: 0, denied: 0, lists: 0 };
    const seeds = [...SEEDS];
    const failures: unknown[] = [];
    const liveOn = async (): Promise<void> => {
      for (let seed = seeds.shift(); seed !== undefined && failures.length === 0; seed = seeds.shift()) {
        const caller = await suite.otherEnvironment(`history-${seed}`);
        await live(seed, caller, () => log.of(caller.id), tally).catch((error: unknown) => failures.push(error));
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, liveOn));
    log.close();
    expect(failures).toEqual([]);
    console.info(`${COUNT} histories from seed ${FIRST_SEED}: ${JSON.stringify(tally)}`);
    // A checker that is always told the same finds nothing.
    expect(tally.allowed / tally.questions).toBeGreaterThan(0.3);
    expect(tally.allowed / tally.questions).toBeLessThan(0.7);
    expect(tally.lists).toBeGreaterThan(0);
  },
  LONGEST * (4 + COUNT),
);
