import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fill, model, PERMISSIONS, type SeededOrganization, type Shape } from './authorization-seed.ts';
import { reference } from './reference.ts';
import type { Ground, Pace, Row, Scenario } from './scenario.ts';
import { KEY, Suite } from './suite.ts';
import { count, percent, rate, row, seconds } from './table.ts';
import { load, type LoadResult } from './wrk.ts';

const QUESTIONS = 100_000;
const BATCH = 100;
/** Who sign in with a password: of one address ten attempts count in a minute. */
const PEOPLE = 30;

/** One organization → 20 workspaces → 50 projects each. */
const ONE: Shape = {
  organizations: 1,
  types: [
    { slug: 'workspace', parents: ['organization'], resources: 20 },
    { slug: 'project', parents: ['workspace'], resources: 1_000 },
  ],
  memberships: 1_000,
  assignments: 4_000,
  spread: 'types',
  groups: 50,
  membersPerGroup: 100,
};
const HUNDRED: Shape = { ...ONE, organizations: 100 };
/** Four levels of five types each; what lies at the top has 50 children. */
const LARGE: Shape = {
  organizations: 1,
  types: [20, 1_000, 4_000, 14_980].flatMap((resources, level) =>
    [0, 1, 2, 3, 4].map((number) => ({
      slug: `level-${level}-${number}`,
      parents: [level === 0 ? 'organization' : `level-${level - 1}-${number}`],
      resources,
    })),
  ),
  memberships: 10_000,
  assignments: 1_000_000,
  spread: 'resources',
  groups: 50,
  membersPerGroup: 100,
  beside: { resourcesPerType: 50, assignments: 4_000 },
};

interface Question {
  readonly membership: string;
  readonly permission: string;
  readonly resource: string;
}

/** What is measured about organizations of one shape. */
interface Case {
  readonly what: string;
  readonly shape: Shape;
  /** Before anything else is asked. */
  readonly cold: (bench: Bench) => Promise<Row>;
  readonly more: readonly ((bench: Bench) => Promise<Row>)[];
}

interface Bench {
  readonly what: string;
  readonly ground: Ground;
  readonly pace: Pace;
  readonly directory: string;
  readonly suite: Suite;
  readonly organizations: readonly SeededOrganization[];
}

export const AUTHORIZATION_SCENARIOS: readonly Scenario[] = [
  scenario('check', { what: 'one organization', shape: ONE, cold: coldOrganizations, more: [whileWriting, batches, writes] }),
  scenario('check-passwords', { what: 'one organization, with passwords', shape: ONE, cold: coldOrganizations, more: [whileSigningIn] }),
  scenario('check-hundred', { what: '100 organizations', shape: HUNDRED, cold: coldOrganizations, more: [] }),
  scenario('check-large', { what: '100,000 resources, 1,000,000 assignments', shape: LARGE, cold: besideLoading, more: [discovery] }),
];

function scenario(name: string, measured: Case): Scenario {
  return { name, organizations: 'none', measure: (ground, pace) => checks(ground, pace, measured) };
}

