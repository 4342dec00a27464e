import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { inTurns } from '#libs/platform/src/in-turns';
import { loadedFirst } from './cluster-ground.ts';
import { carriedOut, directories, membersOf, ScimClient, writeListing, type Follows, type SyncedDirectory } from './directory-ground.ts';
import type { Ground, Pace, Row, Scenario } from './scenario.ts';
import { loaded, timing, type SuiteResult } from './suite-load.ts';
import { KEY, Suite } from './suite.ts';
import { count, rate, row, seconds, unique } from './table.ts';

const DIRECTORIES = 10;
const PEOPLE_OF_GROUPS = 10_000;
const GROUPS = 20;
const MEMBERS = 100;
const LARGE_GROUP = 50_000;
/** Who join a large group and leave it, one at a time. */
const SPARE = 500;
const REPLACEMENTS = 9;
const SYNCED_GROUP = 500;
const NAMES = 100_000;
/** So many changes a second announcements are to keep up with. */
const PACED = 50;
const SAMPLED = 1_000;
const TELLS = 'tell-of-directory-group-members';

interface Bench {
  readonly ground: Ground;
  readonly pace: Pace;
  readonly directory: string;
  readonly suite: Suite;
  readonly scim: ScimClient;
  /** Another process on the same data. */
  readonly restart: () => Promise<Bench>;
}

export const DIRECTORY_SCENARIOS: readonly Scenario[] = [
  scenario('scim-creates', creates),
  scenario('scim-members', memberChanges),
  scenario('scim-large-group', largeGroup),
  scenario('scim-sync', initialSync),
  scenario('directory-listing', listings),
];

function scenario(name: string, measured: (bench: Bench) => Promise<readonly Row[]>): Scenario {
  return {
    name,
    organizations: 'none',
    measure: async (ground, pace) => {
      const directory = await mkdtemp(join(tmpdir(), 'gatehouse-directories-'));
      let stop = async (): Promise<void> => {};
      const begin = async (part: string): Promise<Bench> => {
        await stop();
        const options = pace.profiles === null ? [] : [await loadedFirst('profiler.js', join(pace.profiles, name, part))];
        const suite = await Suite.start(join(directory, 'data'), options);
        const scim = new ScimClient(suite.url);
        stop = async () => {
          stop = async () => {};
          await scim.close();
          await suite.stop();
        };
        return { ground, pace, directory, suite, scim, restart: () => begin(`${part}-again`) };
      };
      try {
        return await measured(await begin('first'));
      } finally {
        await stop();
        await rm(directory, { recursive: true, force: true });
      }
    },
  };
}

async function creates({ ground, pace, suite }: Bench): Promise<readonly Row[]> {
  const load = async (name: Follows, connections = 32): Promise<SuiteResult> => {
    const file = await ground.fileOf(`directories-${name}`, (await directories(suite, DIRECTORIES, name)).map(lineOf));
    const create = (duration: number): Promise<SuiteResult> =>
      loaded(suite, { url: suite.url, script: 'people', arguments: [file, unique()], connections, seconds: duration });
    // Once warm.
    await create(Math.ceil(pace.seconds / 2));
    await suite.caughtUp();
    return create(pace.seconds);
  };
  const alone = await load('off');
  const lags = await suite.lags();
  await suite.caughtUp();
  const followed = await load('memberships_and_roles');
  const what = `SCIM \`POST /Users\`, 32 connections, ${DIRECTORIES} directories`;
  return [
    row(`${what}, nothing follows`, '≥ 2,000/s', `${timing(alone)}; ${worstOf(lags)}`, alone.perSecond >= 2_000),
    row(`${what}, with memberships and roles`, '≥ 400/s', `${timing(followed)}; ${worstOf(await suite.lags())}`, followed.perSecond >= 400),
  ];
}

