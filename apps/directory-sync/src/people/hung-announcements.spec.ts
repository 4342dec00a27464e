import { randomUUID } from 'node:crypto';
import { leaseOf } from '#libs/event-sourcing/src/following/reaction';
import { EventStore, type NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Leases } from '#libs/read-models/src/leases';
import { recordsAfter } from '#libs/testing/src/records-after';
import { ReplicasInProcess } from '#libs/testing/src/replicas-in-process';
import { Caller } from '#libs/testing/src/suite';
import { eventually, until } from '#libs/testing/src/until';
import { TellOfGroupMembers } from './member.reactions.ts';

const PEOPLE = 80;
/** Longer than a lease lasts. */
const TAKEN_OVER_MS = 30_000;

let replicas: ReplicasInProcess;
let callers: readonly Caller[];
beforeAll(async () => {
  replicas = await ReplicasInProcess.open({ variables: {}, log: new PinoLog({ level: 'silent', readable: false }) });
  callers = [0, 1].map((at) => new Caller(() => replicas.urls[at]!, replicas.key));
});
afterEach(() => replicas.gates.forEach((gate) => gate.open()));
afterAll(() => replicas.close());

const isTelling = (at: number): boolean => replicas.get(at, Leases).isHeld(leaseOf(replicas.get(at, TellOfGroupMembers)));

it.each([1, PEOPLE / 2])(
  'tells nobody of what is past, who stood still before the announcement of number %s while others told that and more',
  async (count) => {
    await until(() => isTelling(0) || isTelling(1));
    const [here, there] = isTelling(0) ? [0, 1] : [1, 0];
    const { id: organization_id } = await callers[there]!.post('/organizations', { name: 'Acme' }).expect(201);
    const { id: directory } = await callers[there]!.post('/admin/directories', { organization_id, type: 'okta scim v2.0', name: randomUUID() }).expect(201);
    const { token } = await callers[there]!.post(`/admin/directories/${directory}/tokens`).expect(201);
    const made = async (at: number, path: string, body: object): Promise<string> => (await callers[at]!.scim('POST', directory, path, token, { body })).body.id;
    const people: string[] = [];
    while (people.length < PEOPLE) people.push(await made(there, '/Users', { userName: `p${people.length}` }));
    const members = people.map((value) => ({ value }));
    const group = await made(there, '/Groups', { displayName: 'all' });
    const change = async (op: 'add' | 'remove') => {
      const body = { Operations: [{ op, path: 'members', value: members }] };
      expect((await callers[there]!.scim('PATCH', directory, `/Groups/${group}`, token, { body })).status).toBe(204);
    };
    const before = await replicas.get(there, EventStore).head();
    const told = async (of: string, at = there) => {
      const records = (await recordsAfter(replicas.get(at, EventStore), before, of)).filter(({ public: names }) =>
        names.some(({ name }) => name.startsWith('dsync.group.user_')),
      );
      return people.map((person) => records.flatMap(({ stream, type }) => (stream.endsWith(person) ? [type] : [])));
    };
    const [joined, left] = ['dsync.group.user_added', 'dsync.group.user_removed'];

    let calls = 0;
    const stopped = replicas.gates[here]!.closeBefore(
      (method, given) => method === 'append' && (given[2] as readonly NewEvent[])[0]?.type === joined && ++calls === count,
    );
    await change('add');
    await stopped;
    await eventually(async () => expect(await told(group)).toEqual(people.map(() => [joined])), TAKEN_OVER_MS);
    await change('remove');
    await eventually(async () => expect(await told(group)).toEqual(people.map(() => [joined, left])), TAKEN_OVER_MS);

    replicas.gates[here]!.open();
    replicas.gates[there]!.close();
    // What it was about to do is over by the time that it tells of something else.
    const last = await made(here, '/Groups', { displayName: 'last', members });
    await eventually(async () => expect(await told(last, here)).toEqual(people.map(() => [joined])), TAKEN_OVER_MS);
    expect(await told(group, here)).toEqual(people.map(() => [joined, left]));
  },
  90_000,
);
