import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CreateEnvironment, CreateEnvironmentKey, FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { PinoLog } from '#libs/platform/src/pino.log';
import { systemContext } from '#libs/platform/src/system-context';
import { ROOT } from '#libs/testing/src/process';
import { ProductInProcess } from '#libs/testing/src/running-product';
import { failedSeeds, seedOf } from '#libs/testing/src/seed';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { Chance } from './chance.ts';
import { shortest } from './sign-in/shortest.ts';
import { newTally, Story, type Application, type GrantName, type Step, type Tally } from './sign-in/story.ts';

const { SIGN_INS, SIGN_INS_SEED, SIGN_INS_RETELLINGS } = environmentVariables();
/** `SIGN_INS=50 npm test test/sign-in-model.spec.ts`; with `SIGN_INS_SEED`, those from that one on. A seed does the same alone as beside others. */
const FIRST_SEED = Number(SIGN_INS_SEED ?? seedOf('sign-ins'));
const SEEDS = [...Array.from({ length: Number(SIGN_INS ?? 8) }, (_none, index) => FIRST_SEED + index), ...failedSeeds('sign-ins')];
const COUNT = SEEDS.length;
const STEPS = 200;
/** So often at least each grant lets in, and does not. */
const LEAST = 3;
/** How often a story is told again to find out what of it matters. */
const RETELLINGS = Number(SIGN_INS_RETELLINGS ?? 150);

let product: ProductInProcess;
let clock: SettableClock;
let foreign: Application;
beforeAll(async () => {
  clock = new SettableClock(Date.now());
  product = await ProductInProcess.open({ variables: {}, log: new PinoLog({ level: 'silent', readable: false }), clock });
  foreign = await application('foreign');
});
afterAll(() => product.close());

async function application(name: string): Promise<Application> {
  const context = () => systemContext('system', clock.now());
  await product.call(Object.assign(new CreateEnvironment(), { name, context: context() }));
  const { value: key } = await product.call(Object.assign(new CreateEnvironmentKey(), { environment_name: name, name: 'test', context: context() }));
  const found = await product.call(Object.assign(new FindEnvironmentKey(), { hash: hash('sha256', key, 'hex'), context: context() }));
  return { environment: found.environment_id, client_id: found.client_id, key };
}

/** `npm run proofs -- planted-bugs`: the stories have to find it. */
interface Planted {
  readonly bug: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

interface Failure {
  /** Which step it was. */
  readonly at: number;
  readonly error: Error;
  readonly trail: readonly string[];
}

let told = 0;

/** Tells it, each time in an environment of its own; at which step it failed and how, or null. */
async function tell(seed: number, steps: readonly Step[], tally: Tally = newTally()): Promise<Failure | null> {
  const story = new Story(product, clock, await application(`story-${++told}`), foreign);
  await story.begin(seed);
  for (const [at, step] of steps.entries()) {
    try {
      await story.step(step);
    } catch (error) {
      return { at, error: error as Error, trail: story.trail };
    }
  }
  for (const [grant, counts] of Object.entries(story.tally))
    for (const [outcome, count] of Object.entries(counts)) tally[grant as GrantName][outcome as keyof Tally[GrantName]] += count;
  return null;
}

/** How the story failed, with as few of its steps as it fails by. */
async function reportOf(seed: number, steps: readonly Step[], failure: Failure): Promise<string> {
  let shortestFailure = failure;
  const fails = async (some: readonly Step[]): Promise<boolean> => {
    const found = await tell(seed, some);
    // Another fault is a story of its own.
    if (found?.error.message !== failure.error.message) return false;
    shortestFailure = found;
    return true;
  };
  await shortest(steps.slice(0, failure.at + 1), fails, RETELLINGS);
  const { error, trail } = shortestFailure;
  const hint = shortestFailure === failure ? ' (never again, told with fewer steps)' : '';
  return `Sign-in story ${seed}: ${error.message}${hint}\n${trail.join('\n')}`;
}

it.each(JSON.parse(readFileSync(join(ROOT, 'test/sign-in/planted-bugs.json'), 'utf8')) as readonly Planted[])(
  'the code has one place for the bug that a proof plants: $bug',
  ({ file, from }) => expect(readFileSync(join(ROOT, file), 'utf8').split(from)).toHaveLength(2),
);

it(
  `lets in whom the model lets in, and nobody else, in ${COUNT} stories (from seed ${FIRST_SEED})`,
  async () => {
    const tally = newTally();
    for (const seed of SEEDS) {
      const chance = new Chance(seed);
      const steps = Array.from({ length: STEPS }, (_none, place): Step => ({ seed: chance.below(2 ** 31), place: 1 + place }));
      const failure = await tell(seed, steps, tally);
      if (failure !== null) throw new Error(await reportOf(seed, steps, failure), { cause: failure.error });
    }
    const all = Object.values(tally).flatMap((counts) => Object.entries(counts));
    const sum = (outcome?: string): number => all.reduce((total, [name, count]) => total + (outcome === undefined || name === outcome ? count : 0), 0);
    console.info(`${COUNT} stories of sign-in from seed ${FIRST_SEED}: ${JSON.stringify(tally)}, ${sum('token')} of ${sum()} attempts with a token`);
    // A model that is always told the same finds nothing.
    expect(sum('token') / sum()).toBeGreaterThan(1 / 3);
    expect(Object.entries(tally).filter(([, { token, refused }]) => Math.min(token, refused) < LEAST)).toEqual([]);
  },
  60_000 * (3 + COUNT),
);