async function memberChanges({ ground, pace, suite, scim }: Bench): Promise<readonly Row[]> {
  const [directory] = (await directories(suite, 1, 'off')) as [SyncedDirectory];
  const people = await scim.people(directory, PEOPLE_OF_GROUPS);
  /** Of groups of its own, since who is in a group already is no change. */
  const change = async (what: string, connections: number, between: string): Promise<SuiteResult> => {
    const groups = await inTurns(
      Array.from({ length: GROUPS }, (_, index) => index),
      GROUPS,
      async (index) => (await scim.ask<{ readonly id: string }>('POST', directory, '/Groups', { displayName: `${what} ${index}` })).id,
    );
    const changes = ['add', 'remove'].flatMap((op) =>
      Array.from({ length: PEOPLE_OF_GROUPS / MEMBERS }, (_, part) =>
        groups.map((group) => patchOf(directory, group, op, people.slice(part * MEMBERS, (part + 1) * MEMBERS))),
      ).flat(),
    );
    const file = await ground.fileOf(`changes-${what}`, changes);
    await suite.caughtUp();
    return loaded(suite, { url: suite.url, script: 'send', arguments: [KEY, file, between], connections, seconds: pace.seconds });
  };
  const fast = await change('fast', 8, '0');
  const fastLag = await lagOf(suite, TELLS);
  const began = performance.now();
  await suite.caughtUp();
  const until = performance.now() - began;
  let worst = 0;
  const timer = setInterval(() => void lagOf(suite, TELLS).then((lag) => (worst = Math.max(worst, lag))), SAMPLED);
  const paced = await change('paced', 32, `${PACED}/s`).finally(() => clearInterval(timer));
  return [
    row(
      `SCIM \`PATCH\` of ${MEMBERS} members, 8 connections, ${GROUPS} groups`,
      '≥ 50/s',
      `${timing(fast)}; announcements ${fastLag.toFixed(1)} s behind at its end, and all told ${seconds(until)} later`,
      fast.perSecond >= 50,
    ),
    row(
      `announcements behind while ${rate(paced.perSecond)} are sent`,
      `≤ 10 s at ${PACED}/s`,
      `${worst.toFixed(1)} s; ${timing(paced)}`,
      worst <= 10 && paced.perSecond >= PACED * 0.95,
    ),
  ];
}

async function largeGroup({ ground, pace, suite, scim }: Bench): Promise<readonly Row[]> {
  const [directory] = (await directories(suite, 1, 'off')) as [SyncedDirectory];
  const size = Math.min(LARGE_GROUP, pace.people);
  const people = await scim.people(directory, size + SPARE);
  const [members, spare] = [people.slice(0, size), people.slice(size)];
  const { id } = await scim.ask<{ readonly id: string }>('POST', directory, '/Groups', { displayName: 'Everybody', members: membersOf(members) });
  await suite.caughtUp();
  const file = await ground.fileOf(
    'single',
    ['add', 'remove'].flatMap((op) => spare.map((person) => patchOf(directory, id, op, [person]))),
  );
  const one = async (): Promise<SuiteResult> =>
    loaded(suite, { url: suite.url, script: 'send', arguments: [KEY, file], connections: 1, seconds: pace.seconds });
  await one();
  const single = await one();
  await suite.caughtUp();
  const times: number[] = [];
  for (let turn = 0; turn < REPLACEMENTS; turn++) {
    const content = { displayName: 'Everybody', members: membersOf([...members.slice(1), ...(turn % 2 === 0 ? spare.slice(0, 1) : members.slice(0, 1))]) };
    const began = performance.now();
    const shown = await scim.ask<{ readonly members: readonly unknown[] }>('PUT', directory, `/Groups/${id}`, content);
    times.push(performance.now() - began);
    if (shown.members.length !== size) throw new Error(`The group has ${shown.members.length} members.`);
  }
  const middle = times.toSorted((first, second) => first - second)[REPLACEMENTS >> 1]!;
  return [
    row(`SCIM \`PATCH\` of one member of a group of ${count(size)}, 1 connection`, '≤ 5 ms p50', timing(single), single.p50 <= 5),
    row(
      `SCIM \`PUT\` of a group of ${count(size)} with one changed, and all of it in the answer`,
      '≤ 1 s',
      `${seconds(middle)}, worst of ${REPLACEMENTS} ${seconds(Math.max(...times))}`,
      middle <= 1_000,
    ),
  ];
}

