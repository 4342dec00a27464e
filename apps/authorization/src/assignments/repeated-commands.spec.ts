import { createSecretKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateGroupRoleAssignment, ReplaceGroupRoleAssignments, UpdateGroupRoleAssignments } from '#libs/contracts/src/role-assignments/operations';
import { Deletions, deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { metaOf } from '#libs/event-sourcing/src/deciding/records';
import { Repository, type Transacted } from '#libs/event-sourcing/src/deciding/repository';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { START, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { SystemClock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import type { AccessIndex } from '../access/access-index.ts';
import { EnvironmentModel } from '../access/environment-model.ts';
import { OrganizationIndex } from '../access/organization-index.ts';
import type { Reopening } from '../guards/reopening.ts';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { AssignmentGuard } from './assignment-guard.ts';
import { GroupRoleAssignments } from './group-role-assignments.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const ORGANIZATION = 'org_01J00000000000000000000001';
const GROUP = 'group_01J00000000000000000000002';
const ROLES = ['one', 'two', 'three', 'four', 'five', 'six'];

/** Ends as the process of a command may end: between any two appends. */
class Interrupted extends Repository {
  left = Infinity;
  /** How many go on, and what happens before and after they record something. */
  running = 0;
  beforeAppend = async (): Promise<void> => {};
  afterAppend = async (): Promise<void> => {};

  constructor(private readonly inner: Repository) {
    super();
  }

  async transact<State, Event extends Fact, Written extends Fact = Event>(
    decider: Decider<State, Event, Written>,
    context: RequestContext,
    key: string,
    decide: Decision<State, Written>,
  ): Promise<Transacted<State, Event>> {
    if (this.left-- <= 0) throw unavailable('Interrupted.');
    this.running++;
    try {
      await this.beforeAppend();
      const done = await this.inner.transact(decider, context, key, decide);
      await this.afterAppend();
      return done;
    } finally {
      this.running--;
    }
  }

  load<State, Event extends Fact>(decider: Decider<State, Event, Fact>, environment: string, key: string): Promise<State> {
    return this.inner.load(decider, environment, key);
  }
}

describe('a command about the roles of a group', () => {
  const clock = new SystemClock();
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let repository: Interrupted;
  let assignments: GroupRoleAssignments;
  let index: OrganizationIndex;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'replacement-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    const readModels = new LmdbReadModels(storage);
    const log = new PinoLog({ level: 'silent', readable: false });
    const inner = new LogRepository(events, readModels, new Naming(createSecretKey(Buffer.alloc(32, 1))), clock, log);
    inner.registerPrimaryView(groupRoleAssignmentsView);
    repository = new Interrupted(inner);
    index = organization();
    const access = { ofGroup: async () => index, ofOrganization: async () => index } as unknown as AccessIndex;
    // Nothing is closed here.
    const guard = new AssignmentGuard(events, access, { past: (_context: unknown, work: () => unknown) => work() } as unknown as Reopening, clock);
    assignments = new GroupRoleAssignments(repository, access, guard, clock, new Deletions(readModels, deletionsView('authorization', [])), readModels);
  });
  afterEach(async () => {
    await storage.close();
    await rm(directory, { recursive: true });
  });

  function organization(): OrganizationIndex {
    const model = new EnvironmentModel(ENVIRONMENT);
    for (const [place, slug] of ROLES.entries()) {
      const data = { id: `role_${newUlid(clock.now())}`, slug, resource_type_id: null, resource_type_slug: 'organization', permissions: [] };
      model.apply({ type: 'role.created', data, version: place + 1 } as RecordedEvent);
    }
    const index = new OrganizationIndex(ORGANIZATION, ENVIRONMENT, model);
    index.apply({ type: 'group.created', data: { id: GROUP }, version: 1 } as RecordedEvent);
    return index;
  }

  async function put(context: RequestContext, roles: readonly string[]): Promise<readonly string[]> {
    const operation = Object.assign(new ReplaceGroupRoleAssignments(), {
      context,
      group_id: GROUP,
      role_assignments: roles.map((role_slug) => ({ role_slug })),
    });
    return (await assignments.replace(operation)).data.map(({ role }) => role.slug).sort();
  }

  async function records(): Promise<readonly RecordedEvent[]> {
    const reading = new AbortController();
    for await (const batch of events.subscribe(START, reading.signal)) return batch;
    return [];
  }

  it.each([0, 1, 2, 3, 4, 5, 6, 7])('is finished when it comes again, after %i of its steps', async (steps) => {
    const [before, after] = [ROLES.slice(0, 4), ROLES.slice(2).reverse()];
    await put(systemContext(ENVIRONMENT, clock.now()), before);
    const context = systemContext(ENVIRONMENT, clock.now());
    repository.left = steps;
    const interrupted = await put(context, after).then(
      () => false,
      () => true,
    );
    // Four that it is to have, two that go.
    expect(interrupted).toBe(steps < 6);
    repository.left = Infinity;
    expect(await put({ ...context, receipt: {} }, after)).toEqual([...after].sort());
    const head = await events.head();
    expect(await put({ ...context, receipt: {} }, after)).toEqual([...after].sort());
    expect(await events.head()).toBe(head);

    const recorded = await records();
    expect(new Set(recorded.map(({ id }) => id)).size).toBe(recorded.length);
    const created = recorded.filter(({ type }) => type === 'group_role_assignment.created').map(({ data }) => (data as { readonly id: string }).id);
    expect(created).toHaveLength(6);
    expect(new Set(created).size).toBe(6);
    expect(recorded).toHaveLength(6 + 2);
  });

  const again = (context: RequestContext): RequestContext => ({ ...context, receipt: {}, attempt: 2 });
  const command = (): RequestContext => systemContext(ENVIRONMENT, clock.now());
  const refused = expect.objectContaining({ code: 'entity_not_found' }) as unknown;

  async function change(context: RequestContext, add: readonly string[], remove: readonly string[]): Promise<unknown> {
    const named = (roles: readonly string[]) => roles.map((role_slug) => ({ role_slug }));
    return assignments.update(Object.assign(new UpdateGroupRoleAssignments(), { context, group_id: GROUP, add: named(add), remove: named(remove) }));
  }

  async function give(context: RequestContext, role_slug: string): Promise<string> {
    return (await assignments.create(Object.assign(new CreateGroupRoleAssignment(), { context, group_id: GROUP, role_slug }))).id;
  }

  /** Says of the resource of all of them that somebody is about to delete it, or does so no more. */
  async function say(type: 'resource.closing' | 'resource.reopened'): Promise<void> {
    const id = index.tree.idOf(index.tree.root);
    const stream = streamName('resource_tree', ENVIRONMENT, ORGANIZATION);
    const meta = metaOf(command(), clock.now(), ORGANIZATION);
    const event = { id: newUlid(clock.now()), type, shape: 1, data: { id, intent: 'one' }, subject: null, public: [], meta };
    await events.append(stream, (await events.last(stream))?.version ?? 0, [event]);
    index.apply((await events.last(stream))!);
  }

  it.each([1, 2, 3])('is refused once nothing of it goes on, where one of its steps fails after %i', async (steps) => {
    const before = ROLES.slice(0, 3);
    await put(command(), before);
    // What is recorded takes its time, what fails does so at once.
    repository.afterAppend = () => new Promise((resolve) => setTimeout(resolve, 20));
    const works = [
      (context: RequestContext) => put(context, ROLES.slice(2)),
      (context: RequestContext) => change(context, ROLES.slice(3, 5), before.slice(0, 2)),
    ];
    for (const work of works) {
      const context = command();
      repository.left = steps;
      await expect(work(context)).rejects.toMatchObject({ kind: 'unavailable' });
      expect(repository.running).toBe(0);
      repository.left = Infinity;
      await work(again(context));
      await put(command(), before);
    }
  });

  /** Behind an intent that is over soon, without a change. */
  async function refusedOnce(work: () => Promise<unknown>): Promise<void> {
    repository.beforeAppend = async () => {
      repository.beforeAppend = async () => {};
      await say('resource.closing');
    };
    await expect(work()).rejects.toEqual(refused);
    await say('resource.reopened');
  }

  it('is refused again where what it gave was taken back', async () => {
    for (const work of [(context: RequestContext) => put(context, ROLES.slice(0, 1)), (context: RequestContext) => change(context, ROLES.slice(0, 1), [])]) {
      const context = command();
      await refusedOnce(() => work(context));
      const head = await events.head();
      for (const repeat of [{ ...context, receipt: {} }, again(context)]) await expect(work(repeat)).rejects.toEqual(refused);
      expect(await events.head()).toBe(head);
    }
  });

  it('is not answered with what another gave since', async () => {
    const context = command();
    await refusedOnce(() => give(context, 'one'));
    await expect(give(again(context), 'one')).rejects.toEqual(refused);
    const other = await give(command(), 'one');
    await expect(give(again(context), 'one')).rejects.toEqual(refused);
    expect((await records()).at(-1)).toMatchObject({ type: 'group_role_assignment.created', data: { id: other } });
  });
});
