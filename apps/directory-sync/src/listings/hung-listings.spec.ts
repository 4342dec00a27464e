import { randomUUID } from 'node:crypto';
import { EventStore, type NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Leases } from '#libs/read-models/src/leases';
import { NDJSON, group, user } from '#libs/testing/src/given-directory';
import type { Gate } from '#libs/testing/src/gate';
import { recordsAfter } from '#libs/testing/src/records-after';
import { ReplicasInProcess } from '#libs/testing/src/replicas-in-process';
import { Caller } from '#libs/testing/src/suite';
import { eventually, until } from '#libs/testing/src/until';

// oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
type Body = any;
type IsMeant = Parameters<Gate['closeBefore']>[0];

const WORK = 'directory-listings';
const PEOPLE = 150;
/** Longer than a lease lasts, and whoever takes it has to read a listing. */
const TAKEN_OVER_MS = 60_000;

let replicas: ReplicasInProcess;
let callers: readonly Caller[];
beforeAll(async () => {
  replicas = await ReplicasInProcess.open({ variables: {}, log: new PinoLog({ level: 'silent', readable: false }) });
  callers = [0, 1].map((at) => new Caller(() => replicas.urls[at]!, replicas.key));
});
afterEach(() => replicas.gates.forEach((gate) => gate.open()));
afterAll(() => replicas.close());

/** Who carries listings out, and the other. */
async function holder(): Promise<readonly [here: number, there: number]> {
  const isHeld = (at: number): boolean => replicas.get(at, Leases).isHeld(WORK);
  await until(() => isHeld(0) || isHeld(1));
  return isHeld(0) ? [0, 1] : [1, 0];
}

/** The same people less the first ones, all with this title, and groups of them. */
function listing(title: string, from: number): string {
  const people = Array.from({ length: PEOPLE - from }, (_, index) => `p${from + index}`);
  const lines = [...people.map((id) => user(id, { job_title: title })), group('all', people), group(`only ${title}`, people.slice(0, 3))];
  return `${lines.join('\n')}\n`;
}

async function givenDirectory(): Promise<string> {
  const { id: organization_id } = await callers[0]!.post('/organizations', { name: 'Acme' }).expect(201);
  const policy = { follows: 'memberships' };
  return (await callers[0]!.post('/admin/directories', { organization_id, type: 'sftp', name: randomUUID(), policy }).expect(201)).id;
}

const send = (at: number, directory: string, lines: string) =>
  callers[at]!.put(`/admin/directories/${directory}/snapshot?force=true`, lines, { 'Content-Type': NDJSON });
const run = (at: number, directory: string, id: string): Promise<Body> => callers[at]!.get(`/admin/directories/${directory}/runs/${id}`).expect(200);
const over = (at: number, directory: string, id: string): Promise<Body> =>
  eventually(async () => {
    const found = await run(at, directory, id);
    expect(found).toMatchObject({ phase: 'completed', error_count: 0 });
    return found;
  }, TAKEN_OVER_MS);
async function carryOut(at: number, directory: string, lines: string): Promise<Body> {
  return over(at, directory, (await send(at, directory, lines).expect(202)).id);
}

/** As a replica shows it: the titles of all, and who is in which group. */
async function shown(at: number, directory: string): Promise<object> {
  const all = async (path: string): Promise<readonly Body[]> => {
    const found: Body[] = [];
    for (let after = ''; ;) {
      const { data, list_metadata } = await callers[at]!.get(`${path}&limit=100${after}`).expect(200);
      found.push(...data);
      if (list_metadata.after === null) return found;
      after = `&after=${list_metadata.after}`;
    }
  };
  const people = await all(`/directory_users?directory=${directory}`);
  const groups = await all(`/directory_groups?directory=${directory}`);
  const members = async ({ id, name }: Body) => [name, (await all(`/directory_users?group=${id}`)).map(({ idp_id }) => idp_id).sort()] as const;
  return {
    people: Object.fromEntries(people.map(({ idp_id, custom_attributes }) => [idp_id, custom_attributes.job_title])),
    groups: Object.fromEntries(await Promise.all(groups.map(members))),
  };
}

/** The record that it is about to append, of this kind of stream, counted from one. */
function append(category: string, count: number): IsMeant {
  let calls = 0;
  return (method, [stream]) => method === 'append' && (stream as string).startsWith(`${category}-`) && ++calls === count;
}

/** The run that it is about to store with this phase. */
const stores =
  (phase: string): IsMeant =>
  (method, [collection, , , value]) =>
    method === 'compareAndSet' && collection === 'directory_runs' && JSON.parse(value as string).phase === phase;

const MOMENTS: Readonly<Record<string, () => IsMeant>> = {
  'takes somebody away': () => {
    const isMeant = append('directory_user', 5);
    return (method, given) => (given[2] as readonly NewEvent[] | undefined)?.[0]?.type === 'dsync.user.deleted' && isMeant(method, given);
  },
  'changes people': () => append('directory_user', 40),
  'changes a group': () => append('directory_group', 2),
  'stores the end': () => stores('completed'),
  'leaves the run':
    () =>
    (method, [, ids]) =>
      method === 'purge' && Array.isArray(ids) && String(ids[0]).startsWith('directory_run_'),
};

describe('a replica that stands still in the midst of a listing, and goes on when others have carried out that one and another', () => {
  it.each(Object.keys(MOMENTS))(
    'records nothing and changes no run where it %s',
    async (moment) => {
      const directory = await givenDirectory();
      const [here, there] = await holder();
      await carryOut(there, directory, listing('first', 0));

      const stopped = replicas.gates[here]!.closeBefore(MOMENTS[moment]!());
      const { id: interrupted } = await send(there, directory, listing('second', 10)).expect(202);
      await stopped;
      const [second, third] = [await over(there, directory, interrupted), await carryOut(there, directory, listing('third', 20))];
      const before = await shown(there, directory);
      const events = replicas.get(there, EventStore);
      const head = await events.head();

      // What it was about to do is over when it has taken the lease anew, and carried out something else.
      replicas.gates[here]!.open();
      replicas.gates[there]!.close();
      const last = await carryOut(here, directory, listing('third', 20));
      replicas.gates[there]!.open();
      expect(last).toMatchObject({ users: { unchanged: PEOPLE - 20, created: 0, updated: 0, removed: 0 }, groups: { unchanged: 2, members_added: 0 } });
      expect(await shown(here, directory)).toEqual(before);
      for (const known of [second, third]) expect(await run(here, directory, known.id)).toEqual(known);
      const since = await recordsAfter(events, head);
      // What follows from the listings goes on meanwhile, by the system.
      expect(since.filter(({ stream, meta }) => stream.startsWith('directory') && meta.actor.source !== 'system').map(({ type }) => type)).toEqual([]);
    },
    60_000,
  );
});
