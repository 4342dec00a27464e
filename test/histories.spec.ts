import { START, type Position, type RecordedEvent } from '#libs/event-sourcing/src/event-store';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { live, type Reader, type Tally } from './histories/history.ts';

const { SUITE, HISTORIES, HISTORIES_SEED } = environmentVariables();
/** Processes on engines of their own take ten times as long for each. */
const isCluster = SUITE === 'processes';
/** `HISTORIES=500 npm test test/histories.spec.ts`; with `HISTORIES_SEED`, those from that one on. */
const COUNT = Number(HISTORIES ?? (isCluster ? 5 : 50));
const FIRST_SEED = Number(HISTORIES_SEED ?? Date.now() % 1_000_000);
/** A history on a machine that does much else. */
const LONGEST = isCluster ? 150_000 : 20_000;

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

/** Reads an environment's part of the log, each time only what is new of it. */
function readerOf(after: Position, environment: () => string | undefined): Reader {
  const own: RecordedEvent[] = [];
  let position = after;
  return async () => {
    for (const record of await suite.recordsAfter(position)) {
      position = record.position;
      if (record.meta.environment === (environment() ?? record.meta.environment)) own.push(record);
    }
    return own;
  };
}

it(
  `answers every question in ${COUNT} histories as the log does (from seed ${FIRST_SEED})`,
  async () => {
    const tally: Tally = { questions: 0, allowed: 0, denied: 0, lists: 0 };
    for (let seed = FIRST_SEED; seed < FIRST_SEED + COUNT; seed++) {
      const head = (await suite.head()) ?? START;
      const caller = await suite.otherEnvironment(`history-${seed}`);
      const { id } = await caller.post('/organizations', { name: 'Names its environment' }).expect(201);
      const created = (await suite.recordsAfter(head)).find(({ meta }) => meta.organization === id);
      await live(
        seed,
        caller,
        readerOf(head, () => created?.meta.environment),
        tally,
      );
    }
    console.info(`${COUNT} histories from seed ${FIRST_SEED}: ${JSON.stringify(tally)}`);
    // A checker that is always told the same finds nothing.
    expect(tally.allowed / tally.questions).toBeGreaterThan(0.3);
    expect(tally.allowed / tally.questions).toBeLessThan(0.7);
    expect(tally.lists).toBeGreaterThan(0);
  },
  COUNT * LONGEST,
);
