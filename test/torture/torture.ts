import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { Chance } from '../chance.ts';
import { prepareModel } from './access.ts';
import { Customer, type Tally } from './customer.ts';
import {
  deliveredIds,
  expectAccess,
  expectDelivered,
  expectEvents,
  expectExports,
  expectRemembered,
  expectTrails,
  expectWhole,
  feedOf,
  subscribe,
} from './expectations.ts';

const CUSTOMERS = 8;

export interface Outcome extends Tally {
  readonly rounds: number;
  readonly events: number;
  /** Checks that said yes at the end. */
  readonly allowed: number;
  /** Audit events. */
  readonly told: number;
  /** Files of them. */
  readonly exported: number;
  readonly deliveries: number;
  readonly deliveredAgain: number;
}

interface Plan {
  readonly rounds: number;
  /** The same asks for the same, and kills at the same times; what was under way when it is killed differs all the same. */
  readonly seed: number;
  readonly tell?: (line: string) => void;
}

/** Kills the suite `rounds` times while customers write, and then holds it to everything that it had acknowledged. @throws Error with the seed, naming what was lost, doubled or half there */
export async function torture(plan: Plan): Promise<Outcome> {
  try {
    return await tortured(plan);
  } catch (error) {
    throw new Error(`Torture ${plan.seed}: ${(error as Error).message}`, { cause: error });
  }
}

async function tortured({ rounds, seed, tell = () => {} }: Plan): Promise<Outcome> {
  const chance = new Chance(seed);
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-torture-'));
  const variables = { DATA_DIR: join(directory, 'data'), DATA_MIN_FREE: '0', LOG_LEVEL: 'info', DNS_SERVERS: '127.0.0.1:1' };
  const receiver = await WebhookReceiver.listen();
  const tally: Tally = { acknowledged: 0, unanswered: 0, retried: 0, abandoned: 0 };
  const customers = Array.from({ length: CUSTOMERS }, (_, number) => new Customer(number, tally, new Chance(chance.below(2 ** 32))));
  let suite: SuiteProcess | undefined;
  try {
    suite = await SuiteProcess.start(variables);
    const key = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
    await subscribe(suite.url, key, receiver.url);
    await prepareModel(suite.url, key);
    for (let round = 1; round <= rounds; round++) {
      const { url } = suite;
      const working = Promise.all(customers.map((customer) => customer.work(url, key)));
      await Promise.race([pause(30 + chance.below(670)), working]);
      await suite.killHard();
      await working;
      const restarted = await SuiteProcess.start(variables);
      suite = restarted;
      await Promise.all(customers.map((customer) => customer.retry(restarted.url, key)));
      await expectRemembered(
        suite.url,
        key,
        customers.flatMap(({ organizations }) => organizations.slice(-20)),
      );
      await expectAccess(
        suite.url,
        key,
        customers.flatMap(({ organizations }) => organizations.slice(-8)),
      );
      if (round % 10 === 0) tell(`round ${round}: ${tally.acknowledged} writes acknowledged, ${tally.retried} tried again`);
    }
    const organizations = customers.flatMap((customer) => customer.organizations);
    await expectRemembered(suite.url, key, organizations);
    const allowed = await expectAccess(suite.url, key, organizations);
    const told = await expectTrails(suite.url, key, organizations);
    const exported = await expectExports(suite.url, key, organizations);
    const events = await feedOf(suite.url, key);
    expectEvents(events, organizations);
    await expectWhole(suite.url, key, events, customers);
    await expectDelivered(events, receiver);
    const ended = await suite.stop();
    if (ended.code !== 0) throw new Error(`The last stop ended with ${ended.signal ?? ended.code}: ${ended.stderr}`);
    await expectCommand(variables, 'verify');
    await expectCommand(variables, 'rebuild', '--check');
    const deliveries = receiver.received.length;
    return { ...tally, rounds, events: events.length, allowed, told, exported, deliveries, deliveredAgain: deliveries - deliveredIds(receiver).size };
  } catch (error) {
    const ended = await suite?.killHard();
    const logged = ended?.stdout.split('\n').filter((line) => /"level":"(?:warn|error)"/.test(line));
    throw new Error(`${(error as Error).message} The suite logged: ${logged?.slice(-5).join('\n')}`, { cause: error });
  } finally {
    await receiver.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function expectCommand(variables: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<void> {
  const { code, stderr } = await gatehouse(variables, ...words);
  if (code !== 0) throw new Error(`gatehouse ${words.join(' ')}: ${stderr}`);
}