async function initialSync({ pace, suite, scim }: Bench): Promise<readonly Row[]> {
  const [directory] = (await directories(suite, 1, 'memberships_and_roles')) as [SyncedDirectory];
  const amount = Math.min(100_000, pace.people);
  const groups = Math.ceil(amount / 100);
  const used = await suite.processorSeconds();
  const began = performance.now();
  const people = await scim.people(directory, amount);
  const made = performance.now();
  const usedByPeople = await suite.processorSeconds();
  await inTurns(
    Array.from({ length: groups }, (_, index) => index),
    8,
    async (index) => {
      const members = Array.from({ length: Math.min(SYNCED_GROUP, amount) }, (_, place) => people[(index * SYNCED_GROUP + place) % amount]!);
      await scim.ask('POST', directory, '/Groups?excludedAttributes=members', { displayName: `Group ${index}`, members: membersOf(members) });
    },
  );
  const grouped = performance.now();
  await suite.caughtUp();
  const told = performance.now();
  const usedInAll = await suite.processorSeconds();
  const each = (taken: number, of: number): string => `${((taken * 1_000_000) / of).toFixed(0)} µs`;
  return [
    row(
      `initial sync of ${count(amount)} people with memberships and roles, 32 connections`,
      'measured',
      `${seconds(made - began)}, ${rate((amount * 1_000) / (made - began))}, ${each(usedByPeople - used, amount)} of processor each`,
      true,
    ),
    row(
      `and of ${count(groups)} groups of ${SYNCED_GROUP}`,
      'measured',
      `${seconds(grouped - made)}; all told of ${seconds(told - grouped)} later; ${each(usedInAll - usedByPeople, groups * SYNCED_GROUP)} of processor for each member`,
      true,
    ),
  ];
}

async function listings({ directory, ground, pace, suite, restart }: Bench): Promise<readonly Row[]> {
  const [listed] = (await directories(suite, 1, 'off')) as [SyncedDirectory];
  const { people } = pace;
  const [first, second] = [join(directory, 'first.ndjson'), join(directory, 'second.ndjson')];
  await writeListing(first, people, () => false);
  await writeListing(second, people, (index) => index % 100 === 0);
  const inWords = ({ milliseconds, more }: Awaited<ReturnType<typeof carriedOut>>): string =>
    `${seconds(milliseconds)}, ${rate((people * 1_000) / milliseconds)}, +${more.own.toFixed(0)} MB, +${more.all.toFixed(0)} MB with mapped files`;
  const begun = await carriedOut(suite, listed, first);
  if (begun.users.created !== people) throw new Error(`The first listing did ${JSON.stringify(begun.users)}.`);
  await suite.caughtUp();

  const { suite: again } = await restart();
  await again.caughtUp();
  await pause(SAMPLED);
  const changed = await carriedOut(again, listed, second);
  if (changed.users.updated !== Math.ceil(people / 100)) throw new Error(`The second listing did ${JSON.stringify(changed.users)}.`);
  await again.caughtUp();

  const step = Math.max(1, Math.floor(people / NAMES));
  const names = Array.from({ length: Math.min(people, NAMES) }, (_, index) => `person-${(index * step * 7919) % people}@listed.test`);
  const file = await ground.fileOf(
    'filters',
    names.map((name) => `GET ${listed.token} /scim/v2/${listed.id}/Users?filter=${encodeURIComponent(`userName eq "${name}"`)}`),
  );
  const filter = (): Promise<SuiteResult> => loaded(again, { url: again.url, script: 'send', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
  await filter();
  const found = await filter();
  return [
    row(`first listing of ${count(people)} people`, 'measured', inWords(begun), true),
    row(
      `listing of ${count(people)} people, 1 % changed`,
      '≤ 90 s, +150 MB over 1,000,000',
      inWords(changed),
      changed.milliseconds <= 90_000 && changed.more.own <= 150,
    ),
    row(`SCIM \`GET /Users?filter=userName eq\` over ${count(people)}, 32 connections`, '≥ 5,000/s over 1,000,000', timing(found), found.perSecond >= 5_000),
  ];
}

function lineOf({ id, token, domain }: SyncedDirectory): string {
  return `${id} ${token} ${domain}`;
}

function patchOf({ id, token }: SyncedDirectory, group: string, op: string, people: readonly string[]): string {
  const Operations = [{ op, path: 'members', value: membersOf(people) }];
  const body = { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations };
  return `PATCH ${token} /scim/v2/${id}/Groups/${group} ${JSON.stringify(body)}`;
}

/** How far one follower of the log is behind. */
async function lagOf(suite: Suite, follower: string): Promise<number> {
  const found = [...(await suite.lags())].find(([name]) => name.includes(follower));
  if (found === undefined) throw new Error(`Nothing in /metrics tells how far ${follower} is.`);
  return found[1];
}

function worstOf(lags: ReadonlyMap<string, number>): string {
  const [name, worst] = [...lags].sort(([, one], [, other]) => other - one)[0] ?? ['no lag in /metrics', Number.NaN];
  return `${worst.toFixed(1)} s behind at its end (${name})`;
}
