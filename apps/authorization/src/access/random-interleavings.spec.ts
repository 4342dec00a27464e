import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { NewEvent } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { systemContext } from '#libs/platform/src/system-context';
import { isEverythingWanted } from '#libs/testing/src/seed';
import { GivenLog, GivenRows, VIEWS } from '../testing/given-engines.ts';
import { chance, Follower, GivenHistory } from '../testing/given-history.ts';
import { AccessIndex } from './access-index.ts';
import { EnvironmentModel } from './environment-model.ts';
import { OrganizationIndex } from './organization-index.ts';

const SEEDS = Array.from({ length: isEverythingWanted() ? 200 : 8 }, (_, seed) => seed + 1);
/** Steps before anything is asked, and while it is. */
const [BEFORE, MEANWHILE] = [200, 400];
/** While things happen, and afterwards. */
const [QUESTIONS, AFTERWARDS] = [120, 300];
const ASKING_AT_ONCE = 3;
/** One thing goes wrong in so many. */
const FAULTS = 500;

const silent = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });

const trueNow = performance.now.bind(performance);
afterEach(() => {
  performance.now = trueNow;
});

interface Question {
  readonly history: GivenHistory;
  readonly membership: string;
  readonly resource: string;
  readonly permission: string;
  /** What the log has said since it was asked. */
  readonly possible: Set<string>;
}

/** A process that answers. */
interface Replica {
  readonly log: GivenLog;
  readonly index: AccessIndex;
}

/**
 * Four organizations of which things are recorded, heard by two replicas and written to rows, one after another or after a while, in whatever order chance has it,
 * while they are asked about.
 */
class World {
  readonly answered = { allowed: 0, denied: 0, absent: 0, refused: 0 };
  private readonly next;
  private time = 1_800_000_000_000;
  private isQuiet = false;
  private readonly log = new GivenLog();
  private readonly rows = new GivenRows(this.log);
  private readonly histories: readonly GivenHistory[];
  private readonly followers: readonly Follower[];
  private readonly versions = new Map<string, number>();
  private readonly replicas: Replica[] = [];
  private readonly open = new Set<Question>();
  private readonly memory: number;
  private steps = 0;
  /** So many things happen before anybody hears of what is recorded. */
  private deaf = 0;

  constructor(seed: number) {
    this.next = chance(seed);
    const first = new GivenHistory(this.next);
    this.histories = [first, new GivenHistory(this.next, first), new GivenHistory(this.next, first), new GivenHistory(this.next)];
    this.followers = this.histories.map(({ organization, environment }) => {
      const model = new EnvironmentModel(environment);
      return new Follower(new OrganizationIndex(organization, environment, model).loaded(), model);
    });
    for (const history of this.histories) for (const told of history.beginning()) this.record(history, told);
    for (let step = 0; step < BEFORE; step++) this.recordOf(this.oneOf(this.histories));
    this.memory = Math.round(Math.max(...this.followers.map(({ index }) => index.bytes)) * (1.1 + this.next(20) / 10));
    this.rows.most = 1 + this.next(12);
    this.rows.meanwhile = (asked) => this.wait(asked === 'page');
    // Long work gives way at every few steps.
    let now = performance.now();
    performance.now = () => (now += this.isQuiet ? 0.01 : 1.5);
  }

  async start(): Promise<void> {
    await this.rows.follow(VIEWS, this.next(this.log.all.length));
    for (let count = 0; count < 2; count++) this.replicas.push(await this.replica());
  }

  async stop(): Promise<void> {
    await this.quieten();
    await Promise.all(this.replicas.map(({ index }) => index.stop()));
  }

