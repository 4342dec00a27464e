import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import { LogRepository } from '#libs/event-sourcing/src/deciding/log.repository';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { Appended, NewEvent } from '#libs/event-sourcing/src/log/event-store';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { tableOf, type PrimaryView } from '#libs/event-sourcing/src/views/view';
import { SystemClock } from '#libs/platform/src/clock';
import { newCommandId } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import type { RequestContext } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { changeDirectoryGroup, directoryGroupDecider, type DirectoryGroupEvent, type MembersChanged } from '../domain/directory-group.decider.ts';
import { createDirectoryUser, directoryUserDecider } from '../domain/directory-user.decider.ts';
import { createDirectory, deleteDirectory, directoryDecider, type StoredDirectory } from '../domain/directory.decider.ts';
import { GroupCleaning } from '../people/group-cleaning.ts';
import { TellOfGroupMembers } from '../people/member.reactions.ts';
import { GroupMembers } from '../readers/group-members.ts';
import { directoryGroupMembersView, directoryGroupsView } from '../views/directory-groups.view.ts';
import { directoryUsersView } from '../views/directory-users.view.ts';
import { ScimGroups } from './groups.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
const directory = { id: 'directory_1', organization_id: 'org_1', attributes: [] } as unknown as StoredDirectory;
const clock = new SystemClock();
const log = new PinoLog({ level: 'silent', readable: false });

/** What happens before an append of a group, and after one. */
class Watched extends LmdbEventStore {
  before: ((nth: number) => Promise<void>) | null = null;
  after: ((nth: number) => void) | null = null;
  private appends = 0;

  override async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    const { before, after } = this;
    if (!stream.startsWith('directory_group-') || (before === null && after === null)) return super.append(stream, expectedVersion, events);
    const nth = ++this.appends;
    await before?.(nth);
    const appended = await super.append(stream, expectedVersion, events);
    after?.(nth);
    return appended;
  }
}

/** As a group of tens of thousands is, whose records have ten thousand. */
class SmallRecords extends ScimGroups {
  protected override readonly mostInRecord = 2;
}

let folder: string;
let storage: LmdbStorage;
let events: Watched;
let repository: LogRepository;
let members: GroupMembers;
let groups: SmallRecords;
let cleaning: GroupCleaning;
let people: readonly string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'many-members-'));
  storage = await LmdbStorage.open({ directory: folder });
  events = new Watched(storage);
  const readModels = new LmdbReadModels(storage);
  repository = new LogRepository(events, readModels, new Naming(Buffer.alloc(32, 1)), clock, log);
  for (const view of [directoryUsersView, directoryGroupsView] as const) repository.registerPrimaryView(view as unknown as PrimaryView<unknown, never>);
  readModels.table(tableOf(directoryGroupMembersView));
  members = new GroupMembers(repository, events, readModels);
  cleaning = new GroupCleaning(repository, members, clock, readModels);
  groups = new SmallRecords(repository, members, cleaning, clock, new LmdbShortLived(storage, clock), readModels);
  people = await Promise.all(
    Array.from({ length: 7 }, async (_, index) => {
      const made = context();
      const id = `directory_user_${made.commandId}`;
      await repository.transact(directoryUserDecider, made, id, createDirectoryUser(directory, { userName: `person-${index}` }));
      return id;
    }),
  );
});
afterEach(async () => {
  await storage.close();
  await rm(folder, { recursive: true });
});

function context(commandId = newCommandId(clock.now())): RequestContext {
  const now = clock.now();
  return {
    environment: ENVIRONMENT,
    actor: { id: 'key_1', source: 'api', name: null },
    requestId: 'request_1',
    commandId,
    deadline: now + 10_000,
    receipt: {},
  };
}

describe('a change of more members than one record takes', () => {
  const sent = (ids: readonly string[], displayName = 'Everybody') => ({ displayName, members: ids.map((value) => ({ value })) });
  const membersOf = async (id: string) => [...(await members.all(ENVIRONMENT, id))].sort();
  const recordsOf = async (id: string) =>
    (await events.read(`directory_group-${ENVIRONMENT}-${id}`))
      .filter(({ type }) => type === 'directory_group.members_changed')
      .map(({ data }) => data as MembersChanged);

  it('is several records, each whole: removals before additions', async () => {
    const { id } = await groups.create(context(), directory, sent(people.slice(0, 5)));
    await groups.replace(context(), directory, id, { body: sent(people.slice(3)), expected: undefined });
    expect(await membersOf(id)).toEqual(people.slice(3).sort());
    expect((await recordsOf(id)).map(({ removed, added }) => [removed.length, added.length])).toEqual([
      [0, 2],
      [0, 2],
      [0, 1],
      [2, 0],
      [1, 1],
      [0, 1],
    ]);
  });

  it('is completed by whoever repeats it, wherever it was broken off', async () => {
    for (const died of [1, 2, 3]) {
      events.after = (nth) => {
        if (nth === died) throw new Error('died');
      };
      const command = newCommandId(clock.now());
      const body = sent(people, `Broken off at ${died}`);
      await expect(groups.create(context(command), directory, body)).rejects.toThrow('died');
      events.after = null;
      Object.assign(events, { appends: 0 });
      const { id } = await groups.create({ ...context(command), attempt: 2 }, directory, body);
      expect(await membersOf(id)).toEqual([...people].sort());
      expect((await recordsOf(id)).flatMap(({ added }) => added)).toHaveLength(people.length);
    }
  });

  it('is completed where somebody was faster when it was asked for first', async () => {
    const command = newCommandId(clock.now());
    const id = `directory_group_${command}`;
    events.before = async (nth) => {
      const rename = changeDirectoryGroup(undefined, (attributes) => ({ ...attributes, externalId: 'faster' }), null);
      if (nth === 2) await repository.transact(directoryGroupDecider, context(), id, rename);
    };
    // The append of the second part meets the other change, and comes anew behind it.
    events.after = (nth) => {
      if (nth === 4) throw new Error('died');
    };
    await expect(groups.create(context(command), directory, sent(people))).rejects.toThrow('died');
    events.before = events.after = null;
    expect(await membersOf(id)).toHaveLength(4);
    await groups.create({ ...context(command), attempt: 2 }, directory, sent(people));
    expect(await membersOf(id)).toEqual([...people].sort());
  });
});