async function checks(ground: Ground, pace: Pace, { what, shape, cold, more }: Case): Promise<readonly Row[]> {
  const directory = join(ground.directory, what.replaceAll(/\W+/g, '-'));
  const organizations = await seeded(directory, shape);
  const suite = await Suite.start(directory);
  const bench: Bench = { what, ground, pace, directory, suite, organizations };
  try {
    await suite.caughtUp();
    const plain = await reference(pace.seconds);
    const before = await suite.rssAnonMegabytes();
    const rows = [await cold(bench)];
    const questions = questionsOf(organizations.slice(0, shape.organizations), QUESTIONS);
    const share = await shareOfAllowed(suite, questions.slice(0, 1_000));
    const result = await asked(bench, questions);
    const memory = (await suite.rssAnonMegabytes()) - before;
    rows.push(
      row(
        `\`check\`, ${what}, ${count(questions.length)} questions (${percent(share)} allowed), 32 connections`,
        '≥ 30,000/s, p99 ≤ 3 ms',
        timing(result),
        result.perSecond >= 30_000 && result.p99 <= 3,
      ),
      row(
        'the same, of a plain Fastify POST with a schema',
        '≥ 50 %',
        `${percent(result.perSecond / plain.perSecond)} of ${rate(plain.perSecond)}`,
        result.perSecond >= plain.perSecond / 2,
      ),
      row(`index of ${what}, and what the load left`, 'measured', `${memory.toFixed(0)} MB${await indexSize(suite)}`, true),
    );
    for (const measure of more) rows.push(await measure(bench));
    return rows;
  } finally {
    await suite.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function asked({ ground, suite, pace }: Bench, questions: readonly Question[]): Promise<LoadResult> {
  const file = await ground.fileOf('checks', requestsOf(questions));
  return load({ url: suite.url, script: 'send', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
}

async function coldOrganizations({ what, suite, organizations }: Bench): Promise<Row> {
  const cold = await firstChecks(suite, organizations.slice(0, 21));
  return row(
    `first check of a cold organization, ${what}`,
    '≤ 50 ms',
    cold.length > 1
      ? `${seconds(cold[cold.length >> 1]!)}, worst of ${cold.length} ${seconds(cold.at(-1)!)}`
      : `${seconds(cold[0]!)}, also the first of the process`,
    cold[cold.length >> 1]! <= 50,
  );
}

/** Made by REST as far as it is small, and the rest straight into the log. */
async function seeded(directory: string, shape: Shape): Promise<readonly SeededOrganization[]> {
  const suite = await Suite.start(directory);
  const shared = await model(suite, shape);
  await suite.stop();
  const organizations = await fill(directory, shape, shared);
  await Suite.command(directory, 'rebuild');
  return organizations;
}

/** How others are answered while the first question about a large organization has it read into memory. */
async function besideLoading({ ground, suite, organizations: [large, other], pace }: Bench): Promise<Row> {
  const file = await ground.fileOf('beside', requestsOf(questionsOf([other!], QUESTIONS / 10)));
  const paced = (length: number): Promise<LoadResult> =>
    load({ url: suite.url, script: 'send', arguments: [KEY, file, '10'], connections: 10, seconds: length });
  // Warm, and in memory, before it is measured.
  await paced(2);
  const [[loading], result] = await Promise.all([firstChecks(suite, [large!]), paced(pace.seconds)]);
  return row(
    `\`check\` in another organization, while one with 1,000,000 assignments is read into memory (${seconds(loading!)})`,
    'p99 ≤ 10 ms',
    timing(result),
    result.p99 <= 10,
  );
}

async function whileWriting(bench: Bench): Promise<Row> {
  const { ground, suite, organizations, pace } = bench;
  const file = await ground.fileOf('paced', newAssignments(organizations, 100_000, 1));
  // 5 connections, each every 10 ms.
  const writing = load({ url: suite.url, script: 'send', arguments: [KEY, file, '10'], connections: 5, seconds: pace.seconds });
  const [result, written] = await Promise.all([asked(bench, questionsOf(organizations, QUESTIONS)), writing]);
  const what = `\`check\` while ${count(written.perSecond)} assignments/s are written`;
  return row(what, '≥ 25,000/s, p99 ≤ 5 ms', timing(result), result.perSecond >= 25_000 && result.p99 <= 5);
}

/** How checks are answered while people sign in with their passwords, each of which keeps a thread busy for a quarter of a second. */
async function whileSigningIn({ ground, suite, organizations, pace, directory }: Bench): Promise<Row> {
  const [client_id, password] = [await Suite.clientId(directory), 'ride-a-giraffe-7'];
  const emails = Array.from({ length: PEOPLE }, (_, index) => `person-${index}@bench.test`);
  for (const email of emails) await suite.post('/user_management/users', { email, email_verified: true, password });
  const lines = emails.map((email) => JSON.stringify({ client_id, client_secret: KEY, grant_type: 'password', email, password }));
  const signIns = await ground.fileOf(
    'passwords',
    lines.map((line) => `/user_management/authenticate ${line}`),
  );
  const checksFile = await ground.fileOf('paced', requestsOf(questionsOf(organizations, QUESTIONS)));
  const paced = (): Promise<LoadResult> => load({ url: suite.url, script: 'send', arguments: [KEY, checksFile, '1'], connections: 32, seconds: pace.seconds });
  const alone = await paced();
  const signing = load({ url: suite.url, script: 'send', arguments: [KEY, signIns], connections: 4, seconds: pace.seconds });
  const [result, signed] = await Promise.all([paced(), signing]);
  return row(
    `\`check\` while ${signed.perSecond.toFixed(1)} people/s sign in with a password (bcrypt, cost 12)`,
    'p99 ≤ 10 ms at 20,000/s',
    `${timing(result)} (without: ${timing(alone)}); signing in p50 ${signed.p50.toFixed(0)} ms, p99 ${signed.p99.toFixed(0)} ms`,
    result.p99 <= 10 && result.perSecond >= 20_000,
  );
}

async function batches({ ground, suite, organizations, pace }: Bench): Promise<Row> {
  const byMembership = new Map<string, Question[]>();
  for (const question of questionsOf(organizations, QUESTIONS))
    byMembership.set(question.membership, [...(byMembership.get(question.membership) ?? []), question]);
  const lines = [...byMembership].map(([membership, own]) => {
    const asked = Array.from({ length: BATCH }, (_, index) => bodyOf(own[index % own.length]!));
    return `${pathOf({ membership }, 'check_batch')} ${JSON.stringify({ checks: asked })}`;
  });
  const file = await ground.fileOf('batches', lines);
  const result = await load({ url: suite.url, script: 'send', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
  const perSecond = result.perSecond * BATCH;
  return row(`\`check_batch\` of ${BATCH}`, '≥ 500,000 checks/s', `${rate(perSecond)} checks, ${timing(result)}`, perSecond >= 500_000);
}

async function writes({ ground, suite, organizations, pace }: Bench): Promise<Row> {
  const file = await ground.fileOf('assignments', newAssignments(organizations, 200_000, 2));
  const result = await load({ url: suite.url, script: 'send', arguments: [KEY, file], connections: 64, seconds: pace.seconds });
  return row('assigning a role, durable and visible, over 1,000 memberships, 64 connections', '≥ 5,000/s', timing(result), result.perSecond >= 5_000);
}

/** Memberships that may see a parent with at least 50 children. */
async function discovery({ ground, suite, organizations, pace }: Bench): Promise<Row> {
  const [organization] = organizations;
  const levels = organization!.assignments.filter(({ role }) => role.startsWith('level-0-'));
  const paths = levels.map(
    ({ membership, resource }) =>
      `/authorization/organization_memberships/${membership}/resources?permission_slug=view&parent_resource_id=${resource}&limit=50`,
  );
  const file = await ground.fileOf('discovery', paths);
  const result = await load({ url: suite.url, script: 'get', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
  return row('children that a membership may see, out of 100,000 resources, pages of 50', '≥ 5,000/s', timing(result), result.perSecond >= 5_000);
}

/** As lines for wrk to post. */
function requestsOf(questions: readonly Question[]): readonly string[] {
  return questions.map((question) => `${pathOf(question, 'check')} ${JSON.stringify(bodyOf(question))}`);
}

/** About half of them allowed: what was assigned, there and below, and as many about anything. */
function questionsOf(organizations: readonly SeededOrganization[], amount: number): Question[] {
  const random = randomly();
  const children = organizations.map(childrenOf);
  const questions = new Map<string, Question>();
  for (let tries = 0; questions.size < amount && tries < amount * 20; tries++) {
    const chosen = Math.floor(random() * organizations.length);
    const { assignments, memberships, parents } = organizations[chosen]!;
    const of = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
    let { membership, resource } = of(assignments);
    if (random() < 0.5) for (let below = children[chosen]!.get(resource); below !== undefined; below = children[chosen]!.get(resource)) resource = of(below);
    else if (random() < 0.9) {
      membership = of(memberships);
      resource = of(assignments).resource;
    }
    const question = {
      membership,
      permission: random() < 0.8 ? PERMISSIONS[0] : PERMISSIONS[1],
      resource: random() < 0.5 ? resource : (parents.get(resource) ?? resource),
    };
    questions.set(`${question.membership} ${question.permission} ${question.resource}`, question);
  }
  return [...questions.values()];
}

function childrenOf({ parents }: SeededOrganization): ReadonlyMap<string, readonly string[]> {
  const children = new Map<string, string[]>();
  for (const [child, parent] of parents) children.set(parent, [...(children.get(parent) ?? []), child]);
  return children;
}

/** The same at every run. */
function randomly(): () => number {
  let state = 7;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}

/** Assignments that are not there yet, mostly. */
function newAssignments(organizations: readonly SeededOrganization[], amount: number, salt: number): readonly string[] {
  return Array.from({ length: amount }, (_, index) => {
    const { memberships, resources } = organizations[index % organizations.length]!;
    const type = [...resources.keys()].at(-1)!;
    const ofType = resources.get(type)!;
    const membership = memberships[index % memberships.length]!;
    const resource = ofType[(Math.floor(index / memberships.length) * 2 + salt + index) % ofType.length]!;
    return `/authorization/organization_memberships/${membership}/role_assignments ${JSON.stringify({ role_slug: `${type}-${salt === 1 ? 'viewer' : 'editor'}`, resource_id: resource })}`;
  });
}

async function shareOfAllowed(suite: Suite, questions: readonly Question[]): Promise<number> {
  let allowed = 0;
  for (const question of questions) if (((await suite.ask(pathOf(question, 'check'), bodyOf(question))) as { authorized: boolean }).authorized) allowed += 1;
  return allowed / questions.length;
}

async function indexSize(suite: Suite): Promise<string> {
  const text = await (await fetch(`${suite.url}/metrics`)).text();
  const [, bytes] = /^gatehouse_access_index_bytes(?:\{[^}]*\})? (\S+)$/m.exec(text) ?? [];
  return bytes === undefined ? '' : `; the index itself ${(Number(bytes) / 2 ** 20).toFixed(1)} MB`;
}

/** Milliseconds until each of them has answered its first check, in order; the very first, in which the process itself is cold, only where there is no other. */
async function firstChecks(suite: Suite, organizations: readonly SeededOrganization[]): Promise<readonly number[]> {
  const times: number[] = [];
  for (const organization of organizations) {
    const [question] = questionsOf([organization], 1);
    const started = performance.now();
    // One that takes longer to be read than a request may take is answered 503 until it is there.
    while (!(await suite.ask(pathOf(question!, 'check'), bodyOf(question!)).then(Boolean, () => false)));
    times.push(performance.now() - started);
  }
  return (times.length > 1 ? times.slice(1) : times).toSorted((one, other) => one - other);
}

function pathOf({ membership }: Pick<Question, 'membership'>, what: 'check' | 'check_batch'): string {
  return `/authorization/organization_memberships/${membership}/${what}`;
}

function bodyOf({ permission, resource }: Question): object {
  return { permission_slug: permission, resource_id: resource };
}

function timing({ perSecond, p50, p99 }: LoadResult): string {
  return `${rate(perSecond)}, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
}