  /** Until there is nothing more to be asked. */
  async live(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      for (let turn = this.next(3); turn > 0; turn--) await nextTurn();
      await this.happen().catch((error: unknown) => {
        if (!(error instanceof DomainError)) throw error;
      });
    }
  }

  /** Asked of a replica; the answer has to be what the log said at some point since. */
  async ask(): Promise<void> {
    const history = this.oneOf(this.histories);
    const { memberships, resources, permissions } = history;
    if (memberships.length === 0) return;
    const [membership, resource] = [this.oneOf(memberships), this.oneOf(resources)];
    const question = { history, membership, resource, permission: this.oneOf(permissions).slug, possible: new Set<string>() };
    await this.answer(question, this.oneOf(this.replicas));
  }

  /** When nothing happens any more. */
  async askAfterwards(): Promise<void> {
    await this.quieten();
    this.time += 120_000;
    for (let asked = 0; asked < AFTERWARDS; asked++) await this.ask();
  }

  private async quieten(): Promise<void> {
    this.isQuiet = true;
    for (const { log } of this.replicas) log.heard = Infinity;
    await this.rows.follow();
  }

  private async replica(): Promise<Replica> {
    const log = new GivenLog(this.log);
    log.together = 1 + this.next(12);
    const clock: Clock = { now: () => this.time };
    const settings = { ACCESS_INDEX_MEMORY: this.memory, RESOURCES_PER_TYPE: 5_000, MULTIPLE_ROLES: true };
    const index = new AccessIndex(log, this.rows.awaited(), settings, clock, silent, new LogFollowing(log, clock, silent), this.rows, new Metrics());
    // What it does not hear itself, it begins with.
    await index.start();
    log.heard = log.all.length;
    log.meanwhile = (asked) => this.wait(asked !== 'subscribe');
    return { log, index };
  }

  /** Whoever asks an engine waits a while, and sometimes in vain. */
  private async wait(isVain: boolean): Promise<void> {
    if (this.isQuiet) return;
    for (let turn = this.next(3); turn > 0; turn--) await nextTurn();
    if (isVain && this.next(FAULTS) === 0) throw unavailable('The engine is away.');
  }

  private async answer(question: Question, replica: Replica): Promise<void> {
    const { history, possible } = question;
    possible.add(this.said(question));
    this.open.add(question);
    const answer = await this.asked(question, replica);
    this.open.delete(question);
    if (answer === 'refused') return void this.answered.refused++;
    if (!possible.has(answer)) {
      const { membership, resource, permission } = question;
      throw new Error(
        `Whether ${membership} may ${permission} ${resource} in ${history.organization} was answered ${answer}, not ${[...possible].join(' or ')}.`,
      );
    }
    this.answered[answer === 'true' ? 'allowed' : answer === 'false' ? 'denied' : 'absent']++;
  }

  private async asked({ history, membership, resource, permission }: Question, { index }: Replica): Promise<string> {
    const [elsewhere, how] = [this.next(20) === 0, this.next(6)];
    const environment = elsewhere ? this.histories.find((other) => other.environment !== history.environment)!.environment : history.environment;
    const context = { ...systemContext(environment, this.time), deadline: this.time + 20_000 };
    try {
      const found = await (how > 1
        ? index.ofMembership(context, membership)
        : how > 0
          ? index.ofOrganization(context, history.organization)
          : index.ofResource(context, resource));
      if (elsewhere) throw new Error('An organization of another environment was found.');
      return answerOf(found, membership, resource, permission);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      // What is not there elsewhere says nothing of what is here.
      return error.kind === 'unavailable' || elsewhere ? 'refused' : 'absent';
    }
  }

  private said({ history, membership, resource, permission }: Question): string {
    const { index } = this.followers[this.histories.indexOf(history)]!;
    return index.isAlive ? answerOf(index, membership, resource, permission) : 'absent';
  }

  private async happen(): Promise<void> {
    const { log, rows } = this;
    const what = this.next(30);
    if (what < 7) for (let count = this.next(4), history = this.oneOf(this.histories); count >= 0; count--) this.recordOf(history);
    else if (what < 17) this.hear();
    else if (what < 22) await rows.follow([this.oneOf(VIEWS)], Math.max(0, log.all.length - this.next(30)), this.next(4) === 0);
    else if (what < 27) await rows.writeAtOnce(GivenRows.PRIMARY, log.all.slice(-1 - this.next(2)).slice(0, 1));
    else if (what < 28) this.deaf = this.next(60);
    else if (this.next(20) > 0) return;
    else if (what < 29) this.time += 30_000;
    else {
      const history = this.oneOf(this.histories);
      if (this.next(3) === 0 && !this.isOver(history)) return this.record(history, history.end());
      // Another process in the place of one.
      const [gone] = this.replicas.splice(this.next(2), 1, await this.replica());
      await gone!.index.stop();
    }
  }

  private hear(): void {
    if (this.deaf-- > 0) return;
    const { log } = this.oneOf(this.replicas);
    log.heard = Math.min(log.all.length, log.heard + 1 + this.next(10));
  }

  private oneOf<Thing>(things: readonly Thing[]): Thing {
    return things[this.next(things.length)]!;
  }

  private recordOf(history: GivenHistory): void {
    if (this.steps++ < BEFORE + MEANWHILE && !this.isOver(history)) this.record(history, history.step());
  }

  private isOver(history: GivenHistory): boolean {
    return this.log.all.length > 0 && !this.followers[this.histories.indexOf(history)]!.index.isAlive;
  }

  private record(history: GivenHistory, told: readonly NewEvent[]): void {
    for (const event of told) {
      const stream = history.streamOf(event);
      const version = this.versions.get(stream) ?? 0;
      this.versions.set(stream, version + 1);
      void this.log.append(stream, version, [event]);
      const record = this.log.all.at(-1)!;
      for (const [place, follower] of this.followers.entries()) if (this.histories[place]!.environment === record.meta.environment) follower.hear(record);
      for (const question of this.open) question.possible.add(this.said(question));
    }
  }
}

function answerOf(index: OrganizationIndex, membership: string, resource: string, permission: string): string {
  const [number, node, named] = [index.membershipNumber(membership), index.tree.nodeById(resource), index.model.permissionBySlug(permission)];
  if (number === -1 || node === undefined || named === null) return 'absent';
  return String(index.allows(number, named, node));
}

let [allowed, denied] = [0, 0];

it.each(SEEDS)('whatever is heard, written and read in whatever order, every answer is what the log said since it was asked for (seed %i)', async (seed) => {
  const world = new World(seed);
  await world.start();
  try {
    let asked = 0;
    const asking = Promise.all(
      Array.from({ length: ASKING_AT_ONCE }, async () => {
        while (asked++ < QUESTIONS) await world.ask();
      }),
    );
    let isOver = false;
    await Promise.all([asking.finally(() => (isOver = true)), world.live(() => isOver)]);
    await world.askAfterwards();
    allowed += world.answered.allowed;
    denied += world.answered.denied;
  } finally {
    await world.stop();
  }
});

it('and hundreds of the answers told whether something is allowed', () => {
  expect(Math.min(allowed, denied)).toBeGreaterThan(100);
});