describe('changes of members that are told of together', () => {
  const toldOf = async (id: string) =>
    (await events.read(`directory_user-${ENVIRONMENT}-${id}`)).flatMap(({ type, data, meta }) =>
      type.startsWith('dsync.group.')
        ? [{ told: `${type.slice('dsync.group.user_'.length)} ${(data as { readonly group: DirectoryGroup }).group.name}`, by: meta.commandId }]
        : [],
    );

  it('are told to each person at once, in their order', async () => {
    const [ada, bob] = people as [string, string];
    const gone = `directory_user_${newCommandId(clock.now())}`;
    const made = await Promise.all(['One', 'Two'].map((displayName) => groups.create(context(), directory, { displayName })));
    const [one, two] = made.map(({ id }) => id) as [string, string];
    let version = 0;
    const changed = (id: string, added: readonly string[], removed: readonly string[] = []) =>
      ({
        id: newCommandId(clock.now()),
        position: '',
        version: ++version,
        data: { id, directory_id: directory.id, added, removed },
        meta: { environment: ENVIRONMENT, at: clock.now() },
      }) as unknown as Recorded<FactOf<DirectoryGroupEvent, 'directory_group.members_changed'>>;
    await repository.transact(
      directoryGroupDecider,
      context(),
      one,
      changeDirectoryGroup(undefined, (attributes) => attributes, { version: 1, change: { added: [gone], removed: [] } }),
    );
    const changes = [
      changed(one, [ada, gone]),
      changed(two, [ada, bob]),
      changed(one, [], [ada]),
      changed(`directory_group_${newCommandId(clock.now())}`, [ada]),
      changed(one, [ada, bob]),
    ];
    const leases = new Leases(new LmdbShortLived(storage, clock), 'spec', log, new Metrics());
    await leases.acquireOrRenew('reaction.tell-of-directory-group-members');
    const telling = new TellOfGroupMembers(repository, events, cleaning, leases, clock);
    await telling.reactTogether(changes);
    // Handed the last of them again, as after a kill, and all of them.
    await telling.reactTogether(changes.slice(3));
    await telling.reactTogether(changes);
    const told = await toldOf(ada);
    expect(told.map((each) => each.told)).toEqual(['added One', 'added Two', 'removed One', 'added One']);
    expect(new Set(told.map(({ by }) => by)).size).toBe(1);
    expect((await toldOf(bob)).map((each) => each.told)).toEqual(['added Two', 'added One']);
    // More may have come by the time that they are handed over again.
    const more = [changed(one, [], [bob]), changed(one, [bob]), changed(one, [], [ada, bob])];
    await telling.reactTogether([...changes, ...more]);
    await telling.reactTogether([...changes, ...more]);
    expect((await toldOf(ada)).slice(4).map((each) => each.told)).toEqual(['removed One']);
    expect((await toldOf(bob)).slice(2).map((each) => each.told)).toEqual(['removed One', 'added One', 'removed One']);
    // And each for itself, as where one of them failed, or in other parts.
    for (const change of [...changes, ...more]) await telling.react(change);
    await telling.reactTogether(more.slice(0, 2));
    expect(await toldOf(ada)).toHaveLength(5);
    expect(await toldOf(bob)).toHaveLength(5);
    // Whoever joined while they were deleted is taken out.
    expect(await members.all(ENVIRONMENT, one)).toEqual(new Set());
    // Behind the end of the directory nothing is told of it.
    const given = { organization_id: directory.organization_id, type: 'okta scim v2.0', name: 'Okta', attributes: [] } as const;
    await repository.transact(directoryDecider, context(), directory.id, createDirectory(given));
    await telling.react(changed(two, [], [ada]));
    await repository.transact(directoryDecider, context(), directory.id, deleteDirectory(directory.id));
    await telling.react(changed(two, [], [bob]));
    expect((await toldOf(ada)).slice(5).map((each) => each.told)).toEqual(['removed Two']);
    expect(await toldOf(bob)).toHaveLength(5);
  });
});
